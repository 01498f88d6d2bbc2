import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { LaneDecision } from '../../src/queue/lane.ts'
import { openLocalQueue } from '../../src/queue/redis/local-queue.ts'
import { RemoteEntry } from '../../src/queue/redis/remote-entry.ts'
import { handClock } from '../support/hand-clock.ts'

/** The requests of one replica in a lane, beside what Redis counts. */

const limits = { tokenBudget: 100, maxConcurrentRequests: 2, maxQueueDepth: 9, maxWaitMs: 1000 }
/** While Redis decides, any number may wait, and none is admitted. */
const atRedis = { ...limits, maxConcurrentRequests: 0, maxQueueDepth: Number.MAX_SAFE_INTEGER }

function stage(t: TestContext, first: object = limits) {
  const clock = handClock(t.mock.timers)
  const events: string[] = []
  const queue = openLocalQueue(
    clock,
    { ...limits, ...first },
    {
      decided: (entry, decision: LaneDecision) => void events.push(`${entry.id} ${decision.kind}`),
      expired: () => void events.push('expired'),
    },
  )
  const owner = { leave: () => {}, keep: () => true, leaseMs: 400 }
  const entry = (id: string, cost = 1, batchWaitMs?: number): RemoteEntry => {
    const preempted = (): void => void events.push(`${id} preempted`)
    const batch = batchWaitMs === undefined ? undefined : { maxWaitMs: batchWaitMs, preempted }
    return new RemoteEntry(id, { lane: 'lane', workspace: 'ws', cost, batch }, () => {}, owner)
  }
  /** Makes an entry wait here, or take a place. */
  const arrive = (id: string, cost?: number, batchWaitMs?: number): RemoteEntry => {
    const it = entry(id, cost, batchWaitMs)
    queue.arrive(it)
    return it
  }
  return { clock, events, queue, entry, arrive }
}

const none = { inFlightRequests: 0, committedTokens: 0, queueDepth: 0 }

describe('the queue of one replica', () => {
  it('knows its requests, those that wait and those in flight, online and batch', (t) => {
    const { clock, queue, arrive } = stage(t)
    const large = arrive('large', 60)
    clock.advance(5)
    arrive('waits', 50)
    clock.advance(7)
    arrive('line', 3, Infinity)
    assert.deepEqual(queue.load(), {
      inFlightRequests: 1,
      committedTokens: 60,
      queueDepth: 1,
      batch: { ...none, queueDepth: 1 },
    })
    assert.deepEqual([queue.oldestWaitMs(), queue.size(), queue.running()], [7, 3, { requests: 1, tokens: 60 }])
    assert.deepEqual(
      [queue.has('large'), queue.has('x'), queue.find('large'), queue.all()[0]],
      [true, false, large, large],
    )
    queue.remove(large)
    assert.deepEqual(
      [queue.has('large'), queue.oldestWaitMs()],
      [false, 0],
      'a batch place that waits is no wait of the lane',
    )
    assert.deepEqual(queue.load(), {
      inFlightRequests: 1,
      committedTokens: 50,
      queueDepth: 0,
      batch: { ...none, queueDepth: 1 },
    })
  })

  it('does not keep what it refuses at once', (t) => {
    const { queue, entry } = stage(t)
    assert.equal(queue.arrive(entry('huge', 101))?.kind, 'too_large')
    assert.equal(queue.size(), 0)
    const refused = entry('a')
    queue.arrive(refused)
    queue.forget(refused)
    assert.equal(queue.size(), 0)
  })

  it('expires waits by the clock of the replica', (t) => {
    const { clock, queue, arrive, events } = stage(t, atRedis)
    arrive('a')
    queue.deliver()
    clock.advance(999)
    assert.deepEqual(events, [])
    clock.advance(1)
    assert.deepEqual(events, ['a overloaded', 'expired'])
    arrive('b')
    queue.deliver()
    queue.stop()
    clock.advance(5000)
    assert.equal(events.length, 2)
  })

  it('counts what Redis has admitted when Redis is away, and keeps the order of those that wait', (t) => {
    const { clock, queue, arrive, events } = stage(t, atRedis)
    const [first, second, third] = [arrive('a', 40), arrive('b', 40), arrive('c', 40)]
    clock.advance(10)
    queue.countAtRedis(first)
    assert.deepEqual([first.isCountedAtRedis, first.startedAtMs, first.isWaiting], [true, 1010, false])
    queue.countLocally(atRedis)
    assert.deepEqual([first.isCountedAtRedis, second.isWaiting, third.isWaiting], [false, true, true])
    assert.deepEqual(queue.load(), { inFlightRequests: 1, committedTokens: 40, queueDepth: 2, batch: none })
    queue.setLimits(limits)
    assert.deepEqual(events, ['b admitted'])
    assert.equal(third.arrivedAtMs, 1000, 'it has waited since then')
    queue.remove(first)
    assert.deepEqual(events, ['b admitted', 'c admitted'])
    queue.countLocally(atRedis)
    assert.deepEqual(queue.load(), { inFlightRequests: 2, committedTokens: 80, queueDepth: 0, batch: none })
  })

  it('preempts a batch place that it counts, once, unless the place is kept', (t) => {
    for (const isKept of [false, true]) {
      const { queue, arrive, events } = stage(t, { batch: { reserveConcurrent: 0, reserveTokens: 0 } })
      const [line, other] = [arrive('line', 1, Infinity), arrive('other', 1, Infinity)]
      for (const it of [line, other]) it.notify({ kind: 'admitted' } as never)
      if (isKept) for (const it of [line, other]) queue.keep(it)
      assert.equal(line.fate, isKept ? 'kept' : 'in_flight')
      arrive('online')
      queue.deliver()
      queue.deliver()
      const preempted = events.filter((it) => it.endsWith('preempted'))
      assert.deepEqual(preempted, isKept ? [] : ['other preempted'])
      assert.equal(other.fate, isKept ? 'kept' : 'preempted')
      t.mock.timers.reset()
    }
  })

  it('counts a batch place that is kept when Redis is away, and never preempts it', (t) => {
    const batch = { reserveConcurrent: 0, reserveTokens: 0 }
    const { queue, arrive, events } = stage(t, { ...atRedis, batch })
    const [kept, line] = [arrive('kept', 1, Infinity), arrive('line', 1, Infinity)]
    for (const it of [kept, line]) {
      queue.countAtRedis(it)
      it.notify({ kind: 'admitted' } as never)
    }
    queue.keep(kept)
    queue.countLocally({ ...atRedis, batch })
    queue.setLimits({ ...limits, batch })
    arrive('online')
    arrive('next')
    queue.deliver()
    assert.deepEqual(events, ['line preempted'])
  })

  it('sends no preemption to a batch place that has left', (t) => {
    const { queue, arrive, events } = stage(t, { batch: { reserveConcurrent: 0, reserveTokens: 0 } })
    const [line, other] = [arrive('line', 1, Infinity), arrive('other', 1, Infinity)]
    for (const it of [line, other]) it.notify({ kind: 'admitted' } as never)
    arrive('online')
    assert.equal(other.fate, 'preempted')
    queue.remove(other)
    queue.deliver()
    assert.deepEqual(
      events.filter((it) => it.endsWith('preempted')),
      [],
    )
  })
})

describe('a request in Redis', () => {
  it('is described by its age, its time that is left, and what has become of it', (t) => {
    const { queue, entry } = stage(t, atRedis)
    const online = entry('online', 5)
    queue.arrive(online)
    online.number = '7'
    const waits = { id: 'online', cost: 5, state: 'queued', number: '7' }
    assert.deepEqual(online.snapshot(1200, 1000), { ...waits, ageMs: 200, leftMs: 800 })
    queue.countAtRedis(online)
    assert.deepEqual(online.snapshot(1200, 1000), { id: 'online', cost: 5, state: 'in_flight' })
    const line = entry('line', 5, 3000)
    queue.arrive(line)
    const waiting = { id: 'line', cost: 5, state: 'queued', number: undefined }
    assert.deepEqual(line.snapshot(1200, 1000), { ...waiting, ageMs: 200, leftMs: 2800 })
    queue.countAtRedis(line)
    queue.keep(line)
    assert.deepEqual(line.snapshot(1200, 1000), { id: 'line', cost: 5, state: 'kept', startedMsAgo: 200 })
  })

  it('that may not wait still has a lease of time for the answer of Redis', (t) => {
    const { entry } = stage(t)
    const [never, some, line, online] = [entry('a', 1, 0), entry('b', 1, 5), entry('c', 1, Infinity), entry('d')]
    assert.deepEqual([never.redisWaitMs, never.maxWaitMs], [0, 400])
    assert.deepEqual([some.redisWaitMs, some.maxWaitMs], [5, 5])
    assert.deepEqual([line.redisWaitMs, online.redisWaitMs, online.tier], [Infinity, Infinity, 'online'])
  })
})
