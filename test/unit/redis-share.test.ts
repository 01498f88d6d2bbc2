import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openShare } from '../../src/admission/redis/share.ts'
import type { AlarmClock } from '../../src/ports/clock.ts'
import type { RedisLink } from '../../src/redis/link.ts'

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
  it('[Q1] is what it had and was promised, for as long as nobody else can have been given it', () => {
    const { share, running, at, prove } = stage()
    at(500)
    share.keep(running)
    // The machine of Redis refuses connections, again and again.
    prove(0, 5000)
    at(4000)
    assert.ok(share.isProven() && share.mayServe())
    share.returnTo({ requests: 1, tokens: 10 })
    assert.deepEqual(share.promised(), { requests: 4, tokens: 40 })
  })

  it('[Q1] is nothing for a process that slept through its lease', () => {
    const { share, running, at, prove } = stage()
    at(3000)
    // It is heard again before it finds out what it missed.
    prove(3000, 4000)
    share.keep(running)
    assert.ok(share.isEmpty())
    share.returnTo(NOTHING)
    assert.deepEqual(share.promised(), NOTHING)
  })

  it('[Q1] does not come back after a silence that was longer than the lease', () => {
    const { share, running, at, prove } = stage()
    at(500)
    share.keep(running)
    at(3000)
    assert.ok(!share.isProven())
    // Then Redis crashed, and its machine refuses connections: others serve what they were given of it.
    prove(3000, 4000)
    assert.ok(!share.isProven() && !share.mayServe())
    share.returnTo(running)
    assert.deepEqual(share.promised(), NOTHING)
    assert.ok(share.isEmpty())
  })
})
