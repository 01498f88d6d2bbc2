import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { Decision, LaneArrival, LaneLoad, Ticket } from '../../src/queue/admission.ts'
import { openBatchGate } from '../../src/queue/redis/batch-gate.ts'
import { handClock } from '../support/hand-clock.ts'

/** A gate before a lane whose load the test sets. Each place that it lets in is decided as `decision` says. */
function gateStage(t: TestContext) {
  const clock = handClock(t.mock.timers)
  const load: { -readonly [Key in keyof LaneLoad]: LaneLoad[Key] } = {
    limits: { tokenBudget: 1000, maxConcurrentRequests: 16, maxQueueDepth: 10, maxWaitMs: 1000 },
    inFlightRequests: 0,
    committedTokens: 0,
    queueDepth: 0,
    oldestWaitMs: 0,
    batch: { inFlightRequests: 0, committedTokens: 0, queueDepth: 0 },
  }
  const state = { isAway: false, decision: { kind: 'admitted', waitMs: 0 } as Decision, left: 0 }
  const entered: LaneArrival[] = []
  const gate = openBatchGate(
    {
      enter(arrival, decided) {
        entered.push(arrival)
        const ticket = { leave: () => void state.left++, keep: () => true }
        decided(state.decision, ticket)
        return ticket
      },
      status: () => (state.isAway ? Promise.reject(new Error('Redis is away')) : Promise.resolve(load)),
      ownStatus: () => load,
    },
    clock,
  )
  const events: string[] = []
  const enter = (name: string, { cost = 1, maxWaitMs = Infinity } = {}): Ticket =>
    gate.enter(
      { lane: 'lane', workspace: name, cost, batch: { maxWaitMs, preempted() {} } },
      { maxWaitMs, preempted() {} },
      ({ kind }) => void events.push(`${name} ${kind}`),
    )
  const poll = async (): Promise<void> => {
    clock.advance(50)
    await turn()
  }
  return { gate, clock, load, state, entered, events, enter, poll }
}

describe('batch places of a replica, before a lane that replicas share', () => {
  it('enter as online requests, a quarter of the room at a time, up to half of the places', async (t) => {
    const { load, entered, events, enter, poll } = gateStage(t)
    for (const name of ['a', 'b', 'c', 'd']) enter(name)
    assert.deepEqual(events, [])
    load.inFlightRequests = 1
    await poll()
    assert.deepEqual(events, ['a admitted', 'b admitted'])
    assert.deepEqual(entered[0], { lane: 'lane', workspace: 'a', cost: 1, batch: undefined })
    load.inFlightRequests = 7
    await poll()
    assert.deepEqual(events.slice(2), ['c admitted'])
    load.inFlightRequests = 8
    await poll()
    assert.equal(events.length, 3)
  })

  it('wait while a request waits in the lane, half of the tokens are used, or Redis is away', async (t) => {
    const { load, state, events, enter, poll } = gateStage(t)
    enter('a', { cost: 100 })
    load.queueDepth = 1
    await poll()
    load.queueDepth = 0
    load.inFlightRequests = 1
    load.committedTokens = 401
    await poll()
    load.committedTokens = 400
    state.isAway = true
    await poll()
    assert.deepEqual(events, [])
    state.isAway = false
    await poll()
    assert.deepEqual(events, ['a admitted'])
  })

  it('that cost more than half of the tokens have an empty lane to themselves, and those beyond the budget are refused', async (t) => {
    const { load, events, enter, poll } = gateStage(t)
    enter('large', { cost: 1000 })
    enter('next', { cost: 1 })
    enter('huge', { cost: 1001 })
    assert.deepEqual(events, ['huge too_large'])
    load.inFlightRequests = 1
    await poll()
    assert.equal(events.length, 1)
    load.inFlightRequests = 0
    await poll()
    assert.deepEqual(events.slice(1), ['large admitted'])
  })

  it('are refused at their maximum wait, beyond the depth, and when the gate closes; what leaves is never decided', async (t) => {
    const { gate, clock, events, enter, poll, load } = gateStage(t)
    load.queueDepth = 1
    enter('flex', { maxWaitMs: 500 })
    enter('gone').leave()
    for (let waiting = 1; waiting < 10; waiting++) enter(`line ${waiting}`)
    enter('one too many')
    assert.deepEqual(events, ['one too many queue_full'])
    clock.advance(499)
    assert.equal(events.length, 1)
    clock.advance(1)
    assert.deepEqual(events.slice(1), ['flex overloaded'])
    gate.close()
    assert.deepEqual(events.slice(2, 4), ['line 1 closed', 'line 2 closed'])
    assert.equal(events.length, 11)
    load.queueDepth = 0
    await poll()
    assert.equal(events.length, 11)
  })

  it('pass on what the lane decides, and leave it', async (t) => {
    const { state, events, enter, poll } = gateStage(t)
    const first = enter('first', { maxWaitMs: 100 })
    await poll()
    first.leave()
    assert.deepEqual([events, state.left], [['first admitted'], 1])
    state.decision = { kind: 'unavailable' }
    enter('second')
    await poll()
    assert.deepEqual(events.slice(1), ['second unavailable'])
  })
})
