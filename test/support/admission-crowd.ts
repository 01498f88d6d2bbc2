import assert from 'node:assert/strict'
import type { LaneLimits, LaneStatus } from '../../src/queue/lane.ts'
import type { Admission, Decision, Ticket } from '../../src/queue/admission.ts'
import type { HandClock } from './hand-clock.ts'

export const narrow: LaneLimits = { tokenBudget: 10, maxConcurrentRequests: 2, maxQueueDepth: 60, maxWaitMs: 100 }
export const wide: LaneLimits = { ...narrow, tokenBudget: 1000, maxConcurrentRequests: 50 }
export const hasty: LaneLimits = { ...narrow, maxWaitMs: 20 }

/** What a caller does as soon as it is notified of its admission. */
export type Reaction = 'stay' | 'leave' | 'enter' | 'throw'

interface Caller {
  readonly number: number
  readonly cost: number
  readonly dueAtMs: number
  ticket: Ticket | undefined
  outcome?: Decision
  hasLeft: boolean
}

export const misbehaviour = new Error('a caller that fails')

/** The callers of one lane. Each checks its decision against the contract of `Admission`. */
export function crowd(admission: Admission, clock: HandClock) {
  const callers: Caller[] = []
  let limits = narrow
  let lastAdmitted = -1
  admission.setLanes(new Map([['lane', limits]]))

  const waiting = () => callers.filter(({ outcome, hasLeft }) => outcome === undefined && !hasLeft)

  function enter(cost: number, reaction: Reaction): void {
    const caller: Caller = {
      number: callers.length,
      cost,
      dueAtMs: clock.monotonic() + limits.maxWaitMs,
      ticket: undefined,
      hasLeft: false,
    }
    callers.push(caller)
    try {
      const returned = admission.enter({ lane: 'lane', workspace: 'acme', cost }, (decision, ticket) => {
        caller.ticket = ticket
        receive(caller, decision)
        if (decision.kind === 'admitted') react(caller, reaction)
      })
      assert.equal(caller.ticket ?? returned, returned, 'the callback and the return value have the same ticket')
      if (!caller.hasLeft) caller.ticket = returned
    } catch (error) {
      if (error !== misbehaviour) throw error
    }
  }

  function receive(caller: Caller, decision: Decision): void {
    assert.equal(caller.outcome, undefined, 'one outcome')
    assert.equal(caller.hasLeft, false, 'no decision after leaving')
    caller.outcome = decision
    if (decision.kind === 'admitted') {
      assert.ok(caller.number > lastAdmitted, 'admissions are notified in the order of arrival')
      lastAdmitted = caller.number
    } else if (decision.kind === 'overloaded') {
      assert.ok(clock.monotonic() >= caller.dueAtMs, 'overloaded only after the maximum wait')
    }
  }

  function react(caller: Caller, reaction: Reaction): void {
    if (reaction === 'leave') leave(caller)
    if (reaction === 'enter') enter(caller.cost, 'stay')
    if (reaction === 'throw') {
      caller.hasLeft = true
      // This caller never leaves by itself.
      caller.ticket = undefined
      throw misbehaviour
    }
  }

  function leave(caller: Caller): void {
    caller.hasLeft ||= caller.ticket !== undefined
    caller.ticket?.leave()
  }

  function setLimits(next: LaneLimits): void {
    limits = next
    admission.setLanes(new Map([['lane', next]]))
  }

  /** Holds at any time: every caller without an answer has a place, and none keeps it beyond its maximum wait. */
  function inspect({ inFlightRequests, committedTokens, queueDepth }: LaneStatus): void {
    const inFlight = callers.filter(({ outcome, hasLeft }) => outcome?.kind === 'admitted' && !hasLeft)
    assert.ok(inFlight.length <= inFlightRequests)
    assert.ok(inFlight.reduce((sum, { cost }) => sum + cost, 0) <= committedTokens)
    assert.ok(queueDepth <= waiting().filter(({ dueAtMs }) => dueAtMs > clock.monotonic()).length)
  }

  /** Holds once all callers are notified: those without an outcome wait behind a head that does not fit. */
  function inspectAtRest(status: LaneStatus): void {
    inspect(status)
    const { inFlightRequests, committedTokens, queueDepth } = status
    const [head, ...others] = waiting()
    assert.equal(queueDepth, head === undefined ? 0 : others.length + 1)
    if (head === undefined) return
    const isFull = inFlightRequests >= limits.maxConcurrentRequests
    assert.ok(isFull || committedTokens + head.cost > limits.tokenBudget, 'a head that fits waits')
  }

  async function inspectWhenAllHaveLeft(): Promise<void> {
    for (const caller of callers) leave(caller)
    const { inFlightRequests, committedTokens, queueDepth } = (await admission.status()).get('lane')!
    assert.deepEqual([inFlightRequests, committedTokens, queueDepth], [0, 0, 0])
  }

  return { callers, waiting, enter, leave, setLimits, inspect, inspectAtRest, inspectWhenAllHaveLeft }
}
