import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openPoll } from '../../src/batches/poll.ts'
import type { AlarmClock } from '../../src/shared/clock.ts'
import { turn } from '../support/hand-clock.ts'

/** A poll, and the pause that it has set its timer to. */
function stage() {
  const state = { nextMs: 500, works: 0, pauseMs: -1, ring: (): void => {} }
  const clock = {
    after(ms: number, ring: () => void) {
      Object.assign(state, { pauseMs: ms, ring })
      return () => void (state.pauseMs = -1)
    },
  } as AlarmClock
  const poll = openPoll(clock, async () => {
    state.works++
    return state.nextMs
  })
  return { state, poll }
}

describe('a poll for work', () => {
  it('begins at once, and looks again after the time that its work names', async () => {
    const { state } = stage()
    assert.equal(state.pauseMs, 0)
    for (const nextMs of [500, 10_000]) {
      state.nextMs = nextMs
      state.ring()
      await turn()
      assert.equal(state.pauseMs, nextMs)
    }
  })

  it('works at once when woken, and again if it is woken meanwhile', async () => {
    const { state, poll } = stage()
    poll.wake()
    poll.wake()
    assert.equal(state.pauseMs, -1, 'its timer has stopped')
    await turn()
    assert.equal(state.works, 2)
  })

  it('works no more once it is closed', async () => {
    const { state, poll } = stage()
    poll.wake()
    await poll.close()
    poll.wake()
    await turn()
    assert.deepEqual([state.works, state.pauseMs], [1, -1])
  })
})
