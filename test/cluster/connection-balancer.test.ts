import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import {
  connectionBalancer,
  type ConnectionBalancer,
  type WorkerHandle,
} from '../../src/cluster/workers/connection-balancer.ts'
import { simulationSeed } from '../simulation/seed.ts'

/** A worker whose answers the test triggers. */
interface TestWorker {
  readonly taker: WorkerHandle
  readonly has: Set<number>
  /** Each offer that it has not answered. */
  readonly offers: Map<number, number>
  /** How often it was offered anything. */
  readonly offered: () => number
  /** Answers what it has been offered, and what it is offered then. */
  take(): void
}

interface Stage {
  readonly hand: ConnectionBalancer<number>
  /** Dropped connections: a worker has them, or none can take them. */
  readonly dropped: Set<number>
  time: number
  join(): TestWorker
}

function stage(maxWaiting = 1000): Stage {
  const dropped = new Set<number>()
  const it: Stage = {
    hand: connectionBalancer<number>({
      drop: (connection) => dropped.add(connection),
      now: () => it.time,
      maxWaiting,
      silentMs: 1000,
    }),
    dropped,
    time: 0,
    join() {
      const has = new Set<number>()
      const offers = new Map<number, number>()
      let offered = 0
      const taker = it.hand.join((offer, connection) => {
        offered += 1
        offers.set(offer, connection)
      })
      return {
        taker,
        has,
        offers,
        offered: () => offered,
        take() {
          for (const [offer, connection] of offers) {
            offers.delete(offer)
            has.add(connection)
            taker.taken(offer, has.size)
          }
        },
      }
    },
  }
  return it
}

const arrive = ({ hand }: Stage, from: number, to: number): void => {
  for (let connection = from; connection < to; connection += 1) hand.arrived(connection)
}

describe('the balancer of connections over workers', () => {
  for (const count of [64, 256]) {
    it(`gives each of two workers half of ${count} connections that arrive at once, however fast each takes them`, () => {
      const it = stage()
      const [quick, slow] = [it.join(), it.join()]
      arrive(it, 0, count)
      quick.take()
      slow.take()
      assert.deepEqual([quick.has.size, slow.has.size], [count / 2, count / 2])
      assert.equal(it.dropped.size, count)
    })
  }

  it('gives connections to the workers in turn, if each ends before the next arrives', () => {
    const it = stage()
    const workers = [it.join(), it.join(), it.join()]
    arrive(it, 0, 9)
    for (const worker of workers) {
      worker.take()
      worker.has.clear()
      worker.taker.has(0)
      assert.equal(worker.offered(), 3)
    }
    for (let connection = 9; connection < 18; connection += 1) {
      arrive(it, connection, connection + 1)
      for (const worker of workers) {
        worker.take()
        worker.has.clear()
        worker.taker.has(0)
      }
    }
    assert.deepEqual(
      workers.map((worker) => worker.offered()),
      [6, 6, 6],
    )
  })

  it('lets a worker catch up that is new, or whose connections have ended', () => {
    const it = stage()
    const old = it.join()
    arrive(it, 0, 10)
    old.take()
    const fresh = it.join()
    arrive(it, 10, 20)
    fresh.take()
    assert.deepEqual([old.has.size, fresh.has.size], [10, 10])
    for (const connection of [0, 1, 2, 3]) old.has.delete(connection)
    old.taker.has(old.has.size)
    arrive(it, 20, 24)
    old.take()
    assert.deepEqual([old.has.size, fresh.has.size], [10, 10])
  })

  it('gives the connections that a worker had not taken to the others, when it ends or leaves', () => {
    for (const end of ['gone', 'leave'] as const) {
      const it = stage()
      const [one, other] = [it.join(), it.join()]
      arrive(it, 0, 8)
      one.taker[end]()
      // A worker that leaves may take or refuse its current offer.
      if (end === 'leave') for (const offer of one.offers.keys()) one.taker.refused(offer)
      other.take()
      assert.deepEqual([one.has.size, other.has.size], [0, 8])
      arrive(it, 8, 9)
      other.take()
      assert.equal(other.has.size, 9)
    }
  })

  it('limits how many connections wait, with workers and without', () => {
    const it = stage(10)
    arrive(it, 0, 15)
    assert.deepEqual([...it.dropped], [10, 11, 12, 13, 14])
    const worker = it.join()
    worker.take()
    assert.deepEqual([...worker.has], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    arrive(it, 15, 30)
    worker.take()
    // One was being offered, and ten waited.
    assert.equal(worker.has.size, 21)
  })

  it('leaves a hanging worker the one connection that it was offered, and gives the rest to the others', () => {
    const it = stage()
    const [stuck, other] = [it.join(), it.join()]
    arrive(it, 0, 10)
    it.time = 999
    it.hand.sweep(it.time)
    assert.equal(stuck.offered(), 1)
    it.time = 1000
    other.take()
    it.hand.sweep(it.time)
    other.take()
    arrive(it, 10, 20)
    other.take()
    assert.deepEqual([stuck.offers.size, other.has.size], [1, 19])
    // The same offer again, in case it was lost; ever less often.
    assert.equal(stuck.offered(), 2)
    for (; it.time < 8000; it.time += 500) it.hand.sweep(it.time)
    assert.equal(stuck.offered(), 4)
    // It goes on, so it gets what comes until it has as many.
    stuck.take()
    arrive(it, 20, 30)
    stuck.take()
    assert.deepEqual([stuck.has.size, other.has.size], [11, 19])
  })

  it('makes connections wait while all workers hang, until one responds', () => {
    const it = stage()
    const worker = it.join()
    arrive(it, 0, 1)
    it.hand.sweep(1000)
    arrive(it, 1, 5)
    assert.equal(it.dropped.size, 0)
    worker.take()
    assert.equal(worker.has.size, 5)
  })

  it('drops connections that no worker has taken when it is closed', () => {
    const it = stage()
    const worker = it.join()
    arrive(it, 0, 5)
    it.hand.close()
    arrive(it, 5, 6)
    assert.deepEqual([...it.dropped], [1, 2, 3, 4, 5])
    for (const offer of worker.offers.keys()) worker.taker.refused(offer)
    assert.equal(it.dropped.size, 6)
  })

  it('drops connections that wait without a worker when it is closed', () => {
    const it = stage()
    arrive(it, 0, 3)
    assert.equal(it.dropped.size, 0)
    it.hand.close()
    assert.deepEqual([...it.dropped], [0, 1, 2])
  })

  it('counts an unanswered offer like a connection', () => {
    const it = stage()
    const [busy, idle] = [it.join(), it.join()]
    arrive(it, 0, 1)
    idle.taker.has(1)
    assert.deepEqual([busy.offers.size, idle.offers.size], [1, 0])
    arrive(it, 1, 2)
    assert.deepEqual([busy.offered(), idle.offered()], [1, 1])
  })

  it('in any order of events, each connection has one worker, and responsive workers have equal numbers', () => {
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.record({ do: fc.constant('arrive' as const), worker: fc.constant(0) }) },
      { weight: 4, arbitrary: fc.record({ do: fc.constant('take' as const), worker: fc.nat(3) }) },
      {
        weight: 1,
        arbitrary: fc.record({ do: fc.constantFrom('leave', 'gone', 'end', 'look', 'join'), worker: fc.nat(3) }),
      },
    )
    const seed = simulationSeed()
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const it = stage()
        const workers = [it.join(), it.join(), it.join(), it.join()]
        const left = new Set<TestWorker>()
        let arrived = 0
        let ended = 0
        for (const { do: what, worker: index } of steps) {
          const worker = workers[index] as TestWorker
          if (what === 'arrive') arrive(it, arrived++, arrived)
          else if (what === 'join') {
            if (left.has(worker)) {
              ended += worker.has.size
              workers[index] = it.join()
            }
          } else if (what === 'look') it.hand.sweep((it.time += 1000))
          else if (left.has(worker)) continue
          else if (what === 'take') worker.take()
          else if (what === 'end') {
            ended += worker.has.size
            worker.has.clear()
            worker.taker.has(0)
          } else {
            if (what === 'leave') {
              worker.taker.leave()
              for (const offer of worker.offers.keys()) worker.taker.refused(offer)
            } else worker.taker.gone()
            worker.offers.clear()
            left.add(worker)
          }
        }
        const now = workers.filter((worker) => !left.has(worker))
        for (let round = 0; round <= arrived; round += 1) now.forEach((worker) => worker.take())
        const kept = workers.reduce((sum, { has }) => sum + has.size, 0)
        if (now.length > 0) assert.equal(kept + ended, arrived)
        assert.equal(it.dropped.size, kept + ended)
        // Whatever comes now evens it out.
        const most = Math.max(0, ...now.map(({ has }) => has.size))
        arrive(it, arrived, arrived + most * now.length + 1)
        for (let round = 0; round <= most * now.length; round += 1) now.forEach((worker) => worker.take())
        const sizes = now.map(({ has }) => has.size)
        if (now.length > 0) assert.ok(Math.max(...sizes) - Math.min(...sizes) <= 1, String(sizes))
      }),
      { seed, numRuns: 2000 },
    )
  })
})
