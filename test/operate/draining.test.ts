import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { openDraining } from '../../src/operate/draining.ts'
import type { Admission } from '../../src/queue/admission.ts'
import { handClock, turn } from '../support/hand-clock.ts'

function stage(t: TestContext, drainMs: number) {
  const clock = handClock(t.mock.timers)
  const state = { inFlight: [0, 0], closed: 0, begun: 0, isFinished: false, drainMs }
  const admission = {
    ownStatus: () => new Map(state.inFlight.map((inFlightRequests, lane) => [`lane ${lane}`, { inFlightRequests }])),
    close: () => void state.closed++,
  } as unknown as Admission
  const draining = openDraining({
    admission: () => admission,
    clock,
    drainMs: () => state.drainMs,
    begun: () => void state.begun++,
  })
  void draining.finished.then(() => (state.isFinished = true))
  return {
    state,
    draining,
    async pass(ms: number): Promise<boolean> {
      clock.advance(ms)
      await turn()
      return state.isFinished
    },
  }
}

describe('a replica that drains', () => {
  it('refuses waiting requests once, however often it is asked to drain', (t) => {
    const { state, draining } = stage(t, 30_000)
    assert.equal(draining.isOn(), false)
    draining.begin()
    draining.begin()
    assert.deepEqual([draining.isOn(), state.closed, state.begun], [true, 1, 1])
  })

  it('leaves after a second if nothing runs, so that load balancers notice', async (t) => {
    const { draining, pass } = stage(t, 30_000)
    draining.begin()
    assert.equal(await pass(999), false)
    assert.equal(await pass(1), true)
  })

  it('leaves within a tenth of a second after the last request of any lane', async (t) => {
    const { state, draining, pass } = stage(t, 30_000)
    state.inFlight = [0, 1]
    draining.begin()
    assert.equal(await pass(1000), false)
    for (let looks = 0; looks < 50; looks++) assert.equal(await pass(100), false)
    state.inFlight = [0, 0]
    assert.equal(await pass(99), false)
    assert.equal(await pass(1), true)
  })

  it('leaves when its time is over, even if requests still run', async (t) => {
    const { state, draining, pass } = stage(t, 3000)
    state.inFlight = [1, 0]
    draining.begin()
    await pass(1000)
    for (let looks = 0; looks < 19; looks++) assert.equal(await pass(100), false)
    assert.equal(await pass(100), true)
  })

  it('does not leave early', async (t) => {
    const { state, draining, pass } = stage(t, 1101)
    state.inFlight = [1, 0]
    draining.begin()
    await pass(1000)
    assert.equal(await pass(100), false)
    assert.equal(await pass(100), true)
  })

  it('gives running requests all of its time, counted from its start, and never less than nothing', async (t) => {
    const { state, draining, pass } = stage(t, 3000)
    await pass(10_000)
    assert.equal(draining.leftMs(), 3000)
    draining.begin()
    assert.equal(draining.leftMs(), 3000)
    await pass(1000)
    draining.begin()
    assert.equal(draining.leftMs(), 2000)
    state.drainMs = 5000
    assert.equal(draining.leftMs(), 4000, 'a reload may change it')
    await pass(4001)
    assert.equal(draining.leftMs(), 0)
  })
})
