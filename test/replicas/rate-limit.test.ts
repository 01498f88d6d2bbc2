import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { RateLimiter, RateSubject } from '../../src/workspaces/rate-limits/rate-limit.ts'
import { redisRateLimiter } from '../../src/workspaces/rate-limits/redis.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { roomInThisMinute } from '../support/minute.ts'
import { takenByMinute } from '../support/rate-minutes.ts'
import { startRedis, type RedisServer } from '../support/redis-server.ts'
import { testReplica, type TestReplica } from '../support/redis-replica.ts'
import { eventually } from '../support/waiting.ts'

describe('the rate limit of several replicas', () => {
  let server: RedisServer
  let replicas: { readonly replica: TestReplica; readonly limiter: RateLimiter }[]
  let subjects = 0

  before(async () => {
    server = await startRedis()
    // Their own clocks are wrong by up to half a minute, in both directions.
    replicas = [-30_000, -7000, 11_000, 30_000].map((offsetMs) => {
      const clock = { ...systemClock, now: () => Date.now() + offsetMs }
      // A lease that outlasts thousands of requests at once on a busy machine.
      const replica = testReplica(server.url, { clock, leaseMs: 10_000 })
      return { replica, limiter: redisRateLimiter(replica.link, clock) }
    })
    await eventually('all have joined', () => replicas.every(({ replica }) => replica.link.membership() !== undefined))
  })
  after(async () => {
    for (const { replica } of replicas) await replica.close()
    await server.remove()
  })

  const workspace = (): RateSubject => ({ kind: 'workspace', id: `ws_${++subjects}` })

  it('[R1] is exact over all of them, whatever their clocks show', async () => {
    const limiters = replicas.map(({ limiter }) => limiter)
    const [requests, limit] = [10_000, 3333]
    const minutes = await takenByMinute(limiters, workspace(), { requests, limit, atOnce: 2000 })
    for (const { asked, accepted } of minutes) assert.equal(accepted, Math.min(asked, limit))
  })

  it('[R1] shows what is left in the minute of Redis, and when it ends', async () => {
    await roomInThisMinute()
    const subject = workspace()
    for (const { limiter } of replicas) await limiter.take(subject, 10)
    const resetAt = (Math.floor(Date.now() / 60_000) + 1) * 60
    for (const { limiter } of replicas) {
      const view = await limiter.peek(subject, 10)
      assert.deepEqual(view.allowance(), { limit: 10, remaining: 6, resetAt })
    }
    const { secondsLeft } = await replicas[0]!.limiter.take(subject, 4)
    assert.ok(Math.abs(secondsLeft - (resetAt - Date.now() / 1000)) <= 2, `${secondsLeft}`)
  })

  it('[R1] counts workspaces and addresses separately', async () => {
    const [one, other] = replicas.map(({ limiter }) => limiter) as [RateLimiter, RateLimiter]
    assert.equal((await one.take({ kind: 'workspace', id: 'same' }, 1)).full, undefined)
    assert.equal((await other.take({ kind: 'address', id: 'same' }, 1)).full, undefined)
    assert.ok((await other.take({ kind: 'workspace', id: 'same' }, 1)).full)
  })

  it('[R1] is a part of the limit at each of them while Redis is unreachable', async () => {
    await roomInThisMinute()
    const subject = workspace()
    await eventually('each knows the others', () => replicas.every(({ replica }) => replica.link.replicas() === 4))
    await server.kill()
    await eventually('they have noticed', () => replicas.every(({ replica }) => !replica.link.membership()))
    let accepted = 0
    for (let request = 0; request < 40; request += 1) {
      for (const { limiter } of replicas) if (!(await limiter.take(subject, 22)).full) accepted += 1
    }
    // 22 for four replicas is 5 for each.
    assert.equal(accepted, 20)
    await server.start()
  })
})
