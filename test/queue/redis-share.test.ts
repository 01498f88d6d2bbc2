import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openShare } from '../../src/queue/redis/share.ts'
import type { AlarmClock } from '../../src/shared/clock.ts'
import type { RedisLink } from '../../src/cluster/redis/link.ts'

/** A replica with three requests in flight and a promise for two more, whose lease of 1 s began at 0. */
function stage() {
  let nowMs = 0
  let proven = { sinceMs: 0, untilMs: 1000 }
  const link = { leaseMs: 1000, proven: () => proven, replicas: () => 2 } as unknown as RedisLink
  const share = openShare(link, { monotonic: () => nowMs } as AlarmClock)
  const running = { requests: 3, tokens: 30 }
  share.renew(0)
  share.promise({ requests: 2, tokens: 20 })
  return {
    share,
    running,
    at: (ms: number) => void (nowMs = ms),
    prove: (sinceMs: number, untilMs: number) => void (proven = { sinceMs, untilMs }),
  }
}

const NOTHING = { requests: 0, tokens: 0 }

describe('the share of a replica without Redis', () => {
  it('[Q1] is what it had and was promised, as long as no other replica can have been given it', () => {
    const { share, running, at, prove } = stage()
    at(500)
    share.freeze(running)
    // Redis' host keeps refusing connections, which proves that Redis is down.
    prove(0, 5000)
    at(4000)
    assert.ok(share.isProven() && share.mayServe())
    share.restorePromise({ requests: 1, tokens: 10 })
    assert.deepEqual(share.promised(), { requests: 4, tokens: 40 })
  })

  it('[Q1] is nothing for a process that was suspended beyond its lease', () => {
    const { share, running, at, prove } = stage()
    at(3000)
    // Redis answers again before the process detects that its lease has ended.
    prove(3000, 4000)
    share.freeze(running)
    assert.ok(share.isEmpty())
    share.restorePromise(NOTHING)
    assert.deepEqual(share.promised(), NOTHING)
  })

  it('[Q1] is not restored after a silence that was longer than the lease', () => {
    const { share, running, at, prove } = stage()
    at(500)
    share.freeze(running)
    at(3000)
    assert.ok(!share.isProven())
    // Then Redis crashes and its host refuses connections. By now other replicas may serve parts of this share.
    prove(3000, 4000)
    assert.ok(!share.isProven() && !share.mayServe())
    share.restorePromise(running)
    assert.deepEqual(share.promised(), NOTHING)
    assert.ok(share.isEmpty())
  })
})
