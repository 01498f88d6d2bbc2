/** What replicas share through Redis. Loaded together, and only by a service that has one: it takes 14 MiB. */
export { redisAdmission } from './admission/redis/admission.ts'
export { redisChanges } from './changes/redis/changes.ts'
export { redisRateLimiter } from './rate-limit/redis.ts'
export { openLink } from './redis/link.ts'
export { replicaList } from './redis/replica-list.ts'
export { redisSpending } from './spending/redis/spending.ts'
