import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { liveFeed } from '../../src/admission/live-feed.ts'
import type { LaneLoad } from '../../src/ports/admission.ts'

/** A clock that the test moves, two seconds at a time. */
function stage(replicas = 1) {
  let now = 1_000_000
  let due: (() => void) | undefined
  const clock = {
    now: () => now,
    monotonic: () => now,
    after(_ms: number, act: () => void) {
      due = act
      return () => void (due = undefined)
    },
  }
  const limits = { tokenBudget: 1000, maxConcurrentRequests: 4, maxQueueDepth: 10, maxWaitMs: 1000 }
  const load: LaneLoad = { limits, inFlightRequests: 4, committedTokens: 4, queueDepth: 0, oldestWaitMs: 0 }
  const lanes = new Map([['lane', load]])
  const feed = liveFeed({ status: async () => lanes }, clock, () => replicas)
  return {
    feed,
    lanes,
    async look(ms = 2000) {
      now += ms
      due?.()
      await new Promise((resolve) => setImmediate(resolve))
      return feed.since(undefined).at(-1) ?? assert.fail('no sample')
    },
  }
}

describe('admissions in the live feed', () => {
  it('knows how long requests waited from the moment they were admitted, whether they have ended or not', async () => {
    const { feed, look } = stage()
    assert.equal((await look()).waits.get('lane'), undefined)
    for (const ms of [0, 0, 40, 900]) feed.admitted('lane', ms)
    const { waits, admitted } = await look()
    assert.deepEqual([waits.get('lane')?.p50, waits.get('lane')?.p95], [40, 900])
    assert.equal(admitted.get('lane'), 4)
    const later = await look(5 * 60_000 + 1)
    assert.deepEqual([later.waits.get('lane'), later.admitted.get('lane')], [undefined, 4])
  })

  it('counts admissions per minute over the time that it knows, and over all replicas', async () => {
    const { feed, look } = stage(3)
    for (let count = 0; count < 10; count += 1) feed.admitted('lane', 0)
    // It has run for a minute.
    assert.equal((await look(60_000)).waits.get('lane')?.perMinute, 30)
    assert.equal((await look(60_000)).waits.get('lane')?.perMinute, 15)
  })

  it('counts those of a busy lane too, of which it keeps only the last 200', async () => {
    const { feed, look } = stage()
    for (let second = 0; second < 60; second += 1) {
      for (let count = 0; count < 10; count += 1) feed.admitted('lane', 0)
      await look(1000)
    }
    const { waits, admitted } = await look(0)
    assert.equal(admitted.get('lane'), 600)
    assert.equal(Math.round(waits.get('lane')?.perMinute ?? 0), 600)
  })

  it('forgets lanes that have gone', async () => {
    const { feed, lanes, look } = stage()
    feed.admitted('lane', 0)
    lanes.clear()
    assert.equal((await look()).admitted.size, 0)
    feed.close()
  })
})
