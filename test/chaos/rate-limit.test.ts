import assert from 'node:assert/strict'
import { it } from 'node:test'
import { redisRateLimiter } from '../../src/workspaces/rate-limits/redis.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { takenByMinute } from '../support/rate-minutes.ts'
import { startRedis } from '../support/redis-server.ts'
import { testReplica } from '../support/redis-replica.ts'
import { eventually } from '../support/waiting.ts'

const REQUESTS = 100_000
const LIMIT = 7001
const AT_ONCE = 2000

it('[R1] four replicas with clocks that are wrong by half a minute accept exactly the limit of 100,000 requests', async (t) => {
  const server = await startRedis()
  const replicas = [-30_000, -7000, 11_000, 30_000].map((offsetMs) => {
    const clock = { ...systemClock, now: () => Date.now() + offsetMs }
    const replica = testReplica(server.url, { clock, leaseMs: 5000 })
    return { replica, limiter: redisRateLimiter(replica.link, clock) }
  })
  t.after(async () => {
    for (const { replica } of replicas) await replica.close()
    await server.remove()
  })
  await eventually('all have joined', () => replicas.every(({ replica }) => replica.link.membership() !== undefined))
  const limiters = replicas.map(({ limiter }) => limiter)
  const subject = { kind: 'workspace', id: 'one' } as const
  const minutes = await takenByMinute(limiters, subject, { requests: REQUESTS, limit: LIMIT, atOnce: AT_ONCE })
  t.diagnostic(JSON.stringify(minutes))
  for (const { replica } of replicas) assert.ok(!replica.log.some((line) => line.startsWith('lost')), 'none was apart')
  for (const { asked, accepted } of minutes) assert.equal(accepted, Math.min(asked, LIMIT))
})
