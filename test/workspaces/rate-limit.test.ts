import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import {
  allowance,
  secondsLeft,
  take,
  windowAt,
  WINDOW_MS,
  type WindowCount,
  type RateLimiter,
  type RateSubject,
  memoryRateLimiter,
  knownAddresses,
  tighter,
} from '../../src/workspaces/rate-limits/rate-limit.ts'

fc.configureGlobal({ seed: 1 })

const limits = fc.integer({ min: 1, max: 20 })
/** Requests, as the pauses between them. Some are longer than a window. */
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

  it('[R2] reports the limit, what is left of it, and when it resets', () => {
    fc.assert(
      fc.property(limits, startTimes, fc.nat(40), (limit, now, requests) => {
        let held: WindowCount | undefined
        for (let index = 0; index < requests; index++) ({ held } = take(held, limit, now))
        const shown = allowance(held, limit, now)
        assert.equal(shown.limit, limit)
        assert.equal(shown.remaining, Math.max(0, limit - requests))
        assert.ok(Number.isInteger(shown.resetAt))
        assert.ok(shown.resetAt * 1000 > now && shown.resetAt * 1000 <= now + WINDOW_MS)
        // From that moment on, the whole allowance is available again.
        const next = shown.resetAt * 1000
        assert.equal(allowance(held, limit, next - 1).remaining, shown.remaining)
        assert.equal(allowance(held, limit, next).remaining, limit)
        assert.equal(take(held, limit, next).accepted, true)
      }),
    )
  })

  it('[R2] never reports less than 0 after the limit was lowered', () => {
    const held = { window: windowAt(90_000), count: 10 }
    assert.deepEqual(allowance(held, 4, 90_000), { limit: 4, remaining: 0, resetAt: 120 })
    assert.equal(take(held, 4, 90_000).accepted, false)
    assert.equal(take(held, 11, 90_000).accepted, true)
  })

  it('[R3] reports when to try again: the seconds left, from 1 to 59', () => {
    fc.assert(
      fc.property(startTimes, (now) => {
        const left = secondsLeft(now)
        assert.ok(Number.isInteger(left) && left >= 1 && left <= 59)
        const exact = (WINDOW_MS - (now % WINDOW_MS)) / 1000
        // Waiting that long reaches the next window, except in the first second of a window.
        if (exact <= 59) assert.ok(left >= exact && left < exact + 1)
      }),
    )
    assert.deepEqual([0, 1, 999, 1000, 59_000, 59_999].map(secondsLeft), [59, 59, 59, 59, 1, 1])
  })
})

/** A wall clock that only moves when told to. */
function wallClock() {
  let nowMs = Date.UTC(2026, 10, 15)
  return { now: () => nowMs, monotonic: () => 0, move: (ms: number) => void (nowMs += ms) }
}

const workspace = (id: string): RateSubject => ({ kind: 'workspace', id })
const address = (id: string | number): RateSubject => ({ kind: 'address', id: String(id) })

async function accepted(limiter: RateLimiter, subject: RateSubject, limit: number): Promise<boolean> {
  return (await limiter.take(subject, limit)).full === undefined
}

async function remaining(limiter: RateLimiter, subject: RateSubject, limit: number): Promise<number> {
  return (await limiter.peek(subject, limit)).allowance().remaining
}

/** As many addresses as have their own counts, one request each. */
async function crowd(limiter: RateLimiter): Promise<void> {
  for (let index = 0; index < 100_000; index++) await limiter.take(address(index), 1)
}

describe('the rate limiter in memory', () => {
  const one = workspace('one')

  it('[R1] counts each subject separately', async () => {
    const limiter = memoryRateLimiter(wallClock())
    assert.deepEqual(await Promise.all([1, 2, 3].map(() => accepted(limiter, one, 2))), [true, true, false])
    assert.equal(await accepted(limiter, workspace('other'), 2), true)
    assert.equal(await remaining(limiter, one, 2), 0)
    assert.equal(await remaining(limiter, workspace('other'), 2), 1)
    assert.equal(await remaining(limiter, workspace('nobody yet'), 2), 2)
  })

  it('[R1] starts again with every minute, for every subject', async () => {
    const clock = wallClock()
    const limiter = memoryRateLimiter(clock)
    await limiter.take(one, 1)
    clock.move(WINDOW_MS - 1)
    assert.equal(await accepted(limiter, one, 1), false)
    clock.move(1)
    assert.equal(await remaining(limiter, one, 1), 1)
    assert.equal(await accepted(limiter, one, 1), true)
  })

  it('[R1] refuses a request while no token is left, of the workspace or the key, unless it takes none', async () => {
    let now = 0
    const limiter = memoryRateLimiter({ now: () => now, monotonic: () => now })
    const subject = { kind: 'workspace', id: 'w' } as const
    const take = (id: string, limit: number, isChecked = true) =>
      limiter.take(subject, 100, undefined, { limit: 10, key: { id, limit }, isChecked })
    await (await take('k', 4)).tokens?.spend(4)
    assert.deepEqual((await take('k', 4)).full, { unit: 'tokens', isOfKey: true, limit: 4 })
    assert.equal((await take('k', 4, false)).full, undefined)
    const other = await take('other', 50)
    assert.equal(other.full, undefined)
    await other.tokens?.spend(6)
    assert.deepEqual((await take('other', 50)).full, { unit: 'tokens', isOfKey: false, limit: 10 })
    now += WINDOW_MS
    const next = await take('k', 4)
    assert.equal(next.full, undefined)
    await next.tokens?.spend(3)
    assert.equal((await take('k', 4)).full, undefined, 'tokens of an earlier minute do not count')
  })

  it('[R2] reports the allowance with less left, and of two with as much left that of the lower limit', () => {
    const of = (limit: number, remaining: number) => ({ limit, remaining, resetAt: 60 })
    for (const [one, other, shown] of [
      [of(9, 3), of(5, 4), of(9, 3)],
      [of(9, 4), of(5, 3), of(5, 3)],
      [of(9, 3), of(5, 3), of(5, 3)],
      [of(5, 3), of(9, 3), of(5, 3)],
    ] as const) {
      assert.deepEqual(tighter(one, other), shown)
    }
  })

  it('[R1] gives an address that it knows its own count, however many there are', () => {
    const addresses = knownAddresses(2)
    assert.deepEqual(
      ['a', 'b', 'c', 'a', 'b'].map((it) => addresses.place(it, 1)),
      ['a', 'b', '*', 'a', 'b'],
    )
    assert.equal(addresses.place('c', 2), 'c')
  })

  it('[R1] reads an allowance without counting a request', async () => {
    const limiter = memoryRateLimiter(wallClock())
    for (let times = 0; times < 5; times++) assert.equal(await remaining(limiter, one, 2), 2)
    assert.equal(await accepted(limiter, one, 2), true)
  })

  it('[R2] keeps the allowance of a decision up to date until the headers are sent', async () => {
    const clock = wallClock()
    const limiter = memoryRateLimiter(clock)
    const first = await limiter.take(one, 3)
    const seen = await limiter.peek(one, 3)
    assert.deepEqual([first.allowance().remaining, seen.allowance().remaining], [2, 2])
    const reset = first.allowance().resetAt
    await limiter.take(one, 3)
    assert.deepEqual([first.allowance().remaining, seen.allowance().remaining], [1, 1])
    clock.move(WINDOW_MS)
    assert.deepEqual(first.allowance(), { limit: 3, remaining: 3, resetAt: reset + 60 })
  })

  it('stays bounded with any number of addresses: new ones share one count', async () => {
    const limiter = memoryRateLimiter(wallClock())
    await crowd(limiter)
    assert.equal(await accepted(limiter, address('newcomer'), 1), true)
    assert.equal(await accepted(limiter, address('another newcomer'), 1), false)
    // Addresses that were there before keep their own count.
    assert.equal(await accepted(limiter, address(5), 2), true)
  })

  it('counts workspaces separately from any number of addresses', async () => {
    const limiter = memoryRateLimiter(wallClock())
    await crowd(limiter)
    for (const name of ['newcomer', 'another newcomer']) await limiter.take(address(name), 1)
    assert.deepEqual(await Promise.all([one, one, one, workspace('other')].map((it) => accepted(limiter, it, 2))), [
      true,
      true,
      false,
      true,
    ])
    assert.equal(await remaining(limiter, workspace('other'), 2), 1)
    // An address that looks like the id of a workspace is still counted as an address.
    assert.equal(await accepted(limiter, address('one'), 1), false)
  })

  it('forgets the addresses of past minutes: new addresses have counts of their own again', async () => {
    const clock = wallClock()
    const limiter = memoryRateLimiter(clock)
    await crowd(limiter)
    clock.move(WINDOW_MS)
    for (const name of ['newcomer', 'another newcomer']) assert.equal(await accepted(limiter, address(name), 1), true)
  })
})
