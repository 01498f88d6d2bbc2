import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { allowance, secondsLeft, take, windowAt, WINDOW_MS, type WindowCount } from '../../src/core/rate-window.ts'
import { memoryRateLimiter } from '../../src/rate-limit/memory.ts'

fc.configureGlobal({ seed: 1 })

const limits = fc.integer({ min: 1, max: 20 })
/** Requests as pauses between them, some of them longer than a window. */
const pauses = fc.array(fc.integer({ min: 0, max: 25_000 }), { maxLength: 200 })
const startTimes = fc.integer({ min: 0, max: 4_000_000_000_000 })

describe('a window of one minute', () => {
  it('[R1] accepts exactly the limit in each window, whatever the arrivals', () => {
    fc.assert(
      fc.property(limits, startTimes, pauses, (limit, startMs, waits) => {
        const arrived = new Map<number, number>()
        const accepted = new Map<number, number>()
        let held: WindowCount | undefined
        let now = startMs
        for (const wait of waits) {
          now += wait
          const window = windowAt(now)
          const taken = take(held, limit, now)
          held = taken.held
          arrived.set(window, (arrived.get(window) ?? 0) + 1)
          if (taken.accepted) accepted.set(window, (accepted.get(window) ?? 0) + 1)
        }
        for (const [window, count] of arrived) assert.equal(accepted.get(window) ?? 0, Math.min(count, limit))
      }),
    )
  })

  it('[R2] tells the limit, what is left of it, and when it begins anew', () => {
    fc.assert(
      fc.property(limits, startTimes, fc.nat(40), (limit, now, requests) => {
        let held: WindowCount | undefined
        for (let index = 0; index < requests; index++) ({ held } = take(held, limit, now))
        const told = allowance(held, limit, now)
        assert.equal(told.limit, limit)
        assert.equal(told.remaining, Math.max(0, limit - requests))
        assert.ok(Number.isInteger(told.resetAt))
        assert.ok(told.resetAt * 1000 > now && told.resetAt * 1000 <= now + WINDOW_MS)
        // And from that very moment on the allowance is whole again.
        const next = told.resetAt * 1000
        assert.equal(allowance(held, limit, next - 1).remaining, told.remaining)
        assert.equal(allowance(held, limit, next).remaining, limit)
        assert.equal(take(held, limit, next).accepted, true)
      }),
    )
  })

  it('[R2] never tells less than nothing left where the limit was lowered', () => {
    const held = { window: windowAt(90_000), count: 10 }
    assert.deepEqual(allowance(held, 4, 90_000), { limit: 4, remaining: 0, resetAt: 120 })
    assert.equal(take(held, 4, 90_000).accepted, false)
    assert.equal(take(held, 11, 90_000).accepted, true)
  })

  it('[R3] says when to come back: the seconds left, from 1 to 59', () => {
    fc.assert(
      fc.property(startTimes, (now) => {
        const left = secondsLeft(now)
        assert.ok(Number.isInteger(left) && left >= 1 && left <= 59)
        const exact = (WINDOW_MS - (now % WINDOW_MS)) / 1000
        // Whoever waits that long is in the next window, but for the first second of a window.
        if (exact <= 59) assert.ok(left >= exact && left < exact + 1)
      }),
    )
    assert.deepEqual([0, 1, 999, 1000, 59_000, 59_999].map(secondsLeft), [59, 59, 59, 59, 1, 1])
  })
})

/** A wall clock that stands until it is moved. */
function wallClock() {
  let nowMs = Date.UTC(2026, 10, 15)
  return { now: () => nowMs, monotonic: () => 0, move: (ms: number) => void (nowMs += ms) }
}

describe('the rate limiter in memory', () => {
  it('[R1] counts each subject for itself', async () => {
    const limiter = memoryRateLimiter(wallClock())
    assert.deepEqual(await Promise.all([1, 2, 3].map(() => limiter.take('one', 2))), [true, true, false])
    assert.equal(await limiter.take('other', 2), true)
    assert.equal(limiter.allowance('one', 2).remaining, 0)
    assert.equal(limiter.allowance('other', 2).remaining, 1)
    assert.equal(limiter.allowance('nobody yet', 2).remaining, 2)
  })

  it('[R1] begins anew with the minute, for everybody', async () => {
    const clock = wallClock()
    const limiter = memoryRateLimiter(clock)
    await limiter.take('one', 1)
    clock.move(WINDOW_MS - 1)
    assert.equal(await limiter.take('one', 1), false)
    clock.move(1)
    assert.equal(limiter.allowance('one', 1).remaining, 1)
    assert.equal(await limiter.take('one', 1), true)
  })

  it('stays bounded under any number of subjects: newcomers share one count', async () => {
    const limiter = memoryRateLimiter(wallClock())
    for (let index = 0; index < 100_000; index++) await limiter.take(`address ${index}`, 1)
    assert.equal(await limiter.take('newcomer', 1), true)
    assert.equal(await limiter.take('another newcomer', 1), false)
    // Those who were there keep their own count.
    assert.equal(await limiter.take('address 5', 2), true)
  })
})
