import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { scripts } from '../../src/queue/redis/lane-scripts.ts'
import { redisAdmission } from '../../src/queue/redis/admission.ts'
import type { LaneLimits } from '../../src/queue/lane.ts'
import type { Decision, Ticket } from '../../src/queue/admission.ts'
import { noBatchLoad } from '../support/lane.ts'
import { scriptedLink, type SentScript } from '../support/scripted-link.ts'
import { handClock, turn } from '../support/hand-clock.ts'

const limits: LaneLimits = { tokenBudget: 100, maxConcurrentRequests: 4, maxQueueDepth: 5, maxWaitMs: 60_000 }
const LEASE_MS = 1000
const LANE = 'weir:{lane}:lane'

/** A replica with one lane. The test plays the part of Redis. */
function stage(t: { mock: { timers: Parameters<typeof handClock>[0] } }, laneLimits = limits) {
  const clock = handClock(t.mock.timers)
  const scripted = scriptedLink({ leaseMs: LEASE_MS })
  const { sent, state, next } = scripted
  state.proven = { sinceMs: clock.monotonic(), untilMs: clock.monotonic() + LEASE_MS }
  const admission = redisAdmission(scripted.link, clock)
  admission.setLanes(new Map([['lane', laneLimits]]))

  async function answer(script: SentScript['script'], value: unknown): Promise<SentScript> {
    const call = next(script)
    call.answer(value)
    await turn()
    return call
  }
  return {
    ...scripted,
    heartbeat: scripted.heartbeat,
    receive: scripted.receive,
    clock,
    admission,
    answer,
    /** Joins, answers the first heartbeat, and leaves the decisions to Redis. */
    async begin(promised: readonly [requests: string, tokens: string] = ['0', '0']) {
      scripted.join({ quietUntilMs: clock.monotonic() })
      await answer(scripts.join, 0)
      await answer(scripts.heartbeat, [...promised, 2, [], []])
      assert.deepEqual(sent, [])
    },
    enter(cost = 10) {
      const decisions: Decision[] = []
      const ticket: Ticket = admission.enter({ lane: 'lane', workspace: 'acme', cost }, (decision) =>
        decisions.push(decision),
      )
      return { decisions, ticket }
    },
    enterBatch({ cost = 10, maxWaitMs = Infinity } = {}) {
      const events: string[] = []
      const batch = { maxWaitMs, preempted: () => void events.push('preempted') }
      const ticket: Ticket = admission.enter({ lane: 'lane', workspace: 'acme', cost, batch }, ({ kind }) =>
        events.push(kind),
      )
      return { events, ticket }
    },
    lose() {
      scripted.lose()
    },
    async pass(ms: number) {
      clock.advance(ms)
      await turn()
    },
  }
}

describe('a lane whose Redis is scripted', () => {
  it('[Q1] counts its lease from when it sends a heartbeat, not from the answer', async (t) => {
    const { begin, heartbeat, next, pass, enter, answer, sent } = stage(t)
    await begin()
    heartbeat()
    const call = next(scripts.heartbeat)
    await pass(900)
    call.answer(['0', '0', 2, [], []])
    await turn()
    await pass(99)
    const early = enter()
    await answer(scripts.enter, ['admitted'])
    assert.deepEqual(early.decisions, [{ kind: 'admitted', waitMs: 0 }])
    const late = enter()
    await pass(1)
    // The lease of the heartbeat has ended: Redis may have given the place to another replica.
    await answer(scripts.enter, ['admitted'])
    assert.deepEqual(late.decisions, [])
    assert.equal(sent[0]?.script.sha, scripts.join.sha, 'it joins again and sends all that it has')
  })

  it('[Q1] counts its lease from when it sends a join, not from the answer', async (t) => {
    const { join, clock, next, pass, enter, answer, sent } = stage(t)
    join({ quietUntilMs: clock.monotonic() })
    const joining = next(scripts.join)
    await pass(999)
    joining.answer(0)
    await turn()
    await answer(scripts.heartbeat, ['0', '0', 2, [], []])
    // The heartbeat was sent 999 ms after the join and renews the lease, so only the later request fails.
    await pass(999)
    const served = enter()
    await answer(scripts.enter, ['admitted'])
    assert.equal(served.decisions.length, 1)
    await pass(1)
    const late = enter()
    await answer(scripts.enter, ['admitted'])
    assert.deepEqual([late.decisions, sent[0]?.script.sha], [[], scripts.join.sha])
  })

  it('[Q1] sends no heartbeat when the answer of a join is older than the lease, and joins again', async (t) => {
    const { join, clock, next, pass, sent } = stage(t)
    join({ quietUntilMs: clock.monotonic() })
    const joining = next(scripts.join)
    await pass(LEASE_MS)
    joining.answer(0)
    await turn()
    assert.deepEqual(
      sent.map(({ script }) => script.sha),
      [scripts.join.sha],
    )
  })

  it('[Q1] ignores a grant whose confirmation is older than the lease', async (t) => {
    const { begin, enter, answer, receive, next, pass, sent } = stage(t)
    await begin()
    const { decisions } = enter()
    await answer(scripts.enter, ['queued', '7'])
    receive('weir:told:one', `${LANE}\none.1 acme\ngranted 5`)
    await turn()
    const confirmation = next(scripts.acknowledge)
    assert.deepEqual(confirmation.values, ['one', 1, 'one.1 acme'])
    await pass(LEASE_MS)
    confirmation.answer(1)
    await turn()
    assert.deepEqual([decisions, sent[0]?.script.sha], [[], scripts.join.sha])
    // The join carries its position in the queue and how long it may still wait.
    assert.deepEqual(sent[0]?.values.slice(-4), ['one.1 acme', 'queued', 10, '7 59000000'])
  })

  it('takes a grant that Redis confirms, with the wait by its own clock', async (t) => {
    const { begin, enter, answer, receive, pass, next } = stage(t)
    await begin()
    const first = enter()
    const second = enter()
    await answer(scripts.enter, ['queued', '7'])
    await answer(scripts.enter, ['queued', '8'])
    await pass(300)
    for (const id of ['one.1 acme', 'one.2 acme', 'one.1 acme']) receive('weir:told:one', `${LANE}\n${id}\ngranted 5`)
    await turn()
    const confirmation = next(scripts.acknowledge)
    assert.deepEqual(confirmation.values.slice(2), ['one.1 acme', 'one.2 acme'], 'in one call, each once')
    second.ticket.leave()
    assert.deepEqual(next(scripts.leave).values, ['one', 1, 'one.2 acme'])
    confirmation.answer(1)
    await turn()
    assert.deepEqual([first.decisions, second.decisions], [[{ kind: 'admitted', waitMs: 300 }], []])
  })

  it('confirms no grant that arrives just before Redis is lost', async (t) => {
    const { begin, enter, answer, receive, lose, sent } = stage(t)
    await begin()
    const { decisions } = enter()
    await answer(scripts.enter, ['queued', '7'])
    receive('weir:told:one', `${LANE}\none.1 acme\ngranted 5`)
    lose()
    await turn()
    assert.deepEqual(
      sent.filter(({ script }) => script.sha === scripts.acknowledge.sha),
      [],
    )
    assert.deepEqual(decisions, [])
  })

  it('confirms a grant again that it was confirming when Redis was lost', async (t) => {
    const { begin, enter, answer, receive, lose, join, clock, next } = stage(t)
    await begin()
    const { decisions } = enter()
    await answer(scripts.enter, ['queued', '7'])
    receive('weir:told:one', `${LANE}\none.1 acme\ngranted 5`)
    await turn()
    next(scripts.acknowledge)
    lose()
    join({ incarnation: 2, quietUntilMs: clock.monotonic() })
    await answer(scripts.join, 0)
    await answer(scripts.heartbeat, ['0', '0', 2, ['one.1 acme'], []])
    await answer(scripts.acknowledge, 1)
    assert.deepEqual(decisions, [{ kind: 'admitted', waitMs: 0 }])
  })

  it('returns a grant of a request that has left, and ignores messages of other lanes', async (t) => {
    const { begin, receive, next, sent } = stage(t)
    await begin()
    receive('weir:told:one', `${LANE}\none.9 acme\ngranted 5`)
    receive('weir:told:one', 'weir:{other}:lane\none.9 acme\ngranted 5')
    assert.deepEqual(next(scripts.leave).values, ['one', 1, 'one.9 acme'])
    assert.deepEqual(sent, [])
  })

  for (const kind of ['queue_full', 'overloaded', 'too_large'] as const) {
    it(`reports that Redis answered ${kind}, and stops counting the request`, async (t) => {
      const { begin, enter, answer, admission, sent } = stage(t)
      await begin()
      const { decisions } = enter()
      await answer(scripts.enter, [kind])
      assert.deepEqual(decisions, [{ kind }])
      assert.equal(admission.ownStatus().get('lane')?.queueDepth, 0)
      assert.deepEqual(sent, [])
    })
  }

  it('reports that Redis removed a waiting request from the queue', async (t) => {
    const { begin, enter, answer, receive } = stage(t)
    await begin()
    const { decisions } = enter()
    await answer(scripts.enter, ['queued', '7'])
    receive('weir:told:one', `${LANE}\none.1 acme\noverloaded`)
    await turn()
    assert.deepEqual(decisions, [{ kind: 'overloaded' }])
  })

  it('lets Redis limit how many requests wait', async (t) => {
    const { begin, enter, sent } = stage(t)
    await begin()
    const callers = Array.from({ length: limits.maxQueueDepth + 1 }, () => enter())
    assert.equal(sent.length, callers.length)
    assert.ok(callers.every(({ decisions }) => decisions.length === 0))
  })

  it('joins once, however often the link reports that it is there', async (t) => {
    const { begin, join, clock, sent } = stage(t)
    await begin()
    join({ quietUntilMs: clock.monotonic() })
    assert.deepEqual(sent, [])
  })

  it('joins again when Redis does not know the replica', async (t) => {
    const { begin, enter, answer, heartbeat, next, sent } = stage(t)
    await begin()
    const { decisions } = enter()
    await answer(scripts.enter, ['unknown'])
    const again = next(scripts.join)
    assert.deepEqual(again.values.slice(-4, -1), ['one.1 acme', 'queued', 10])
    again.answer(0)
    await turn()
    await answer(scripts.heartbeat, ['0', '0', 2, [], []])
    heartbeat()
    await answer(scripts.heartbeat, null)
    assert.deepEqual([decisions, sent.map(({ script }) => script.sha)], [[], [scripts.join.sha]])
  })

  it('does not count a heartbeat that is answered after Redis was lost', async (t) => {
    const { begin, heartbeat, next, lose, pass, state, join } = stage(t)
    await begin()
    heartbeat()
    const call = next(scripts.heartbeat)
    lose()
    call.answer(['4', '40', 2, [], []])
    await turn()
    state.proven = { sinceMs: 0, untilMs: Infinity }
    await pass(10)
    join({ incarnation: 2 })
    assert.deepEqual(next(scripts.join).values.slice(11, 13), [0, 0])
  })

  it('ignores the decisions of a session that has ended', async (t) => {
    const { begin, enter, next, lose, sent } = stage(t)
    await begin()
    const callers = [enter(), enter(), enter()]
    const calls = callers.map(() => next(scripts.enter))
    lose()
    for (const [index, kind] of ['admitted', 'queue_full', 'unknown'].entries()) calls[index]?.answer([kind])
    await turn()
    assert.deepEqual(
      callers.map(({ decisions }) => decisions),
      [[], [], []],
    )
    assert.deepEqual(sent, [])
  })

  it('ignores the answer to a join that arrives after Redis was lost', async (t) => {
    const { join, lose, next, clock, admission, sent } = stage(t)
    join({ quietUntilMs: clock.monotonic() })
    const joining = next(scripts.join)
    lose()
    joining.answer(0)
    await turn()
    assert.deepEqual([sent, admission.state()], [[], 'apart'])
  })

  it('has joined with the answer to its newest join, also if the one before failed meanwhile', async (t) => {
    const { join, lose, next, clock, admission } = stage(t)
    join({ quietUntilMs: clock.monotonic() })
    const first = next(scripts.join)
    lose()
    join({ incarnation: 2, quietUntilMs: clock.monotonic() })
    const second = next(scripts.join)
    first.fail()
    await turn()
    second.answer(0)
    await turn()
    assert.equal(admission.state(), 'joined')
  })

  it('takes each grant once, however often it is confirmed', async (t) => {
    const { begin, enter, answer, receive, next, sent } = stage(t)
    await begin()
    const first = enter()
    const second = enter()
    await answer(scripts.enter, ['queued', '7'])
    await answer(scripts.enter, ['queued', '8'])
    receive('weir:told:one', `${LANE}\none.1 acme\ngranted 5`)
    await turn()
    next(scripts.acknowledge).answer(1)
    await turn()
    receive('weir:told:one', `${LANE}\none.2 acme\ngranted 5`)
    await turn()
    assert.deepEqual(next(scripts.acknowledge).values.slice(2), ['one.2 acme'])
    receive('weir:told:one', `${LANE}\none.1 acme\ngranted 5`)
    await turn()
    assert.deepEqual([first.decisions.length, second.decisions.length, sent], [1, 0, []])
  })

  it('answers a recall by returning its promise at once', async (t) => {
    const { begin, receive, next } = stage(t)
    await begin(['2', '20'])
    receive('weir:told:one', `${LANE}\n\nrecall`)
    assert.deepEqual(next(scripts.heartbeat).values, ['one', 1, 1_000_000, 0, 0])
  })

  it('confirms no grant of a request that has left in the same turn', async (t) => {
    const { begin, enter, answer, receive, next, sent } = stage(t)
    await begin()
    const [leaving] = [enter(), enter()]
    for (const number of ['7', '8']) await answer(scripts.enter, ['queued', number])
    for (const number of [1, 2]) receive('weir:told:one', `${LANE}\none.${number} acme\ngranted 5`)
    leaving.ticket.leave()
    await turn()
    assert.deepEqual(next(scripts.leave).values.slice(2), ['one.1 acme'])
    assert.deepEqual(next(scripts.acknowledge).values.slice(2), ['one.2 acme'])
    assert.deepEqual(sent, [])
  })

  it('spends nothing of its promise on requests that left before their admission was known', async (t) => {
    const { begin, enter, answer, receive, next, heartbeat } = stage(t)
    await begin(['3', '35'])
    const atOnce = enter()
    const entering = next(scripts.enter)
    atOnce.ticket.leave()
    next(scripts.leave)
    entering.answer(['admitted'])
    const later = enter()
    await answer(scripts.enter, ['queued', '7'])
    receive('weir:told:one', `${LANE}\none.2 acme\ngranted 5`)
    await turn()
    const confirming = next(scripts.acknowledge)
    later.ticket.leave()
    next(scripts.leave)
    confirming.answer(1)
    await turn()
    heartbeat()
    assert.deepEqual(next(scripts.heartbeat).values.slice(3), [3, 35])
  })

  it('sends the rest of its promise with each heartbeat', async (t) => {
    const { begin, enter, answer, heartbeat, next } = stage(t)
    await begin(['2', '25'])
    enter(10)
    await answer(scripts.enter, ['admitted'])
    heartbeat()
    assert.deepEqual(next(scripts.heartbeat).values.slice(3), [1, 15])
    for (const _ of [1, 2]) {
      enter(10)
      await answer(scripts.enter, ['admitted'])
    }
    heartbeat()
    assert.deepEqual(next(scripts.heartbeat).values.slice(3), [0, 0])
  })

  it('takes the grants that the answer to a heartbeat lists', async (t) => {
    const { begin, enter, answer, heartbeat, next } = stage(t)
    await begin()
    enter()
    await answer(scripts.enter, ['queued', '7'])
    heartbeat()
    await answer(scripts.heartbeat, ['0', '0', 2, ['one.1 acme'], []])
    assert.deepEqual(next(scripts.acknowledge).values.slice(2), ['one.1 acme'])
  })
})

const preempted = (number: number): string => `${LANE}\nbatch one.${number} acme\npreempted`

describe('a batch place whose Redis is scripted', () => {
  it('enters with its maximum wait, and is preempted by a message, once', async (t) => {
    const { begin, enterBatch, answer, receive, admission } = stage(t)
    await begin()
    const [line, flex] = [enterBatch(), enterBatch({ maxWaitMs: 5 })]
    assert.deepEqual((await answer(scripts['enter-batch'], ['admitted'])).values, [
      'one',
      1,
      'batch one.1 acme',
      10,
      -1,
    ])
    assert.equal((await answer(scripts['enter-batch'], ['queued', '7'])).values[4], 5000)
    const batch = { inFlightRequests: 1, committedTokens: 10, queueDepth: 1 }
    const own = { limits, inFlightRequests: 1, committedTokens: 10, queueDepth: 0, batch }
    assert.deepEqual(admission.ownStatus().get('lane'), own)
    receive('weir:told:one', preempted(1))
    receive('weir:told:one', preempted(1))
    receive('weir:told:one', preempted(9))
    assert.deepEqual([line.events, flex.events], [['admitted', 'preempted'], []])
    assert.equal(line.ticket.keep(), false)
  })

  it('that was preempted before its grant was confirmed waits anew when the replica joins again', async (t) => {
    const { begin, enterBatch, answer, receive, lose, join } = stage(t)
    await begin()
    const { events } = enterBatch()
    await answer(scripts['enter-batch'], ['queued', '7'])
    receive('weir:told:one', preempted(1))
    lose()
    join({ incarnation: 2 })
    await answer(scripts.join, 0)
    await answer(scripts.heartbeat, ['0', '0', 2, [], []])
    receive('weir:told:one', `${LANE}\nbatch one.1 acme\ngranted 5`)
    await turn()
    await answer(scripts.acknowledge, 1)
    assert.deepEqual(events, ['admitted'])
  })

  it('is kept without asking Redis, and ignores a preemption from then on', async (t) => {
    const { begin, enterBatch, answer, receive, next, sent } = stage(t)
    await begin()
    const { events, ticket } = enterBatch()
    await answer(scripts['enter-batch'], ['admitted'])
    assert.deepEqual([ticket.keep(), ticket.keep()], [true, true])
    receive('weir:told:one', preempted(1))
    assert.deepEqual(events, ['admitted'])
    assert.deepEqual(next(scripts.keep).values, ['one', 1, 'batch one.1 acme'])
    assert.deepEqual(sent, [])
  })

  it('learns of its admission before its preemption, and of a preemption from the answer to a heartbeat', async (t) => {
    const { begin, enterBatch, answer, receive, heartbeat } = stage(t)
    await begin()
    const { events } = enterBatch()
    await answer(scripts['enter-batch'], ['queued', '7'])
    receive('weir:told:one', `${LANE}\nbatch one.1 acme\ngranted 5`)
    receive('weir:told:one', preempted(1))
    await turn()
    assert.deepEqual(events, [])
    await answer(scripts.acknowledge, 1)
    assert.deepEqual(events, ['admitted', 'preempted'])
    const other = enterBatch()
    await answer(scripts['enter-batch'], ['admitted'])
    heartbeat()
    await answer(scripts.heartbeat, ['0', '0', 2, [], ['batch one.2 acme']])
    assert.deepEqual(other.events, ['admitted', 'preempted'])
  })

  it('may not wait, and still leaves time for Redis to answer', async (t) => {
    const { begin, enterBatch, answer } = stage(t)
    await begin()
    const { events } = enterBatch({ maxWaitMs: 0 })
    assert.deepEqual(events, [])
    assert.equal((await answer(scripts['enter-batch'], ['admitted'])).values[4], 0)
    assert.deepEqual(events, ['admitted'])
  })

  it('is sent with its start and its mark when the replica joins again, and kept if that came after', async (t) => {
    const { begin, enterBatch, answer, receive, lose, join, next, pass } = stage(t)
    await begin()
    const [, kept, late] = [enterBatch(), enterBatch(), enterBatch(), enterBatch(), enterBatch({ maxWaitMs: 900 })]
    for (let count = 0; count < 4; count += 1) await answer(scripts['enter-batch'], ['admitted'])
    await answer(scripts['enter-batch'], ['queued', '7'])
    await pass(100)
    kept.ticket.keep()
    next(scripts.keep)
    receive('weir:told:one', preempted(4))
    lose()
    join({ incarnation: 2 })
    const joining = next(scripts.join)
    const places = [
      ['batch one.1 acme', 'in_flight', 10, 100_000],
      ['batch one.2 acme', 'kept', 10, 100_000],
      ['batch one.3 acme', 'in_flight', 10, 100_000],
      ['batch one.4 acme', 'preempted', 10, 100_000],
      ['batch one.5 acme', 'queued', 10, '7 800000'],
    ]
    assert.deepEqual(joining.values.slice(14), places.flat())
    late.ticket.keep()
    joining.answer(0)
    await turn()
    assert.deepEqual(next(scripts.keep).values, ['one', 2, 'batch one.3 acme'])
    next(scripts.heartbeat)
  })

  it('gives way to a request of its replica without Redis, and none starts there', async (t) => {
    const { begin, enterBatch, enter, answer, lose, pass, heartbeat, state } = stage(t)
    await begin()
    const [first, second] = [enterBatch(), enterBatch()]
    for (let count = 0; count < 2; count += 1) await answer(scripts['enter-batch'], ['admitted'])
    state.proven = { sinceMs: 0, untilMs: Infinity }
    lose()
    second.ticket.keep()
    const waits = enterBatch({ cost: 1 })
    const online = enter()
    await pass(1000)
    heartbeat()
    await turn()
    assert.deepEqual([first.events, second.events], [['admitted', 'preempted'], ['admitted']])
    assert.equal(first.ticket.keep(), false)
    first.ticket.leave()
    await turn()
    assert.deepEqual([online.decisions.length, waits.events], [1, []])
    online.ticket.leave()
    await turn()
    assert.deepEqual(waits.events, [])
  })
})

describe('a lane without Redis', () => {
  it('[Q1] queues its part of the depth: the whole divided by the replicas, rounded up', async (t) => {
    const { begin, lose, enter, answer, join, next, state } = stage(t)
    await begin()
    state.proven = { sinceMs: 0, untilMs: Infinity }
    const running = enter()
    await answer(scripts.enter, ['admitted'])
    const kinds = (callers: readonly { readonly decisions: readonly Decision[] }[]) =>
      callers.map(({ decisions }) => decisions.map(({ kind }) => kind).join())
    lose()
    const callers = Array.from({ length: 4 }, () => enter())
    assert.deepEqual(kinds(callers), ['', '', '', 'queue_full'])
    for (const { ticket } of [running, ...callers]) ticket.leave()
    // The same while an epoch is quiet, and after Redis did not answer a join.
    join({ incarnation: 2 })
    next(scripts.join).answer(500_000)
    await turn()
    const inQuiet = Array.from({ length: 4 }, () => enter())
    assert.deepEqual(kinds(inQuiet), ['', '', '', 'queue_full'])
    for (const { ticket } of inQuiet) ticket.leave()
    join({ incarnation: 3 })
    next(scripts.join).fail()
    await turn()
    assert.deepEqual(kinds(Array.from({ length: 4 }, () => enter())), ['', '', '', 'queue_full'])
  })

  it('[Q1] serves what it has in flight and was promised, after trying to reconnect for a second', async (t) => {
    const { begin, lose, enter, answer, pass, state, heartbeat } = stage(t)
    await begin(['1', '15'])
    const running = enter(10)
    await answer(scripts.enter, ['admitted'])
    heartbeat()
    await answer(scripts.heartbeat, ['1', '15', 2, [], []])
    state.proven = { sinceMs: 0, untilMs: Infinity }
    lose()
    const [first, second] = [enter(10), enter(10)]
    await pass(999)
    heartbeat()
    assert.deepEqual([first.decisions, second.decisions], [[], []])
    await pass(1)
    heartbeat()
    await turn()
    assert.deepEqual([first.decisions, second.decisions], [[{ kind: 'admitted', waitMs: 1000 }], []])
    running.ticket.leave()
    await turn()
    assert.equal(second.decisions.length, 1, 'a request that ends makes room for the next')
  })

  it('[Q1] serves as soon as it may, and no longer than it may, between two heartbeats', async (t) => {
    const { begin, lose, enter, pass, state, clock } = stage(t)
    await begin(['1', '15'])
    state.proven = { sinceMs: 0, untilMs: clock.monotonic() + 5000 }
    lose()
    const early = enter()
    await pass(1000)
    const running = enter(1)
    await turn()
    assert.deepEqual(early.decisions, [{ kind: 'admitted', waitMs: 1000 }])
    early.ticket.leave()
    await turn()
    assert.equal(running.decisions.length, 1)
    const waiting = enter()
    await pass(3900)
    running.ticket.leave()
    await turn()
    assert.deepEqual(waiting.decisions, [], 'other replicas may have been given the place')
  })

  it('[Q1] lets requests wait while Redis answers its join, even if nothing proves its allotment', async (t) => {
    const { join, clock, enter, state, answer } = stage(t)
    state.proven = { sinceMs: 0, untilMs: 0 }
    assert.deepEqual(enter().decisions, [{ kind: 'unavailable' }])
    join({ quietUntilMs: clock.monotonic() })
    const waiting = enter()
    assert.deepEqual(waiting.decisions, [])
    await answer(scripts.join, 0)
    await answer(scripts.enter, ['admitted'])
    assert.deepEqual(waiting.decisions, [{ kind: 'admitted', waitMs: 0 }])
  })

  it('[Q1] sends one leave to Redis for a request, however it ended and however often it leaves', async (t) => {
    const { begin, enter, answer, sent } = stage(t)
    await begin()
    const [served, refused] = [enter(), enter()]
    await answer(scripts.enter, ['admitted'])
    await answer(scripts.enter, ['queue_full'])
    served.ticket.leave()
    assert.deepEqual((await answer(scripts.leave, 1)).values, ['one', 1, 'one.1 acme'])
    served.ticket.leave()
    refused.ticket.leave()
    await turn()
    assert.deepEqual([refused.decisions.length, sent], [1, []])
  })

  it('[Q1] refuses no waiting request if the depth was lowered before Redis was lost', async (t) => {
    const { begin, lose, enter, answer, admission, next, pass, state } = stage(t)
    await begin()
    const running = enter(10)
    await answer(scripts.enter, ['admitted'])
    const waiting = Array.from({ length: 5 }, () => enter(10))
    for (let number = 1; number <= waiting.length; number++) await answer(scripts.enter, ['queued', String(number)])
    admission.setLanes(new Map([['lane', { ...limits, maxQueueDepth: 1 }]]))
    next(scripts.limits)
    state.proven = { sinceMs: 0, untilMs: Infinity }
    lose()
    await pass(100)
    assert.deepEqual(
      waiting.map(({ decisions }) => decisions),
      waiting.map(() => []),
    )
    running.ticket.leave()
  })

  it('[Q1] stops a tenth of the lease before others may be given its allotment, and reports that state', async (t) => {
    const { begin, lose, enter, clock, pass, state, heartbeat, admission } = stage(t)
    await begin(['4', '40'])
    const untilMs = clock.monotonic() + 5000
    state.proven = { sinceMs: 0, untilMs }
    assert.equal(admission.state(), 'joined')
    lose()
    await pass(4899)
    heartbeat()
    assert.equal(admission.state(), 'apart')
    assert.deepEqual(enter().decisions, [{ kind: 'admitted', waitMs: 0 }])
    await pass(1)
    heartbeat()
    assert.equal(admission.state(), 'stopped')
    assert.deepEqual(enter().decisions, [{ kind: 'unavailable' }])
  })

  it('answers unavailable after the maximum wait without an allotment, and overloaded with one', async (t) => {
    for (const [promised, kind] of [
      [['0', '0'], 'unavailable'],
      [['1', '15'], 'overloaded'],
    ] as const) {
      const { begin, lose, enter, pass, state, heartbeat } = stage(t, { ...limits, maxWaitMs: 3000 })
      await begin(promised)
      state.proven = { sinceMs: 0, untilMs: Infinity }
      lose()
      await pass(1000)
      heartbeat()
      if (kind === 'overloaded') enter(15)
      const { decisions } = enter(15)
      await pass(2999)
      assert.deepEqual(decisions, [])
      await pass(1)
      assert.deepEqual(decisions, [{ kind }])
      t.mock.timers.reset()
    }
  })

  it('refuses a request that is larger than its allotment as unavailable, and one that never fits as too large', async (t) => {
    const { begin, lose, enter, pass, state, heartbeat } = stage(t)
    await begin(['1', '15'])
    state.proven = { sinceMs: 0, untilMs: Infinity }
    lose()
    await pass(1000)
    heartbeat()
    assert.deepEqual(enter(16).decisions, [{ kind: 'unavailable' }])
    assert.deepEqual(enter(101).decisions, [{ kind: 'too_large' }])
  })

  it('[Q1] sends its complete state when Redis is back: what is in flight, what waits and for how long, and its promise', async (t) => {
    const { begin, lose, enter, answer, pass, state, next, join, clock, heartbeat } = stage(t)
    await begin(['1', '15'])
    enter(10)
    await answer(scripts.enter, ['admitted'])
    enter(20)
    await answer(scripts.enter, ['queued', '33'])
    heartbeat()
    await answer(scripts.heartbeat, ['1', '15', 2, [], []])
    state.proven = { sinceMs: 0, untilMs: Infinity }
    lose()
    await pass(500)
    enter(30)
    await pass(100)
    join({ incarnation: 2, quietUntilMs: clock.monotonic() + 250 })
    const [name, incarnation, epoch, quietUs, leaseUs, ...rest] = next(scripts.join).values
    assert.deepEqual([name, incarnation, epoch, quietUs, leaseUs], ['one', 2, 'one', 250_000, 1_000_000])
    assert.deepEqual(rest.slice(0, 6), [100, 4, 5, 60_000_000, -1, '1 10 4 100 1 5'], 'the limits')
    assert.deepEqual(rest.slice(6, 9), [0, 1, 15], 'not the newest, and its promise')
    const places = [
      ['one.1 acme', 'in_flight', 10, '-'],
      ['one.2 acme', 'queued', 20, '33 59400000'],
      ['one.3 acme', 'queued', 30, '-100000 59900000'],
    ]
    assert.deepEqual(rest.slice(9), places.flat())
  })

  it('[Q1] sends what has changed while Redis answered its join', async (t) => {
    const { begin, lose, enter, answer, next, join, state, sent } = stage(t)
    await begin()
    const running = enter(10)
    await answer(scripts.enter, ['admitted'])
    state.proven = { sinceMs: 0, untilMs: Infinity }
    lose()
    join({ incarnation: 2 })
    const joining = next(scripts.join)
    running.ticket.leave()
    enter(20)
    joining.answer(0)
    await turn()
    assert.deepEqual(next(scripts.leave).values, ['one', 2, 'one.1 acme'])
    assert.deepEqual(next(scripts.enter).values, ['one', 2, 'one.2 acme', 20])
    next(scripts.heartbeat)
    assert.deepEqual(sent, [])
  })

  it('[Q1] serves its allotment while a new epoch admits nothing, and joins again', async (t) => {
    const { begin, lose, join, enter, next, pass, state, heartbeat, clock, answer } = stage(t)
    await begin(['1', '15'])
    state.proven = { sinceMs: 0, untilMs: Infinity }
    lose()
    await pass(1000)
    join({ epoch: 'two', incarnation: 2, quietUntilMs: clock.monotonic() + 500 })
    next(scripts.join).answer(500_000)
    await turn()
    assert.deepEqual(enter(10).decisions, [{ kind: 'admitted', waitMs: 0 }])
    heartbeat()
    await answer(scripts.join, 0)
    await answer(scripts.heartbeat, ['0', '0', 2, [], []])
    const late = enter(10)
    await answer(scripts.enter, ['queued', '1'])
    assert.deepEqual(late.decisions, [])
  })
})

describe('the figures and limits of a lane over Redis', () => {
  it('[Q1] convert to milliseconds how long the lane admits nothing after a join', async (t) => {
    const { join, next, clock, admission, pass, heartbeat, sent } = stage(t)
    join({ quietUntilMs: clock.monotonic() + 100 })
    next(scripts.join).answer(1)
    await turn()
    assert.equal(admission.state(), 'apart', 'even a microsecond counts as quiet')
    await pass(100)
    heartbeat()
    next(scripts.join).answer(0)
    await turn()
    assert.deepEqual([admission.state(), sent[0]?.script.sha], ['joined', scripts.heartbeat.sha])
  })

  it('[Q1] have the units of the API', async (t) => {
    const { begin, admission, next } = stage(t)
    await begin()
    const status = admission.status()
    const call = next(scripts.status)
    assert.deepEqual(call.keys, [
      LANE,
      'weir:{lane}:queue',
      'weir:{lane}:due',
      'weir:{lane}:grants',
      'weir:{lane}:places',
      'weir:{lane}:workspaces',
      'weir:{lane}:preemptible',
      'weir:{lane}:leaving',
      'weir:{lane}:batch-places',
      'weir:{lane}:batch-order',
      'weir:{lane}:batch-turns',
      'weir:{lane}:batch-ends',
    ])
    call.answer(['100', '4', '5', '60000000', '8', 3, 30, 2, 2, '7000', 1, 10, 4])
    assert.deepEqual((await status).get('lane'), {
      limits: { ...limits, maxRequestsPerWorkspace: 8 },
      inFlightRequests: 3,
      committedTokens: 30,
      queueDepth: 2,
      batch: { inFlightRequests: 1, committedTokens: 10, queueDepth: 4 },
      oldestWaitMs: 7,
    })
  })

  it('are this replica’s own if Redis does not answer, or does not know the lane', async (t) => {
    const { begin, admission, next, enter, answer } = stage(t)
    await begin()
    enter(10)
    await answer(scripts.enter, ['admitted'])
    enter(20)
    await answer(scripts.enter, ['queued', '7'])
    const own = { limits, inFlightRequests: 1, committedTokens: 10, queueDepth: 1, batch: noBatchLoad }
    for (const reply of ['fail', 'answer'] as const) {
      const status = admission.status()
      const call = next(scripts.status)
      if (reply === 'fail') call.fail()
      else call.answer([''])
      assert.deepEqual((await status).get('lane'), { ...own, oldestWaitMs: 0 })
    }
    assert.deepEqual(admission.ownStatus().get('lane'), own)
  })

  it('are sent to Redis when they change, and again until it has them', async (t) => {
    const { admission, next, heartbeat, answer, lose, join, clock } = stage(t)
    join({ quietUntilMs: clock.monotonic() })
    const first = await answer(scripts.join, 0)
    assert.equal(first.values[11], 1, 'they may be newer than those of replicas that are there')
    await answer(scripts.heartbeat, ['0', '0', 2, [], []])
    const wider = { ...limits, maxConcurrentRequests: 9, maxRequestsPerWorkspace: 3 }
    admission.setLanes(new Map([['lane', wider]]))
    assert.deepEqual(next(scripts.limits).values.slice(2), [100, 9, 5, 60_000_000, 3, '1 10 9 100 1 5'])
    lose()
    join({ incarnation: 2 })
    const again = next(scripts.join)
    assert.deepEqual(again.values.slice(5, 12), [100, 9, 5, 60_000_000, 3, '1 10 9 100 1 5', 1])
    again.answer(0)
    await turn()
    await answer(scripts.heartbeat, ['0', '0', 2, [], []])
    lose()
    join({ incarnation: 3 })
    assert.equal(next(scripts.join).values[11], 0, 'once Redis has them, another replica may have newer ones')
    heartbeat()
  })

  it('are sent again if they have changed while Redis answered a join', async (t) => {
    const { admission, next, join, clock } = stage(t)
    join({ quietUntilMs: clock.monotonic() })
    const joining = next(scripts.join)
    admission.setLanes(new Map([['lane', { ...limits, maxConcurrentRequests: 9 }]]))
    joining.answer(0)
    await turn()
    assert.deepEqual(next(scripts.limits).values.slice(2, 5), [100, 9, 5])
  })

  it('are the newest until Redis has them, also if it has just taken those before', async (t) => {
    const { begin, admission, next, lose, join } = stage(t)
    await begin()
    const change = (maxConcurrentRequests: number) => {
      admission.setLanes(new Map([['lane', { ...limits, maxConcurrentRequests }]]))
      return next(scripts.limits)
    }
    const [first, second] = [change(8), change(9)]
    first.answer(1)
    await turn()
    lose()
    join({ incarnation: 2 })
    const joining = next(scripts.join)
    assert.deepEqual([joining.values[6], joining.values[11]], [9, 1])
    second.fail()
    joining.answer(0)
    await turn()
    next(scripts.heartbeat)
    change(7).answer(1)
    await turn()
    lose()
    join({ incarnation: 3 })
    assert.equal(next(scripts.join).values[11], 0, 'another replica may have newer ones')
  })

  it('hold again in a lane that is added back while requests run in it', async (t) => {
    const { begin, admission, next, enter, answer, sent } = stage(t)
    await begin()
    const running = enter()
    await answer(scripts.enter, ['admitted'])
    admission.setLanes(new Map())
    admission.setLanes(new Map([['lane', limits]]))
    next(scripts.limits)
    enter()
    next(scripts.enter)
    running.ticket.leave()
    next(scripts.leave)
    assert.deepEqual([sent, admission.ownStatus().size], [[], 1])
  })

  it('are given up in Redis once, whatever a lane that was left still had to wait for', async (t) => {
    const { begin, admission, next, enter, answer, pass, sent } = stage(t)
    await begin()
    const { ticket } = enter()
    await answer(scripts.enter, ['queued', '7'])
    ticket.leave()
    next(scripts.leave)
    admission.setLanes(new Map())
    next(scripts.part)
    await pass(limits.maxWaitMs)
    assert.deepEqual(sent, [])
  })

  it('of a lane that is added anew stay when Redis answers the lane that it had before', async (t) => {
    const { admission, next, join, clock } = stage(t)
    join({ quietUntilMs: clock.monotonic() })
    const before = next(scripts.join)
    admission.setLanes(new Map())
    admission.setLanes(new Map([['lane', limits]]))
    next(scripts.join)
    before.answer(0)
    await turn()
    assert.equal(admission.ownStatus().size, 1)
  })

  it('leave time for Redis’ answer if requests may not wait', async (t) => {
    const { begin, enter, answer, pass } = stage(t, { ...limits, maxWaitMs: 0 })
    await begin()
    const [early, late] = [enter(), enter()]
    await pass(999)
    assert.deepEqual(early.decisions, [])
    await answer(scripts.enter, ['admitted'])
    assert.deepEqual(early.decisions, [{ kind: 'admitted', waitMs: 0 }])
    await pass(1)
    assert.deepEqual(late.decisions, [{ kind: 'overloaded' }])
  })

  it('are given up in Redis when the replica leaves an empty lane', async (t) => {
    const { begin, admission, next, enter, answer, sent } = stage(t)
    await begin()
    const running = enter()
    await answer(scripts.enter, ['admitted'])
    admission.setLanes(new Map())
    assert.deepEqual(enter().decisions, [{ kind: 'closed' }])
    assert.deepEqual(sent, [], 'the replica leaves a lane only when nothing runs in it')
    running.ticket.leave()
    next(scripts.leave)
    assert.deepEqual(next(scripts.part).values, ['one', 1])
    assert.equal(admission.ownStatus().size, 0)
  })

  it('cause no call when the replica leaves without Redis', async (t) => {
    const { admission, sent } = stage(t)
    await admission.leaveLanes()
    assert.deepEqual(sent, [])
  })

  it('refuse new requests to a retired lane as closed, with Redis or without', async (t) => {
    const { begin, admission, enter, answer, lose, state, pass } = stage(t)
    await begin()
    enter()
    await answer(scripts.enter, ['admitted'])
    state.proven = { sinceMs: 0, untilMs: 0 }
    lose()
    await pass(LEASE_MS)
    assert.deepEqual(enter().decisions, [{ kind: 'unavailable' }])
    admission.setLanes(new Map())
    assert.deepEqual(enter().decisions, [{ kind: 'closed' }])
  })

  it('refuse new requests when admission closes, and let the replica leave', async (t) => {
    const { begin, admission, next, enter, answer, lose, join, sent } = stage(t)
    await begin()
    const waiting = enter()
    await answer(scripts.enter, ['queued', '7'])
    admission.close()
    await turn()
    assert.deepEqual([waiting.decisions, enter().decisions], [[{ kind: 'closed' }], [{ kind: 'closed' }]])
    assert.deepEqual(next(scripts.leave).values[2], 'one.1 acme')
    const leaving = admission.leaveLanes()
    next(scripts.part).fail()
    await leaving
    lose()
    join({ incarnation: 2 })
    assert.deepEqual(sent, [], 'it does not join again')
    admission.setLanes(new Map([['other', limits]]))
    assert.deepEqual([...admission.ownStatus().keys()], [], 'no lane opens after that')
  })
})
