import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openPoll } from '../../src/batches/poll.ts'
import type { AlarmClock } from '../../src/shared/clock.ts'
import { turn } from '../support/hand-clock.ts'

/** A poll, and the pause that it has set its timer to. */
function stage() {
  const state = { isBusy: false, works: 0, pauseMs: -1, ring: (): void => {} }
  const clock = {
    after(ms: number, ring: () => void) {
      Object.assign(state, { pauseMs: ms, ring })
      return () => void (state.pauseMs = -1)
    },
  } as AlarmClock
  const poll = openPoll(clock, async () => {
    state.works++
    return state.isBusy
  })
  async function pauseAfterNext(): Promise<number> {
    state.ring()
    await turn()
    return state.pauseMs
  }
  return { state, poll, pauseAfterNext }
}

describe('a poll for work', () => {
  it('begins at once, and has longer and longer pauses while there is none', async () => {
    const { state, pauseAfterNext } = stage()
    assert.equal(state.pauseMs, 0)
    const pauses: number[] = []
    for (let round = 0; round < 5; round++) pauses.push(await pauseAfterNext())
    assert.deepEqual(pauses, [2000, 4000, 8000, 10_000, 10_000])
    state.isBusy = true
    assert.deepEqual([await pauseAfterNext(), await pauseAfterNext()], [1000, 1000])
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
