import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openLane, Place } from '../../src/queue/lane.ts'
import type { LaneLimits } from '../../src/queue/lane.ts'
import { noBatchLoad } from '../support/lane.ts'

const limits: LaneLimits = { tokenBudget: 1000, maxConcurrentRequests: 2, maxQueueDepth: 3, maxWaitMs: 500 }

/** A lane whose callers have names, with the decisions in order. */
function lane(changes: Partial<LaneLimits> = {}) {
  const decisions: string[] = []
  const names = new Map<Place, string>()
  const state = openLane<Place>({ ...limits, ...changes }, (place, decision) => {
    const wait = decision.kind === 'admitted' ? ` after ${decision.waitMs}` : ''
    decisions.push(`${names.get(place)} ${decision.kind}${wait}`)
  })
  return {
    ...state,
    decisions,
    /** `name` arrives. Returns the kind of the decision, or `queued`. */
    enter: (name: string, cost: number, nowMs: number, workspace = 'acme') => {
      const place = new Place(cost, workspace)
      names.set(place, name)
      return { place, answer: state.arrive(place, nowMs)?.kind ?? 'queued' }
    },
    figures: () => {
      const { inFlightRequests, committedTokens, queueDepth } = state.status()
      return { inFlightRequests, committedTokens, queueDepth }
    },
  }
}

describe('an arrival', () => {
  it('[Q1] is admitted at once below both limits, and charged with its cost', () => {
    const { enter, figures } = lane()
    assert.equal(enter('ann', 600, 0).answer, 'admitted')
    assert.deepEqual(figures(), { inFlightRequests: 1, committedTokens: 600, queueDepth: 0 })
  })

  it('[Q1] may use the budget to the last token', () => {
    const { enter } = lane()
    assert.equal(enter('ann', 600, 0).answer, 'admitted')
    assert.equal(enter('bob', 400, 0).answer, 'admitted')
  })

  it('[Q2] is queued when the budget would be exceeded', () => {
    const { enter, figures } = lane()
    enter('ann', 600, 0)
    assert.equal(enter('bob', 401, 0).answer, 'queued')
    assert.deepEqual(figures(), { inFlightRequests: 1, committedTokens: 600, queueDepth: 1 })
  })

  it('[Q2] is queued when all concurrent requests are taken', () => {
    const { enter } = lane()
    enter('ann', 1, 0)
    enter('bob', 1, 0)
    assert.equal(enter('cat', 1, 0).answer, 'queued')
  })

  it('[Q2] does not pass a queue, even if it would fit', () => {
    const { enter } = lane()
    enter('ann', 600, 0)
    assert.equal(enter('bob', 500, 0).answer, 'queued')
    assert.equal(enter('cat', 1, 0).answer, 'queued')
  })

  it('[Q4] is refused at once when the queue is at its depth', () => {
    const { enter, figures } = lane({ maxConcurrentRequests: 1 })
    for (const name of ['ann', 'bob', 'cat', 'dan']) enter(name, 1, 0)
    assert.equal(enter('eve', 1, 0).answer, 'queue_full')
    assert.deepEqual(figures(), { inFlightRequests: 1, committedTokens: 1, queueDepth: 3 })
  })

  it('[Q4] finds no queue at all if the depth is 0', () => {
    const { enter } = lane({ maxQueueDepth: 0, maxConcurrentRequests: 1 })
    assert.equal(enter('ann', 1, 0).answer, 'admitted')
    assert.equal(enter('bob', 1, 0).answer, 'queue_full')
  })

  it('[Q6] is not queued if the maximum wait is 0', () => {
    const { enter } = lane({ maxWaitMs: 0, maxConcurrentRequests: 1 })
    assert.equal(enter('ann', 1, 0).answer, 'admitted')
    assert.equal(enter('bob', 1, 0).answer, 'overloaded')
  })

  it('[Q7] larger than the whole budget is too large, busy or not', () => {
    const { enter, figures } = lane()
    assert.equal(enter('ann', 1001, 0).answer, 'too_large')
    assert.equal(enter('bob', 1000, 0).answer, 'admitted')
    assert.deepEqual(figures(), { inFlightRequests: 1, committedTokens: 1000, queueDepth: 0 })
  })

  it('[Q6] first expires the places that are due, and may use the room that they leave', () => {
    const { enter, decisions } = lane({ maxQueueDepth: 1, maxConcurrentRequests: 1 })
    enter('ann', 1, 0)
    enter('bob', 1, 0)
    assert.equal(enter('cat', 1, 500).answer, 'queued')
    assert.deepEqual(decisions, ['bob overloaded'])
  })

  it('costs a whole number of tokens', () => {
    for (const cost of [-1, 0.5, NaN, Infinity]) assert.throws(() => new Place(cost, 'acme'), RangeError)
  })
})

describe('freed capacity', () => {
  it('[Q5] goes to the head of the queue, with the time it waited', () => {
    const { enter, leave, decisions } = lane({ maxConcurrentRequests: 1 })
    const ann = enter('ann', 1, 10)
    enter('bob', 1, 20)
    enter('cat', 1, 30)
    leave(ann.place, 75)
    assert.deepEqual(decisions, ['bob admitted after 55'])
  })

  it('[Q5] goes to as many as fit, in the order of arrival', () => {
    const { enter, leave, decisions, figures } = lane({ maxConcurrentRequests: 3 })
    const ann = enter('ann', 1000, 0)
    for (const name of ['bob', 'cat', 'dan']) enter(name, 400, 0)
    leave(ann.place, 5)
    assert.deepEqual(decisions, ['bob admitted after 5', 'cat admitted after 5'])
    assert.deepEqual(figures(), { inFlightRequests: 2, committedTokens: 800, queueDepth: 1 })
  })

  it('[Q2][Q7] is kept for a large head: no request behind it overtakes it', () => {
    const { enter, leave, decisions } = lane({ maxConcurrentRequests: 3 })
    const ann = enter('ann', 500, 0)
    const bob = enter('bob', 500, 0)
    enter('large', 1000, 0)
    enter('small', 1, 0)
    leave(ann.place, 1)
    assert.deepEqual(decisions, [])
    leave(bob.place, 2)
    assert.deepEqual(decisions, ['large admitted after 2'])
  })

  it('[Q5] reaches the callers behind a head that leaves', () => {
    const { enter, leave, decisions } = lane({ maxConcurrentRequests: 3 })
    enter('ann', 600, 0)
    const large = enter('large', 500, 0)
    enter('small', 100, 0)
    leave(large.place, 3)
    assert.deepEqual(decisions, ['small admitted after 3'])
  })

  it('[Q5][Q6] reaches the callers behind a head that expires', () => {
    const { enter, expire, decisions } = lane({ maxConcurrentRequests: 3 })
    enter('ann', 600, 0)
    enter('large', 500, 0)
    enter('small', 100, 1)
    expire(500)
    assert.deepEqual(decisions, ['large overloaded', 'small admitted after 499'])
  })
})

describe('a caller that leaves', () => {
  it('[Q1] returns exactly its charge, once', () => {
    const { enter, leave, figures } = lane()
    const ann = enter('ann', 600, 0)
    enter('bob', 300, 0)
    leave(ann.place, 1)
    leave(ann.place, 2)
    assert.deepEqual(figures(), { inFlightRequests: 1, committedTokens: 300, queueDepth: 0 })
  })

  it('[Q2] the middle of the queue makes room and never gets a decision', () => {
    const { enter, leave, decisions, figures } = lane({ maxConcurrentRequests: 1 })
    const ann = enter('ann', 1, 0)
    enter('bob', 1, 0)
    const cat = enter('cat', 1, 0)
    enter('dan', 1, 0)
    leave(cat.place, 1)
    leave(cat.place, 1)
    assert.deepEqual(figures(), { inFlightRequests: 1, committedTokens: 1, queueDepth: 2 })
    leave(ann.place, 2)
    assert.deepEqual(decisions, ['bob admitted after 2'])
  })

  it('[Q4] after a refusal changes nothing', () => {
    const { enter, leave, figures } = lane({ maxConcurrentRequests: 1, maxQueueDepth: 0 })
    enter('ann', 1, 0)
    leave(enter('bob', 1, 0).place, 1)
    assert.deepEqual(figures(), { inFlightRequests: 1, committedTokens: 1, queueDepth: 0 })
  })
})

describe('the maximum wait', () => {
  it('[Q6] ends with overloaded, not a moment earlier', () => {
    const { enter, expire, nextDeadlineMs, decisions } = lane({ maxConcurrentRequests: 1 })
    assert.equal(nextDeadlineMs(), Infinity)
    enter('ann', 1, 0)
    enter('bob', 1, 10)
    enter('cat', 1, 20)
    assert.equal(nextDeadlineMs(), 510)
    expire(509.9)
    assert.deepEqual(decisions, [])
    expire(510)
    assert.deepEqual(decisions, ['bob overloaded'])
    assert.equal(nextDeadlineMs(), 520)
  })

  it('[Q6] is not exceeded when capacity is freed too late', () => {
    const { enter, leave, decisions } = lane({ maxConcurrentRequests: 1 })
    const ann = enter('ann', 1, 0)
    enter('bob', 1, 0)
    enter('cat', 1, 100)
    leave(ann.place, 530)
    assert.deepEqual(decisions, ['bob overloaded', 'cat admitted after 430'])
  })

  it('[Q6][Q7] is the one in force on arrival: a lowered one may let a later arrival expire first', () => {
    const { enter, setLimits, expire, nextDeadlineMs, decisions } = lane({ maxConcurrentRequests: 1 })
    enter('ann', 1, 0)
    enter('bob', 1, 0)
    setLimits({ ...limits, maxConcurrentRequests: 1, maxWaitMs: 100 }, 10)
    enter('cat', 1, 20)
    assert.equal(nextDeadlineMs(), 120)
    expire(120)
    assert.deepEqual(decisions, ['cat overloaded'])
    assert.equal(nextDeadlineMs(), 500)
  })
})

describe('changed limits', () => {
  it('[Q7] that are higher admit every request that now fits, at once', () => {
    const { enter, setLimits, decisions } = lane({ maxConcurrentRequests: 1 })
    for (const name of ['ann', 'bob', 'cat', 'dan']) enter(name, 1, 0)
    setLimits({ ...limits, maxConcurrentRequests: 3 }, 7)
    assert.deepEqual(decisions, ['bob admitted after 7', 'cat admitted after 7'])
  })

  it('[Q7] that are lower evict no request, and admit none until there is room below them', () => {
    const { enter, setLimits, leave, decisions, figures } = lane({ maxConcurrentRequests: 3 })
    const guests = ['ann', 'bob', 'cat', 'dan', 'eve', 'fay'].map((name) => enter(name, 100, 0).place)
    setLimits({ ...limits, maxConcurrentRequests: 1, tokenBudget: 150, maxQueueDepth: 1 }, 1)
    assert.deepEqual(figures(), { inFlightRequests: 3, committedTokens: 300, queueDepth: 3 })
    assert.equal(enter('gus', 100, 1).answer, 'queue_full')
    for (const guest of guests.slice(0, 2)) leave(guest, 2)
    assert.deepEqual(decisions, [])
    for (const guest of guests.slice(2, 3)) leave(guest, 3)
    assert.deepEqual(decisions, ['dan admitted after 3'])
  })

  it('[Q7] that leave a waiting request larger than the budget refuse it when its turn comes', () => {
    const { enter, setLimits, leave, decisions } = lane({ maxConcurrentRequests: 1 })
    const ann = enter('ann', 100, 0)
    enter('bob', 100, 0)
    enter('large', 800, 0)
    enter('cat', 100, 0)
    setLimits({ ...limits, maxConcurrentRequests: 2, tokenBudget: 200 }, 1)
    assert.deepEqual(decisions, ['bob admitted after 1', 'large too_large'])
    leave(ann.place, 2)
    assert.deepEqual(decisions.slice(2), ['cat admitted after 2'])
  })

  it('[Q7] of 0 concurrent requests stop a lane without refusing any request', () => {
    const { enter, setLimits, decisions } = lane({ maxConcurrentRequests: 0 })
    assert.equal(enter('ann', 1, 0).answer, 'queued')
    setLimits(limits, 9)
    assert.deepEqual(decisions, ['ann admitted after 9'])
  })

  it('[Q7] must be whole numbers from 0 up', () => {
    for (const wrong of [-1, 1.5, NaN, Infinity]) {
      for (const name of Object.keys(limits)) assert.throws(() => lane({ [name]: wrong }), RangeError)
    }
  })
})

describe('a closed lane', () => {
  it('refuses all waiting and later requests, and lets the rest finish', () => {
    const { enter, leave, close, decisions, figures } = lane({ maxConcurrentRequests: 1 })
    const ann = enter('ann', 1, 0)
    enter('bob', 1, 0)
    enter('cat', 1, 0)
    close()
    assert.deepEqual(decisions, ['bob closed', 'cat closed'])
    assert.equal(enter('dan', 1, 0).answer, 'closed')
    assert.deepEqual(figures(), { inFlightRequests: 1, committedTokens: 1, queueDepth: 0 })
    leave(ann.place, 1)
    assert.deepEqual(figures(), { inFlightRequests: 0, committedTokens: 0, queueDepth: 0 })
  })
})

it('[Q8] the status of a lane shows one instant, with its limits', () => {
  const { enter, status } = lane()
  enter('ann', 700, 0)
  enter('bob', 400, 0)
  assert.deepEqual(status(), { limits, inFlightRequests: 1, committedTokens: 700, queueDepth: 1, batch: noBatchLoad })
})
