import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { liveFeed } from '../../src/queue/live-feed.ts'
import type { LaneLoad } from '../../src/queue/admission.ts'
import type { Sample } from '../../src/queue/live.ts'
import { handClock, turn } from '../support/hand-clock.ts'

const EVERY_MS = 2000

function stage(t: TestContext, replicas = 1) {
  const hand = handClock(t.mock.timers)
  const state = { now: 36 ** 3, fails: false, looks: 0 }
  const lanes = new Map<string, LaneLoad>()
  const feed = liveFeed(
    {
      async status() {
        state.looks += 1
        if (state.fails) throw new Error('out of reach')
        return lanes
      },
    },
    { ...hand, now: () => state.now },
    () => replicas,
  )
  return {
    feed,
    state,
    lanes,
    async pass(ms: number) {
      state.now += ms
      hand.advance(ms)
      for (let turns = 0; turns < 2; turns += 1) await turn()
    },
  }
}

describe('the live feed of the lanes', () => {
  it('samples every two seconds, and names each sample after the start and its number', async (t) => {
    const { feed, pass, lanes } = stage(t)
    await pass(EVERY_MS - 1)
    assert.deepEqual(feed.since(undefined), [])
    await pass(1)
    await pass(EVERY_MS)
    const [first, second] = feed.since(undefined)
    assert.deepEqual([first?.id, second?.id], ['1000-1', '1000-2'])
    assert.equal(first?.lanes, lanes)
    assert.equal(second?.at, (first?.at ?? 0) + EVERY_MS)
    assert.deepEqual(feed.since('1000-1'), [second])
    assert.deepEqual(feed.since('1000-2'), [])
    assert.equal(feed.since('from before a restart').length, 2)
  })

  it('keeps the samples of ten minutes', async (t) => {
    const { feed, pass } = stage(t)
    for (let sample = 0; sample < 301; sample += 1) await pass(EVERY_MS)
    const kept = feed.since(undefined)
    assert.deepEqual([kept.length, kept[0]?.id, kept.at(-1)?.id], [300, '1000-2', '1000-301'])
  })

  it('skips a sample when the lanes cannot be read, and continues', async (t) => {
    const { feed, pass, state } = stage(t)
    state.fails = true
    await pass(EVERY_MS)
    state.fails = false
    await pass(EVERY_MS)
    assert.deepEqual(
      feed.since(undefined).map(({ id }) => id),
      ['1000-1'],
    )
  })

  it('has the waits of five minutes for each lane, of the last 200 requests that were admitted', async (t) => {
    const { feed, pass } = stage(t)
    for (let ms = 1; ms <= 201; ms += 1) feed.admitted('busy', ms)
    feed.admitted('quiet', 7)
    await pass(EVERY_MS)
    assert.deepEqual(
      feed.since(undefined)[0]?.waits,
      new Map([
        ['busy', { perMinute: 6000, p50: 102, p95: 192 }],
        ['quiet', { perMinute: 30, p50: 7, p95: 7 }],
      ]),
    )
    for (let passed = EVERY_MS; passed < 300_000; passed += EVERY_MS) await pass(EVERY_MS)
    assert.equal(feed.since(undefined).at(-1)?.waits.size, 2, 'until exactly five minutes have passed')
    await pass(EVERY_MS)
    assert.equal(feed.since(undefined).at(-1)?.waits.size, 0)
  })

  it('counts admissions per minute since it started, and over all replicas', async (t) => {
    const { feed, pass } = stage(t, 3)
    const rate = (): number | undefined => feed.since(undefined).at(-1)?.waits.get('lane')?.perMinute
    for (let count = 0; count < 10; count += 1) feed.admitted('lane', 0)
    for (let passed = 0; passed < 60_000; passed += EVERY_MS) await pass(EVERY_MS)
    assert.equal(rate(), 30)
    for (let passed = 0; passed < 60_000; passed += EVERY_MS) await pass(EVERY_MS)
    assert.equal(rate(), 15)
  })

  it('counts admissions of a busy lane too, of which it keeps the last 200', async (t) => {
    const { feed, pass } = stage(t)
    for (let passed = 0; passed < 60_000; passed += EVERY_MS) {
      for (let count = 0; count < 20; count += 1) feed.admitted('lane', 0)
      await pass(EVERY_MS)
    }
    assert.equal(feed.since(undefined).at(-1)?.waits.get('lane')?.perMinute, 600)
  })

  it('counts what each lane has admitted, until the lane is removed', async (t) => {
    const { feed, lanes, pass } = stage(t)
    lanes.set('lane', {} as LaneLoad)
    for (let count = 0; count < 300; count += 1) feed.admitted('lane', 0)
    feed.admitted('gone', 0)
    await pass(EVERY_MS)
    feed.admitted('lane', 0)
    await pass(EVERY_MS)
    assert.deepEqual(
      feed.since(undefined).map(({ admitted }) => [...admitted]),
      [[['lane', 300]], [['lane', 301]]],
    )
  })

  it('gives each new sample to the subscribers, and notifies them once when it ends', async (t) => {
    const { feed, pass, state } = stage(t)
    const seen: { readonly who: string; readonly what: string }[] = []
    const subscribe = (who: string): (() => void) =>
      feed.subscribe(
        ({ id }: Sample) => seen.push({ who, what: id }),
        () => seen.push({ who, what: 'closed' }),
      )
    const leave = subscribe('one')
    subscribe('two')
    await pass(EVERY_MS)
    leave()
    await pass(EVERY_MS)
    feed.close()
    feed.close()
    assert.deepEqual(
      seen.map(({ who, what }) => `${who} ${what}`),
      ['one 1000-1', 'two 1000-1', 'two 1000-2', 'two closed'],
    )
    subscribe('late')
    assert.deepEqual(seen.at(-1), { who: 'late', what: 'closed' })
    const { looks } = state
    await pass(10 * EVERY_MS)
    assert.equal(state.looks, looks, 'nothing is sampled after that')
  })

  it('ignores an answer that arrives after it has closed', async (t) => {
    const { feed, state } = stage(t)
    const hand = t.mock.timers
    hand.tick(EVERY_MS)
    assert.equal(state.looks, 1)
    feed.close()
    await turn()
    assert.deepEqual(feed.since(undefined), [])
  })
})
