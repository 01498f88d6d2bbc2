/** What replicas share through Redis. Loaded together, and only by a service that has one: it takes 14 MiB. */
export { redisAdmission } from './queue/redis/admission.ts'
export { redisChanges } from './cluster/changes/redis/changes.ts'
export { redisRateLimiter } from './workspaces/rate-limits/redis.ts'
export { openLink } from './cluster/redis/link.ts'
export { replicaList } from './cluster/redis/replica-list.ts'
