import assert from 'node:assert/strict'
import type { Decision, LaneLimits } from '../../src/core/admission/lane.ts'
import type { Admission, Ticket } from '../../src/ports/admission.ts'
import type { HandClock } from './hand-clock.ts'

export const narrow: LaneLimits = { tokenBudget: 10, maxConcurrentRequests: 2, maxQueueDepth: 60, maxWaitMs: 100 }
export const wide: LaneLimits = { ...narrow, tokenBudget: 1000, maxConcurrentRequests: 50 }
export const hasty: LaneLimits = { ...narrow, maxWaitMs: 20 }

/** What a caller does the moment it hears that it was admitted. */
export type Reaction = 'stay' | 'leave' | 'enter' | 'throw'

interface Caller {
  readonly number: number
  readonly cost: number
  readonly dueAtMs: number
  ticket?: Ticket
  outcome?: Decision
  hasLeft: boolean
}

export const misbehaviour = new Error('a caller that fails')

/** The callers of one lane, each checking what it hears against what the port promises. */
export function crowd(admission: Admission, clock: HandClock) {
  const callers: Caller[] = []
  let limits = narrow
  let lastAdmitted = -1
  admission.setLimits('lane', limits)

  const figures = () => admission.status().get('lane')!
  const waiting = () => callers.filter(({ outcome, hasLeft }) => outcome === undefined && !hasLeft)

  function enter(cost: number, reaction: Reaction): void {
    const caller: Caller = {
      number: callers.length,
      cost,
      dueAtMs: clock.monotonic() + limits.maxWaitMs,
      hasLeft: false,
    }
    callers.push(caller)
    try {
      caller.ticket = admission.enter('lane', cost, (decision) => {
        hear(caller, decision)
        if (decision.kind === 'admitted') react(caller, reaction)
      })
    } catch (error) {
      if (error !== misbehaviour) throw error
    }
  }

  function hear(caller: Caller, decision: Decision): void {
    assert.equal(caller.outcome, undefined, 'one outcome')
    assert.equal(caller.hasLeft, false, 'nothing is heard after leaving')
    caller.outcome = decision
    if (decision.kind === 'admitted') {
      assert.ok(caller.number > lastAdmitted, 'admissions are heard in the order of arrival')
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
      throw misbehaviour
    }
  }

  function leave(caller: Caller): void {
    caller.hasLeft ||= caller.ticket !== undefined
    caller.ticket?.leave()
  }

  function setLimits(next: LaneLimits): void {
    limits = next
    admission.setLimits('lane', next)
  }

  /** Holds at any time: whoever is still owed an answer has a place, and nobody keeps one beyond its time. */
  function inspect(): void {
    const { inFlightRequests, committedTokens, queueDepth } = figures()
    const inFlight = callers.filter(({ outcome, hasLeft }) => outcome?.kind === 'admitted' && !hasLeft)
    assert.ok(inFlight.length <= inFlightRequests)
    assert.ok(inFlight.reduce((sum, { cost }) => sum + cost, 0) <= committedTokens)
    assert.ok(queueDepth <= waiting().filter(({ dueAtMs }) => dueAtMs > clock.monotonic()).length)
  }

  /** Holds once everybody has been told: who has no outcome waits, behind a head that does not fit. */
  function inspectAtRest(): void {
    inspect()
    const { inFlightRequests, committedTokens, queueDepth } = figures()
    const [head, ...others] = waiting()
    assert.equal(queueDepth, head === undefined ? 0 : others.length + 1)
    if (head === undefined) return
    const isFull = inFlightRequests >= limits.maxConcurrentRequests
    assert.ok(isFull || committedTokens + head.cost > limits.tokenBudget, 'a head that fits waits')
  }

  function inspectWhenAllHaveLeft(): void {
    for (const caller of callers) leave(caller)
    const { inFlightRequests, committedTokens, queueDepth } = figures()
    assert.deepEqual([inFlightRequests, committedTokens, queueDepth], [0, 0, 0])
  }

  return { callers, waiting, enter, leave, setLimits, inspect, inspectAtRest, inspectWhenAllHaveLeft }
}
