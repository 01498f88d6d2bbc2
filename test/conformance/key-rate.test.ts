import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import * as fc from 'fast-check'
import { Redis } from 'ioredis'
import { systemClock } from '../../src/shared/system-clock.ts'
import {
  memoryRateLimiter,
  type KeyRate,
  type RateDecision,
  type RateLimiter,
  type RateSubject,
} from '../../src/workspaces/rate-limits/rate-limit.ts'
import { redisRateLimiter } from '../../src/workspaces/rate-limits/redis.ts'
import { roomInThisMinute } from '../support/minute.ts'
import { testReplica } from '../support/redis-replica.ts'
import { startRedis } from '../support/redis-server.ts'
import { eventually } from '../support/waiting.ts'

/** Keys with a rate of their own, in memory and over replicas in Redis. */

fc.configureGlobal({ seed: 1 })

interface Stage {
  readonly limiters: readonly RateLimiter[]
  /** Where the limiters share their counts. */
  readonly redisUrl?: string
  close(): Promise<void>
}

const adapters: Readonly<Record<string, () => Promise<Stage>>> = {
  memory: async () => ({ limiters: [memoryRateLimiter(systemClock)], close: async () => {} }),
  async Redis() {
    const server = await startRedis()
    const replicas = [1, 2, 3, 4].map(() => testReplica(server.url, { clock: systemClock, leaseMs: 10_000 }))
    const limiters = replicas.map(({ link }) => redisRateLimiter(link, systemClock))
    await eventually('all have joined', () => replicas.every(({ link }) => link.membership() !== undefined))
    return {
      limiters,
      redisUrl: server.url,
      async close() {
        for (const replica of replicas) await replica.close()
        await server.remove()
      },
    }
  },
}

/** The limit of the workspace, those of its keys (0: none), and which key sends each request. */
const cases = fc.record({
  limit: fc.integer({ min: 1, max: 30 }),
  keyLimits: fc.array(fc.integer({ min: 0, max: 12 }), { minLength: 1, maxLength: 4 }),
  requests: fc.array(fc.nat(3), { maxLength: 60 }),
})

for (const [name, open] of Object.entries(adapters)) {
  describe(`the rate of a key, in ${name}`, () => {
    let stage: Stage
    let workspaces = 0

    before(async () => {
      stage = await open()
    })
    after(() => stage.close())

    const newWorkspace = (): RateSubject => ({ kind: 'workspace', id: `ws_${name}_${++workspaces}` })
    const limiter = (index: number): RateLimiter => stage.limiters[index % stage.limiters.length]!
    const keyOf = (subject: RateSubject, index: number, limit: number): KeyRate | undefined =>
      limit === 0 ? undefined : { id: `${subject.id} key ${index}`, limit }

    it('[R1, R2] a request counts for its key and its workspace or for neither, and the tighter one is shown', async () => {
      await fc.assert(
        fc.asyncProperty(cases, async ({ limit, keyLimits, requests }) => {
          await roomInThisMinute(2000)
          const subject = newWorkspace()
          let ofWorkspace = 0
          const ofKeys = keyLimits.map(() => 0)
          for (const [index, sender] of requests.entries()) {
            const which = sender % keyLimits.length
            const key = keyOf(subject, which, keyLimits[which]!)
            const hasRoom = ofWorkspace < limit && (!key || ofKeys[which]! < key.limit)
            const decision = await limiter(index).take(subject, limit, key)
            assert.equal(decision.full === undefined, hasRoom)
            if (hasRoom) ofWorkspace++
            if (hasRoom && key) ofKeys[which]!++
            const left = [[limit - ofWorkspace, limit], ...(key ? [[key.limit - ofKeys[which]!, key.limit]] : [])]
            const [tightest] = left.toSorted(([one = 0, size = 0], [other = 0, otherSize = 0]) => {
              return one - other || size - otherSize
            })
            const shown = decision.allowance()
            assert.deepEqual([shown.remaining, shown.limit], tightest)
          }
          const view = await limiter(0).peek(subject, limit)
          assert.equal(view.allowance().remaining, limit - ofWorkspace)
        }),
        { numRuns: 40 },
      )
    })

    it('tokens are counted for the workspace and its key when they are spent, and refuse requests from the limit on', async () => {
      await roomInThisMinute(10_000)
      const subject = newWorkspace()
      const [key, other] = [0, 1].map((index) => keyOf(subject, index, 50)!)
      let asked = 0
      const ask = (of: KeyRate | undefined, limit: number | undefined, isChecked = true): Promise<RateDecision> =>
        limiter(asked++).take(subject, 1000, undefined, { limit, key: of, isChecked })
      const left = ({ tokens }: RateDecision) => [
        tokens?.allowanceOfSubject()?.remaining,
        tokens?.allowanceOfKey()?.remaining,
      ]
      const first = await ask(key, 100)
      assert.deepEqual([first.full, left(first)], [undefined, [100, 50]])
      await first.tokens?.spend(49)
      const second = await ask(key, 100)
      assert.deepEqual([second.full, left(second)], [undefined, [51, 1]])
      await second.tokens?.spend(30)
      const refused = await ask(key, 100)
      assert.deepEqual([refused.full?.unit, left(refused)], ['tokens', [21, 0]])
      assert.deepEqual(refused.full, { unit: 'tokens', isOfKey: true, limit: 50 })
      const third = await ask(other, 100)
      assert.deepEqual([third.full, left(third)], [undefined, [21, 50]])
      await third.tokens?.spend(21)
      assert.deepEqual((await ask(other, 100)).full, { unit: 'tokens', isOfKey: false, limit: 100 })
      assert.deepEqual((await ask(undefined, 100)).full, { unit: 'tokens', isOfKey: false, limit: 100 })
      // Neither a request that takes no tokens nor a caller without such a limit is refused.
      const free = await ask(other, 100, false)
      assert.deepEqual([free.full, left(free)], [undefined, [0, 29]])
      const unlimited = await limiter(asked).take(subject, 1000)
      assert.deepEqual([unlimited.full, unlimited.tokens], [undefined, undefined])
      // Requests that were refused are not counted.
      assert.equal(unlimited.allowance().remaining, 1000 - 5)
      assert.equal(
        (await limiter(0).take(newWorkspace(), 1000, undefined, { limit: 1, key, isChecked: false })).full,
        undefined,
      )
    })

    it('[R1] is exact for requests at once', async () => {
      await roomInThisMinute(10_000)
      const subject = newWorkspace()
      const limits = [30, 50, 1000]
      const asked = 200
      const accepted = await Promise.all(
        limits.map(async (keyLimit, which) => {
          const key = keyOf(subject, which, keyLimit)
          const decisions = await Promise.all(
            Array.from({ length: asked }, (_, index) => limiter(index).take(subject, 220, key)),
          )
          return decisions.filter((it) => !it.full).length
        }),
      )
      assert.equal(
        accepted.reduce((sum, it) => sum + it, 0),
        220,
      )
      for (const [which, keyLimit] of limits.entries()) assert.ok(accepted[which]! <= Math.min(keyLimit, asked))
    })

    if (name === 'Redis') {
      it('is kept for at least its minute, and then forgotten', async () => {
        const subject = newWorkspace()
        await limiter(0).take(subject, 10)
        const redis = new Redis(stage.redisUrl ?? assert.fail())
        const seconds = await redis.ttl(`weir:{rate workspace ${subject.id}}`).finally(() => redis.disconnect())
        assert.ok(seconds >= 60 && seconds <= 120, `${seconds} seconds`)
      })
    }
  })
}
