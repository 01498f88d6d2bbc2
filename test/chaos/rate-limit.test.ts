import assert from 'node:assert/strict'
import { it } from 'node:test'
import { redisRateLimiter } from '../../src/rate-limit/redis.ts'
import { systemClock } from '../../src/system-clock.ts'
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
  /** By the end of the minute in which they were counted, which is a minute of Redis. */
  const minutes = new Map<number, { asked: number; accepted: number }>()
  for (let sent = 0; sent < REQUESTS; sent += AT_ONCE) {
    await Promise.all(
      Array.from({ length: AT_ONCE }, async (_, index) => {
        const { limiter } = replicas[index % replicas.length]!
        const decision = await limiter.take({ kind: 'workspace', id: 'one' }, LIMIT)
        const minute = minutes.get(decision.allowance().resetAt) ?? { asked: 0, accepted: 0 }
        minutes.set(decision.allowance().resetAt, minute)
        minute.asked += 1
        if (decision.accepted) minute.accepted += 1
      }),
    )
  }
  t.diagnostic(JSON.stringify([...minutes.values()]))
  for (const { replica } of replicas) assert.ok(!replica.log.some((line) => line.startsWith('lost')), 'none was apart')
  for (const { asked, accepted } of minutes.values()) assert.equal(accepted, Math.min(asked, LIMIT))
})
