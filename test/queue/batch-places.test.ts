import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { LaneLimits } from '../../src/queue/lane.ts'
import type { Ticket } from '../../src/queue/admission.ts'
import { memoryAdmission } from '../../src/queue/memory.ts'
import { handClock } from '../support/hand-clock.ts'

/** The rules for batch places as their callers see them, one at a time. test/simulation/lane has the random orders of events. */

const limits: LaneLimits = {
  tokenBudget: 1000,
  maxConcurrentRequests: 4,
  maxQueueDepth: 10,
  maxWaitMs: 1000,
}

/** What happens, in order. Callers that are preempted stay until the test makes them leave. */
function batchLane(t: TestContext, changes: Partial<LaneLimits> = {}) {
  const clock = handClock(t.mock.timers)
  const admission = memoryAdmission(clock)
  const set = (changes: Partial<LaneLimits>) => admission.setLanes(new Map([['lane', { ...limits, ...changes }]]))
  set(changes)
  const events: string[] = []
  const decided = (name: string) => (decision: { readonly kind: string }) =>
    void events.push(`${name} ${decision.kind}`)
  return {
    clock,
    events,
    set,
    admission,
    online: (name: string, cost = 1): Ticket =>
      admission.enter({ lane: 'lane', workspace: 'acme', cost }, decided(name)),
    batch: (
      name: string,
      { cost = 1, workspace = 'acme', maxWaitMs = Infinity, preempted = () => {} } = {},
    ): Ticket => {
      const react = (): void => {
        events.push(`${name} preempted`)
        preempted()
      }
      return admission.enter({ lane: 'lane', workspace, cost, batch: { maxWaitMs, preempted: react } }, decided(name))
    },
    load: async () => (await admission.status()).get('lane'),
  }
}

describe('a batch place', () => {
  it('is admitted only while the reserve stays free', async (t) => {
    const { batch, events, load } = batchLane(t)
    for (const name of ['a', 'b', 'c', 'd']) batch(name)
    assert.deepEqual(events, ['a admitted', 'b admitted', 'c admitted'])
    const { inFlightRequests, batch: ofBatch } = (await load())!
    assert.equal(inFlightRequests, 3)
    assert.deepEqual(ofBatch, { inFlightRequests: 3, committedTokens: 3, queueDepth: 1 })
  })

  it('gives way again when lower limits leave no room for an online place that waited for another one', (t) => {
    const { batch, online, set, events } = batchLane(t)
    for (const name of ['a', 'b', 'c']) batch(name)
    online('runs')
    online('waits')
    assert.equal(events.at(-1), 'c preempted')
    set({ maxConcurrentRequests: 3 })
    assert.equal(events.at(-1), 'b preempted')
  })

  it('waits while an online place waits, however small it is', (t) => {
    const { online, batch, events } = batchLane(t, { batch: { preempt: false } })
    const large = online('large', 800)
    online('waits', 300)
    batch('small')
    assert.deepEqual(events, ['large admitted'])
    large.leave()
    assert.deepEqual(events, ['large admitted', 'waits admitted', 'small admitted'])
  })

  it('takes turns with those of other workspaces', (t) => {
    const { batch, events } = batchLane(t, { maxConcurrentRequests: 2 })
    const tickets = [batch('a1'), batch('a2'), batch('a3'), batch('b1', { workspace: 'bolt' }), batch('a4')]
    for (const ticket of tickets) ticket.leave()
    assert.deepEqual(events, ['a1 admitted', 'a2 admitted', 'b1 admitted', 'a4 admitted'])
  })

  it('expires after its own maximum wait, or never', (t) => {
    const { batch, events, clock } = batchLane(t, { batch: { maxShare: 0 } })
    batch('flex', { maxWaitMs: 500 })
    batch('line')
    clock.advance(499)
    assert.deepEqual(events, [])
    clock.advance(1)
    assert.deepEqual(events, ['flex overloaded'])
    clock.advance(10_000_000)
    assert.deepEqual(events, ['flex overloaded'])
  })

  it('is too large if it could only run in the reserve', (t) => {
    const { batch, online, events } = batchLane(t, { batch: { reserveTokens: 200 } })
    batch('large', { cost: 801 })
    online('online', 801)
    assert.deepEqual(events, ['large too_large', 'online admitted'])
  })
})

describe('an online place that has to wait', () => {
  it('is admitted as soon as the youngest batch places have left', (t) => {
    const { online, batch, events } = batchLane(t, { batch: { reserveConcurrent: 0 } })
    const tickets = ['a', 'b', 'c', 'd'].map((name) => batch(name))
    events.length = 0
    online('one')
    online('two')
    assert.deepEqual(events, ['d preempted', 'c preempted'])
    tickets[3]!.leave()
    assert.deepEqual(events, ['d preempted', 'c preempted', 'one admitted'])
    tickets[2]!.leave()
    assert.deepEqual(events.slice(3), ['two admitted'])
  })

  it('does not preempt a batch place that has left meanwhile', (t) => {
    const { online, batch, events } = batchLane(t, { batch: { reserveConcurrent: 0 } })
    batch('a', { cost: 300 })
    const other = batch('b', { cost: 300 })
    batch('c', { cost: 300, preempted: () => other.leave() })
    events.length = 0
    online('one', 600)
    assert.deepEqual(events, ['c preempted'], 'b has left because of it')
  })

  it('is not refused because batch places fill the lane, even where none may wait', (t) => {
    const { online, batch, events } = batchLane(t, { maxConcurrentRequests: 1, maxQueueDepth: 0 })
    const line = batch('line')
    online('one')
    online('two')
    assert.deepEqual(events, ['line admitted', 'line preempted', 'two queue_full'])
    line.leave()
    assert.deepEqual(events.slice(3), ['one admitted'])
  })

  it('preempts no batch place that is kept', (t) => {
    const { online, batch, events } = batchLane(t, { maxConcurrentRequests: 2, batch: { reserveConcurrent: 0 } })
    const [older, kept] = [batch('older'), batch('kept')]
    assert.equal(kept.keep(), true)
    online('one')
    assert.equal(older.keep(), false)
    assert.deepEqual(events.slice(2), ['older preempted'])
  })

  it('may be let in by a batch place that leaves from its callback', (t) => {
    const { online, batch, events } = batchLane(t, { maxConcurrentRequests: 1 })
    const line = batch('line', { preempted: () => line.leave() })
    online('one')
    assert.deepEqual(events, ['line admitted', 'line preempted', 'one admitted'])
  })
})

it('a caller learns that it is admitted before it learns that it is preempted', async (t) => {
  const roomy = { maxQueueDepth: 100, batch: { reserveConcurrent: 0 } }
  const { online, batch, events, set } = batchLane(t, { ...roomy, maxConcurrentRequests: 0 })
  for (let index = 0; index < 40; index += 1) batch(`batch ${index}`)
  set({ ...roomy, maxConcurrentRequests: 40 })
  online('online')
  assert.ok(!events.includes('batch 39 admitted'), 'only some callers are notified at once')
  await new Promise(setImmediate)
  assert.deepEqual(
    events.filter((it) => it.startsWith('batch 39')),
    ['batch 39 admitted', 'batch 39 preempted'],
  )
})

it('a lane that leaves the catalog serves the batch places that wait', (t) => {
  const { batch, admission, events } = batchLane(t, { maxConcurrentRequests: 1 })
  const first = batch('first')
  const second = batch('second')
  admission.setLanes(new Map())
  first.leave()
  assert.deepEqual(events, ['first admitted', 'second admitted'])
  assert.equal(admission.ownStatus().size, 1)
  second.leave()
  assert.equal(admission.ownStatus().size, 0)
})
