import assert from 'node:assert/strict'
import { beforeEach, describe, it, type TestContext } from 'node:test'
import { memoryAdmission } from '../../src/queue/memory.ts'
import { Entry } from '../../src/queue/lane-adapter.ts'
import type { LaneLimits } from '../../src/queue/lane.ts'
import type { Decision, Ticket } from '../../src/queue/admission.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { noBatchLoad } from '../support/lane.ts'
import { handClock, turn } from '../support/hand-clock.ts'

const limits: LaneLimits = { tokenBudget: 1000, maxConcurrentRequests: 1, maxQueueDepth: 100_000, maxWaitMs: 500 }

/**
 * Far more turns of the event loop than any test needs. A broken outbox could keep delivering forever. Then the running
 * test must fail, and the file must end.
 */
const TURNS_MAX = 5000
const { setImmediate: nextTurn } = globalThis
let turns = 0
globalThis.setImmediate = Object.assign((callback: () => void) => {
  if (++turns > TURNS_MAX) throw new Error(`more than ${TURNS_MAX} turns of the event loop`)
  return nextTurn(callback)
}, nextTurn)
beforeEach(() => (turns = 0))

/** An admission with one lane, and the decisions its callers have received, in order. */
function oneLane(t: TestContext, changes: Partial<LaneLimits> = {}) {
  const clock = handClock(t.mock.timers)
  const admission = memoryAdmission(clock)
  const setLane = (changes: Partial<LaneLimits>) => admission.setLanes(new Map([['lane', { ...limits, ...changes }]]))
  setLane(changes)
  const received: string[] = []
  return {
    clock,
    admission,
    received,
    enter: (name: string, cost = 1) =>
      admission.enter({ lane: 'lane', workspace: 'acme', cost }, (decision) =>
        received.push(`${name} ${text(decision)}`),
      ),
    change: setLane,
    figures: async () => {
      const lane = (await admission.status()).get('lane')
      return lane && [lane.inFlightRequests, lane.committedTokens, lane.queueDepth]
    },
  }
}

function text(decision: Decision): string {
  return decision.kind === 'admitted' ? `admitted after ${decision.waitMs}` : decision.kind
}

describe('entering', () => {
  it('[Q1] is decided before enter returns if there is room', async (t) => {
    const { enter, received, figures } = oneLane(t)
    enter('ann', 300)
    assert.deepEqual(received, ['ann admitted after 0'])
    assert.deepEqual(await figures(), [1, 300, 0])
  })

  it('counts the places of a workspace until each has left', async (t) => {
    const { enter, received } = oneLane(t, { maxConcurrentRequests: 3, maxRequestsPerWorkspace: 2 })
    const [ann] = [enter('ann'), enter('bob')]
    ann.leave()
    for (const name of ['cat', 'dan']) enter(name)
    assert.deepEqual(received.slice(2), ['cat admitted after 0', 'dan workspace_queue_full'])
  })

  it('[Q4][Q7] is refused before enter returns if there is no room', (t) => {
    const { enter, received } = oneLane(t, { maxQueueDepth: 0 })
    enter('ann')
    enter('bob')
    enter('large', 1001)
    assert.deepEqual(received, ['ann admitted after 0', 'bob queue_full', 'large too_large'])
  })

  it('[Q2][Q5] waits in the order of arrival, and reports how long it waited', (t) => {
    const { enter, received, clock } = oneLane(t)
    const ann = enter('ann')
    const bob = enter('bob')
    enter('cat')
    clock.advance(40)
    ann.leave()
    clock.advance(2)
    bob.leave()
    assert.deepEqual(received, ['ann admitted after 0', 'bob admitted after 40', 'cat admitted after 42'])
  })

  it('is refused as closed if the lane is not open', (t) => {
    const { admission } = oneLane(t)
    const received: Decision[] = []
    admission.enter({ lane: 'elsewhere', workspace: 'acme', cost: 1 }, (decision) => received.push(decision)).leave()
    assert.deepEqual(received, [{ kind: 'closed' }])
  })
})

describe('the ticket', () => {
  it('[Q1] is returned with a decision that is made before enter returns', async (t) => {
    const { admission, figures } = oneLane(t)
    let given: Ticket | undefined
    const returned = admission.enter(
      { lane: 'lane', workspace: 'acme', cost: 1 },
      (_decision, ticket) => (given = ticket),
    )
    assert.equal(given, returned)
    given.leave()
    assert.deepEqual(await figures(), [0, 0, 0])
  })

  it('[Q2] is returned with a decision that is made after a wait', async (t) => {
    const { admission, enter, figures } = oneLane(t)
    const ann = enter('ann')
    let given: Ticket | undefined
    const returned = admission.enter(
      { lane: 'lane', workspace: 'acme', cost: 1 },
      (_decision, ticket) => (given = ticket),
    )
    assert.equal(given, undefined)
    ann.leave()
    assert.equal(given, returned)
    returned.leave()
    assert.deepEqual(await figures(), [0, 0, 0])
  })
})

describe('leaving', () => {
  it('[Q1] gives the charge back once, however often it is called', async (t) => {
    const { enter, figures } = oneLane(t, { maxConcurrentRequests: 2 })
    const ann = enter('ann', 10)
    enter('bob', 20)
    ann.leave()
    ann.leave()
    assert.deepEqual(await figures(), [1, 20, 0])
  })

  it('[Q2] the queue means never receiving a decision', async (t) => {
    const { enter, received, clock, figures } = oneLane(t)
    const ann = enter('ann')
    enter('bob').leave()
    assert.deepEqual(await figures(), [1, 1, 0])
    ann.leave()
    clock.advance(1000)
    assert.deepEqual(received, ['ann admitted after 0'])
  })
})

describe('the maximum wait', () => {
  it('[Q6] is measured by the clock that never jumps, with one timer for the lane', (t) => {
    const { enter, received, clock } = oneLane(t)
    const timeouts = t.mock.method(globalThis, 'setTimeout')
    for (const name of ['ann', 'bob', 'cat']) enter(name)
    clock.advance(300)
    enter('dan')
    assert.equal(timeouts.mock.callCount(), 1)
    clock.advance(199)
    assert.equal(received.length, 1)
    clock.advance(1)
    assert.deepEqual(received.slice(1), ['bob overloaded', 'cat overloaded'])
    clock.advance(300)
    assert.deepEqual(received.slice(3), ['dan overloaded'])
  })

  it('[Q6] can be lowered for later arrivals, and the timer follows', (t) => {
    const { enter, received, clock, change } = oneLane(t)
    enter('ann')
    enter('bob')
    change({ maxWaitMs: 100 })
    enter('cat')
    clock.advance(100)
    assert.deepEqual(received.slice(1), ['cat overloaded'])
    clock.advance(400)
    assert.deepEqual(received.slice(2), ['bob overloaded'])
  })

  it('[Q6] survives a timer that fires early', (t) => {
    const { enter, received, clock } = oneLane(t)
    enter('ann')
    enter('bob')
    t.mock.timers.tick(500)
    assert.equal(received.length, 1)
    clock.advance(500)
    assert.deepEqual(received.slice(1), ['bob overloaded'])
  })

  it('[Q10] may be longer than the longest timer', (t) => {
    const month = 31 * 24 * 3_600_000
    const { enter, received, clock } = oneLane(t, { maxWaitMs: month })
    const timeouts = t.mock.method(globalThis, 'setTimeout')
    enter('ann')
    enter('bob')
    assert.equal(timeouts.mock.calls[0]?.arguments[1], 2 ** 31 - 1)
    clock.advance(month - 1)
    assert.equal(received.length, 1)
    clock.advance(1)
    assert.deepEqual(received.slice(1), ['bob overloaded'])
  })

  it('[Q6] does not keep the process alive', (t) => {
    const timeouts = t.mock.method(globalThis, 'setTimeout')
    const admission = memoryAdmission(systemClock)
    admission.setLanes(new Map([['lane', limits]]))
    const tickets = [1, 2].map(() => admission.enter({ lane: 'lane', workspace: 'acme', cost: 1 }, () => {}))
    assert.equal(timeouts.mock.calls[0]?.result?.hasRef(), false)
    for (const ticket of tickets) ticket.leave()
  })
})

describe('a burst of freed capacity', () => {
  const crowd = Array.from({ length: 100 }, (_, index) => `caller ${index}`)

  it('[Q5] is announced in slices, one per turn, in the order of arrival', async (t) => {
    const { enter, received, change, figures } = oneLane(t, { maxConcurrentRequests: 0 })
    for (const name of crowd) enter(name)
    change({ maxConcurrentRequests: 100 })
    assert.deepEqual(await figures(), [100, 100, 0])
    const counts = [received.length]
    for (let turns = 0; turns < 3; turns += 1) {
      await turn()
      counts.push(received.length)
    }
    assert.deepEqual(counts, [32, 64, 96, 100])
    assert.deepEqual(
      received,
      crowd.map((name) => `${name} admitted after 0`),
    )
  })

  it('[Q2] is not overtaken by a later arrival that fits', async (t) => {
    const { enter, received, change } = oneLane(t, { maxConcurrentRequests: 0 })
    for (const name of crowd) enter(name)
    change({ maxConcurrentRequests: 200 })
    enter('late')
    for (let turns = 0; turns < 5; turns += 1) await turn()
    assert.equal(received.indexOf('late admitted after 0'), crowd.length)
  })

  it('[Q2] skips a caller that leaves before it is notified, and returns its charge', async (t) => {
    const { enter, received, change, figures } = oneLane(t, { maxConcurrentRequests: 0 })
    const tickets = crowd.map((name) => enter(name))
    change({ maxConcurrentRequests: 100 })
    tickets.at(-1)?.leave()
    for (let turns = 0; turns < 5; turns += 1) await turn()
    assert.equal(received.length, 99)
    assert.deepEqual(await figures(), [99, 99, 0])
  })

  it('[Q5] does not delay the callers of another lane', async (t) => {
    const { enter, change, admission } = oneLane(t, { maxConcurrentRequests: 0 })
    admission.setLanes(
      new Map(['lane', 'other'].map((lane) => [lane, { ...limits, maxConcurrentRequests: lane === 'lane' ? 0 : 1 }])),
    )
    const first = admission.enter({ lane: 'other', workspace: 'acme', cost: 1 }, () => {})
    let isAdmitted = false
    admission.enter({ lane: 'other', workspace: 'acme', cost: 1 }, () => (isAdmitted = true))
    for (const name of crowd) enter(name)
    change({ maxConcurrentRequests: 100 })
    first.leave()
    assert.ok(isAdmitted)
    await turn()
  })
})

describe('a caller that acts as soon as it is notified', () => {
  it('[Q5] may leave at once, even a queue of 20,000 in a row', async (t) => {
    const { admission, figures, enter } = oneLane(t)
    const first = enter('first')
    let notified = 0
    for (let index = 0; index < 20_000; index += 1) {
      const ticket = admission.enter({ lane: 'lane', workspace: 'acme', cost: 1 }, () => {
        notified += 1
        ticket.leave()
      })
    }
    first.leave()
    for (let turns = 0; turns < 20_000 / 32; turns += 1) await turn()
    assert.equal(notified, 20_000)
    assert.deepEqual(await figures(), [0, 0, 0])
  })

  it('[Q2] may enter again, behind everyone who waits', (t) => {
    const { admission, enter, received } = oneLane(t)
    const ann = enter('ann')
    const bob = admission.enter({ lane: 'lane', workspace: 'acme', cost: 1 }, () => {
      received.push('bob')
      enter('bob again')
    })
    const cat = enter('cat')
    ann.leave()
    bob.leave()
    cat.leave()
    assert.deepEqual(received, ['ann admitted after 0', 'bob', 'cat admitted after 0', 'bob again admitted after 0'])
  })

  it('[Q1] and throws when it is admitted at once makes enter throw, and its place is free', async (t) => {
    const { admission, enter, received, figures } = oneLane(t)
    const fail = () => {
      enter('bob')
      throw new Error('no')
    }
    assert.throws(() => admission.enter({ lane: 'lane', workspace: 'acme', cost: 1 }, fail), /no/)
    assert.deepEqual(received, ['bob admitted after 0'])
    assert.deepEqual(await figures(), [1, 1, 0])
  })

  it('[Q5] and throws after a wait passes its place to the next, and the error is not lost', async (t) => {
    const { admission, enter, received, figures } = oneLane(t)
    const later: (() => void)[] = []
    t.mock.method(globalThis, 'queueMicrotask', (callback: () => void) => later.push(callback))
    const ann = enter('ann')
    admission.enter({ lane: 'lane', workspace: 'acme', cost: 1 }, () => {
      throw new Error('no')
    })
    enter('cat')
    ann.leave()
    assert.deepEqual(received, ['ann admitted after 0', 'cat admitted after 0'])
    assert.deepEqual(await figures(), [1, 1, 0])
    assert.throws(() => later[0]?.(), /no/)
  })
})

describe('a lane that is missing from the new set', () => {
  it('[Q2] serves all waiting requests, refuses new ones, and disappears with the last request', async (t) => {
    const { admission, enter, received, figures } = oneLane(t)
    const ann = enter('ann')
    const bob = enter('bob')
    admission.setLanes(new Map())
    enter('cat')
    ann.leave()
    assert.deepEqual(received, ['ann admitted after 0', 'cat closed', 'bob admitted after 0'])
    assert.deepEqual(await figures(), [1, 1, 0])
    bob.leave()
    assert.equal(await figures(), undefined)
  })

  it('[Q2] opens again with its charges when it is added back', async (t) => {
    const { admission, enter, figures, change } = oneLane(t)
    const ann = enter('ann', 5)
    admission.setLanes(new Map())
    change({})
    assert.deepEqual(await figures(), [1, 5, 0])
    ann.leave()
    assert.deepEqual(await figures(), [0, 0, 0])
  })

  it('[Q2] leaves nothing behind that affects a later lane with its name', async (t) => {
    const { admission, enter, figures, change } = oneLane(t)
    const ann = enter('ann')
    admission.setLanes(new Map())
    ann.leave()
    change({})
    enter('bob')
    ann.leave()
    assert.deepEqual(await figures(), [1, 1, 0])
  })
})

it('[Q5] closing refuses all waiting and later requests, in every lane, and lets the rest finish', async (t) => {
  const { admission, enter, received, figures, change } = oneLane(t)
  const ann = enter('ann')
  enter('bob')
  admission.close()
  enter('cat')
  change({ maxConcurrentRequests: 5 })
  enter('dan')
  admission.setLanes(new Map(['lane', 'new'].map((lane) => [lane, limits])))
  admission.enter({ lane: 'new', workspace: 'acme', cost: 1 }, (decision) => received.push(`eve ${text(decision)}`))
  assert.deepEqual(received, ['ann admitted after 0', 'bob closed', 'cat closed', 'dan closed', 'eve closed'])
  ann.leave()
  assert.deepEqual(await figures(), [0, 0, 0])
})

it('[Q8] the status shows every open lane', async (t) => {
  const { admission, enter } = oneLane(t)
  const other = { ...limits, tokenBudget: 7 }
  admission.setLanes(
    new Map([
      ['lane', limits],
      ['other', other],
    ]),
  )
  enter('ann', 3)
  enter('bob', 3)
  assert.deepEqual(
    [...(await admission.status())],
    [
      ['lane', { limits, inFlightRequests: 1, committedTokens: 3, queueDepth: 1, batch: noBatchLoad, oldestWaitMs: 0 }],
      ['other', { limits: other, ...noBatchLoad, batch: noBatchLoad, oldestWaitMs: 0 }],
    ],
  )
})

describe('a lane that has ended', () => {
  it('leaves no timer behind', (t) => {
    let alarms = 0
    const clock = handClock(t.mock.timers)
    const admission = memoryAdmission({
      ...clock,
      after(ms, ring) {
        alarms += 1
        const cancel = clock.after(ms, ring)
        return () => {
          alarms -= 1
          cancel()
        }
      },
    })
    admission.setLanes(new Map([['lane', limits]]))
    const running = admission.enter({ lane: 'lane', workspace: 'acme', cost: 1 }, () => {})
    admission.enter({ lane: 'lane', workspace: 'acme', cost: 1 }, () => {}).leave()
    assert.equal(alarms, 1, 'the timer fires once for nothing')
    admission.setLanes(new Map())
    running.leave()
    assert.equal(alarms, 0)
  })
})

it('[Q5] a caller gets one decision, whatever happens later', () => {
  const decisions: Decision[] = []
  const arrival = { lane: 'lane', workspace: 'acme', cost: 1 }
  const entry = new Entry(arrival, (decision) => decisions.push(decision), { leave() {}, keep: () => true })
  entry.notify({ kind: 'closed' })
  entry.notify({ kind: 'overloaded' })
  assert.deepEqual(decisions, [{ kind: 'closed' }])
})
