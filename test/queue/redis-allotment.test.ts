import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openAllotment } from '../../src/queue/redis/allotment.ts'
import type { AlarmClock } from '../../src/shared/clock.ts'
import type { RedisLink } from '../../src/cluster/redis/link.ts'

/** A replica with three requests in flight and a promise for two more, whose lease of 1 s began at 0. */
function stage() {
  let nowMs = 0
  let proven = { sinceMs: 0, untilMs: 1000 }
  const link = { leaseMs: 1000, proven: () => proven, replicas: () => 2 } as unknown as RedisLink
  const allotment = openAllotment(link, { monotonic: () => nowMs } as AlarmClock)
  const running = { requests: 3, tokens: 30 }
  allotment.renew(0)
  allotment.promise({ requests: 2, tokens: 20 })
  return {
    allotment,
    running,
    at: (ms: number) => void (nowMs = ms),
    prove: (sinceMs: number, untilMs: number) => void (proven = { sinceMs, untilMs }),
  }
}

const UNLIMITED = Number.MAX_SAFE_INTEGER
const NOTHING = { requests: 0, tokens: 0 }

describe('the allotment of a replica without Redis', () => {
  it('[Q1] is what it had and was promised, as long as no other replica can have been given it', () => {
    const { allotment, running, at, prove } = stage()
    at(500)
    allotment.freeze(running)
    // Redis' host keeps refusing connections, which proves that Redis is down.
    prove(0, 5000)
    at(4000)
    assert.ok(allotment.isProven() && allotment.mayServe())
    allotment.restorePromise({ requests: 1, tokens: 10 })
    assert.deepEqual(allotment.promised(), { requests: 4, tokens: 40 })
  })

  it('[Q1] is nothing for a process that was suspended beyond its lease', () => {
    const { allotment, running, at, prove } = stage()
    at(3000)
    // Redis answers again before the process detects that its lease has ended.
    prove(3000, 4000)
    allotment.freeze(running)
    assert.ok(allotment.isEmpty())
    allotment.restorePromise(NOTHING)
    assert.deepEqual(allotment.promised(), NOTHING)
  })

  it('[Q1] is nothing from the end of its lease on', () => {
    for (const [ms, isEmpty] of [
      [999, false],
      [1000, true],
    ] as const) {
      const { allotment, running, at } = stage()
      at(ms)
      allotment.freeze(running)
      assert.equal(allotment.isEmpty(), isEmpty)
    }
  })

  it('[Q1] has its part of each limit of the queue, and the whole of those that are not divided', () => {
    const { allotment } = stage()
    const batch = { maxShare: 0.5, preempt: true, maxQueueDepth: 7 }
    const limits = { tokenBudget: 900, maxConcurrentRequests: 90, maxQueueDepth: 9, maxWaitMs: 60, batch }
    const own = { maxRequestsPerWorkspace: 5, ...limits }
    const parts = {
      maxQueueDepth: 5,
      batch: { maxShare: 0, preempt: true, maxQueueDepth: 4 },
      maxWaitMs: 60,
      maxRequestsPerWorkspace: 3,
    }
    assert.deepEqual(allotment.localLimits(own, 'none'), { tokenBudget: UNLIMITED, maxConcurrentRequests: 0, ...parts })
    assert.equal(allotment.localLimits(limits, 'none').maxRequestsPerWorkspace, undefined)
    allotment.freeze({ requests: 3, tokens: 30 })
    assert.deepEqual(allotment.localLimits(own, 'allotment'), { tokenBudget: 50, maxConcurrentRequests: 5, ...parts })
    assert.deepEqual(allotment.localLimits({ ...own, maxWaitMs: 0 }, 'redis'), {
      tokenBudget: UNLIMITED,
      maxConcurrentRequests: 0,
      maxQueueDepth: UNLIMITED,
      batch: { maxShare: 0, preempt: true, maxQueueDepth: UNLIMITED },
      maxWaitMs: 1000,
      maxRequestsPerWorkspace: undefined,
    })
  })

  it('[Q1] is not restored after a silence that was longer than the lease', () => {
    const { allotment, running, at, prove } = stage()
    at(500)
    allotment.freeze(running)
    at(3000)
    assert.ok(!allotment.isProven())
    // Then Redis crashes and its host refuses connections. By now other replicas may serve parts of this allotment.
    prove(3000, 4000)
    assert.ok(!allotment.isProven() && !allotment.mayServe())
    allotment.restorePromise(running)
    assert.deepEqual(allotment.promised(), NOTHING)
    assert.ok(allotment.isEmpty())
  })
})
