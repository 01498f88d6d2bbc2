import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import * as fc from 'fast-check'
import type { Ledger, LedgerBatch } from '../../src/ports/ledger.ts'
import { RefusedWrite } from '../../src/core/refused-write.ts'
import { groupCommit } from '../../src/ledger/group-commit.ts'
import { sampleIntent as intent, sampleRow as row } from '../support/ledger-samples.ts'
import { handClock, turn, type HandClock } from './hand-clock.ts'

/** A ledger on a store whose writes succeed or fail one by one, when the test says so. */
interface Bench {
  readonly ledger: Ledger
  readonly clock: HandClock
  /** Every batch the store was given, oldest first. */
  readonly batches: LedgerBatch[]
  /** The ids of the rows that were set aside, and of those that were reported. */
  readonly aside: string[]
  readonly reported: string[]
  succeed(): Promise<void>
  fail(): Promise<void>
  /** Ends the open write, and those that follow from it, as a store does that will never take these ids. */
  refuse(...ids: string[]): Promise<void>
  refuseOnce(): Promise<void>
}

function bench(t: TestContext): Bench {
  const clock = handClock(t.mock.timers)
  const batches: LedgerBatch[] = []
  const open: PromiseWithResolvers<void>[] = []
  const aside: string[] = []
  const reported: string[] = []
  const ledger = groupCommit(
    {
      writeLedger(batch) {
        assert.equal(open.length, 0, 'two batches at once')
        batches.push(batch)
        const write = Promise.withResolvers<void>()
        open.push(write)
        return write.promise
      },
      async setAside({ requestId }) {
        aside.push(requestId)
      },
    },
    clock,
    { setAside: ({ requestId }) => reported.push(requestId) },
  )
  return {
    ledger,
    clock,
    batches,
    aside,
    reported,
    succeed() {
      open.pop()?.resolve()
      return turn()
    },
    fail() {
      open.pop()?.reject(new Error('disk is full'))
      return turn()
    },
    refuseOnce() {
      open.pop()?.reject(new RefusedWrite('no such row'))
      return turn()
    },
    async refuse(...ids) {
      for (let write = open.pop(); write; write = open.pop()) {
        if (idsOf(batches.at(-1)).some((id) => ids.includes(id))) write.reject(new RefusedWrite('no such row'))
        else write.resolve()
        await turn()
      }
    },
  }
}

/** The state of a promise at any time. */
function watch(promise: Promise<void>): { state: 'waiting' | 'done' | 'refused' } {
  const watched: { state: 'waiting' | 'done' | 'refused' } = { state: 'waiting' }
  promise.then(
    () => (watched.state = 'done'),
    () => (watched.state = 'refused'),
  )
  return watched
}

const idsOf = (batch: LedgerBatch | undefined): string[] =>
  [...(batch?.intents ?? []), ...(batch?.rows ?? [])].map(({ requestId }) => requestId)

describe('group commit', () => {
  it('reports success only when it is durable', async (t) => {
    const { ledger, succeed } = bench(t)
    const opened = watch(ledger.note(intent('a')))
    await turn()
    assert.equal(opened.state, 'waiting')
    await succeed()
    assert.equal(opened.state, 'done')
    const settled = watch(ledger.settle(row('a')))
    await turn()
    assert.equal(settled.state, 'waiting')
    await succeed()
    assert.equal(settled.state, 'done')
  })

  it('puts everything that arrives while a batch is written into the next one, in order', async (t) => {
    const { ledger, batches, succeed } = bench(t)
    const all = [watch(ledger.note(intent('a')))]
    for (const id of ['b', 'c', 'd']) all.push(watch(ledger.note(intent(id))))
    all.push(watch(ledger.settle(row('z'))))
    assert.deepEqual(batches.map(idsOf), [['a']])
    await succeed()
    assert.deepEqual(batches.map(idsOf), [['a'], ['b', 'c', 'd', 'z']])
    assert.deepEqual(
      all.map(({ state }) => state),
      ['done', 'waiting', 'waiting', 'waiting', 'waiting'],
    )
    await succeed()
    assert.ok(all.every(({ state }) => state === 'done'))
    assert.equal(batches.length, 2)
  })

  it('writes thousands in several batches, since a batch has a limit', async (t) => {
    const { ledger, batches, succeed } = bench(t)
    const all = Array.from({ length: 5001 }, (_, index) => watch(ledger.note(intent(String(index)))))
    for (let written = 0; written < 4; written++) await succeed()
    assert.ok(batches.every((batch) => batch.intents.length <= 2000))
    assert.deepEqual(
      batches.flatMap(idsOf),
      all.map((_, index) => String(index)),
    )
    assert.ok(all.every(({ state }) => state === 'done'))
  })

  it('refuses the intents of a failed write at once, and for a moment those that follow, without trying', async (t) => {
    const { ledger, clock, batches, fail, succeed } = bench(t)
    const first = watch(ledger.note(intent('a')))
    await fail()
    assert.equal(first.state, 'refused')
    assert.equal(ledger.status().healthy, false)
    const second = watch(ledger.note(intent('b')))
    await turn()
    assert.equal(second.state, 'refused')
    assert.equal(batches.length, 1)

    clock.advance(250)
    const third = watch(ledger.note(intent('c')))
    await succeed()
    assert.equal(third.state, 'done')
    assert.equal(ledger.status().healthy, true)
    assert.deepEqual(batches.map(idsOf), [['a'], ['c']])
  })

  it('keeps the rows of a failed write, and tries again by itself until they are durable', async (t) => {
    const { ledger, clock, batches, fail, succeed } = bench(t)
    const settled = watch(ledger.settle(row('a')))
    await fail()
    for (let tries = 0; tries < 3; tries++) {
      clock.advance(250)
      await fail()
    }
    assert.equal(settled.state, 'waiting')
    clock.advance(250)
    await succeed()
    assert.equal(settled.state, 'done')
    assert.deepEqual(batches.map(idsOf), [['a'], ['a'], ['a'], ['a'], ['a']])
    clock.advance(10_000)
    await turn()
    assert.equal(batches.length, 5)
  })

  it('lets a caller wait 5 s for its row, and keeps the row after that', async (t) => {
    const { ledger, clock, batches, fail, succeed } = bench(t)
    const settled = watch(ledger.settle(row('a')))
    clock.advance(4999)
    await fail()
    assert.equal(settled.state, 'waiting')
    clock.advance(250)
    await fail()
    assert.equal(settled.state, 'refused')
    clock.advance(250)
    await succeed()
    assert.deepEqual(batches.at(-1)?.rows, [row('a')])
    assert.equal(ledger.status().waiting, 0)
  })

  it('writes the late row instead of the row once the caller has stopped waiting, and not before', async (t) => {
    const { ledger, clock, batches, fail, succeed } = bench(t)
    const late = row('a', { outcome: 'withheld', amount: 0n })
    const settled = watch(ledger.settle(row('a'), late))
    await fail()
    assert.deepEqual(batches[0]?.rows, [row('a')])
    clock.advance(250)
    assert.deepEqual(batches[1]?.rows, [row('a')])
    clock.advance(5000)
    await fail()
    assert.equal(settled.state, 'refused')
    clock.advance(250)
    assert.deepEqual(batches[2]?.rows, [late])
    await fail()
    clock.advance(250)
    await succeed()
    assert.deepEqual(batches[3]?.rows, [late])
  })

  it('has the lag of its oldest item that is not durable, including those being written', async (t) => {
    const { ledger, clock, succeed, fail } = bench(t)
    assert.deepEqual(ledger.status(), { healthy: true, waiting: 0, lagMs: 0 })
    watch(ledger.note(intent('a')))
    clock.advance(30)
    watch(ledger.settle(row('b')))
    clock.advance(12)
    assert.deepEqual(ledger.status(), { healthy: true, waiting: 2, lagMs: 42 })
    await succeed()
    assert.deepEqual(ledger.status(), { healthy: true, waiting: 1, lagMs: 12 })
    await fail()
    clock.advance(100)
    assert.deepEqual(ledger.status(), { healthy: false, waiting: 1, lagMs: 112 })
    clock.advance(150)
    await succeed()
    assert.deepEqual(ledger.status(), { healthy: true, waiting: 0, lagMs: 0 })
  })

  it('resolves flush when nothing is left to write, also after failures', async (t) => {
    const { ledger, clock, succeed, fail } = bench(t)
    const empty = watch(ledger.flush())
    await turn()
    assert.equal(empty.state, 'done')
    watch(ledger.settle(row('a')))
    const flushed = watch(ledger.flush())
    await fail()
    assert.equal(flushed.state, 'waiting')
    clock.advance(250)
    watch(ledger.settle(row('b')))
    await succeed()
    assert.equal(flushed.state, 'waiting')
    await succeed()
    assert.equal(flushed.state, 'done')
  })

  it('is readable as soon as a row is durable, also while others are being written', async (t) => {
    const { ledger, succeed } = bench(t)
    watch(ledger.settle(row('a')))
    await succeed()
    watch(ledger.settle(row('b')))
    const readable = watch(ledger.readable())
    await turn()
    assert.equal(readable.state, 'done')
  })

  it('sets aside a row that the store refuses for good, and writes everything else', async (t) => {
    const { ledger, aside, reported, succeed, refuse, clock } = bench(t)
    const first = watch(ledger.note(intent('first')))
    const others = ['a', 'b', 'c', 'bad', 'd', 'e'].map((id) => watch(ledger.settle(row(id))))
    const opened = watch(ledger.note(intent('later')))
    await succeed()
    await refuse('bad')
    assert.deepEqual([...others, first, opened].map(({ state }) => state).join(), Array(8).fill('done').join())
    assert.deepEqual([aside, reported], [['bad'], ['bad']])
    assert.deepEqual(ledger.status(), { healthy: true, waiting: 0, lagMs: 0 }, 'one row says nothing about the store')
    // It is not tried again.
    clock.advance(10_000)
    await turn()
    assert.deepEqual(ledger.status(), { healthy: true, waiting: 0, lagMs: 0 })
  })

  it('refuses only the intent that the store refuses', async (t) => {
    const { ledger, aside, succeed, refuse } = bench(t)
    watch(ledger.note(intent('first')))
    const [bad, good] = [watch(ledger.note(intent('bad'))), watch(ledger.note(intent('good')))]
    const settled = watch(ledger.settle(row('x')))
    await succeed()
    await refuse('bad')
    assert.deepEqual([bad.state, good.state, settled.state, aside], ['refused', 'done', 'done', []])
    assert.equal(ledger.status().healthy, true)
  })

  it('finds one refused row among 2,000 in a few writes', async (t) => {
    const { ledger, batches, aside, succeed, refuse } = bench(t)
    watch(ledger.settle(row('first')))
    const all = Array.from({ length: 2000 }, (_, index) => watch(ledger.settle(row(`row-${index}`))))
    await succeed()
    await refuse('row-1234')
    assert.ok(all.every(({ state }) => state === 'done'))
    assert.deepEqual(aside, ['row-1234'])
    assert.ok(batches.length < 30, `${batches.length} writes`)
  })

  it('keeps what is left of a refused batch when the store fails in the middle of it', async (t) => {
    const { ledger, clock, batches, aside, succeed, fail, refuseOnce } = bench(t)
    watch(ledger.settle(row('first')))
    const all = ['bad', 'b', 'c', 'd'].map((id) => watch(ledger.settle(row(id))))
    const noted = watch(ledger.note(intent('noted')))
    await succeed()
    for (const ids of [
      ['noted', 'bad', 'b', 'c', 'd'],
      ['noted', 'bad', 'b'],
      ['noted', 'bad'],
    ]) {
      assert.deepEqual(idsOf(batches.at(-1)), ids)
      await refuseOnce()
    }
    assert.deepEqual(idsOf(batches.at(-1)), ['noted'])
    await succeed()
    assert.deepEqual(idsOf(batches.at(-1)), ['bad'])
    await refuseOnce()
    assert.deepEqual([idsOf(batches.at(-1)), aside], [['b'], ['bad']])
    await fail()
    assert.equal(ledger.status().healthy, false)
    assert.deepEqual(
      [noted, ...all].map(({ state }) => state),
      ['done', 'done', 'waiting', 'waiting', 'waiting'],
    )
    clock.advance(250)
    assert.deepEqual(idsOf(batches.at(-1)), ['b', 'c', 'd'])
    await succeed()
    assert.ok(all.every(({ state }) => state === 'done'))
    assert.deepEqual(aside, ['bad'])
  })

  it('keeps a refused row until it is set aside, however often that fails', async (t) => {
    const clock = handClock(t.mock.timers)
    let failures = 3
    const aside: string[] = []
    const ledger = groupCommit(
      {
        writeLedger: () => Promise.reject(new RefusedWrite('no such row')),
        async setAside({ requestId }) {
          if (failures-- > 0) throw new Error('disk is full')
          aside.push(requestId)
        },
      },
      clock,
      { setAside: () => {} },
    )
    const settled = watch(ledger.settle(row('bad')))
    for (let tries = 0; tries < 3; tries++) {
      await turn()
      assert.deepEqual([settled.state, ledger.status().healthy, aside], ['waiting', false, []])
      clock.advance(250)
    }
    await turn()
    assert.deepEqual([settled.state, ledger.status().healthy, aside], ['done', true, ['bad']])
  })

  it('loses no row and reports no success that was none, whatever fails in whatever order', async () => {
    const poisoned = (id: string): boolean => /^settle-\d*3$/.test(id)
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.constant('settle' as const) },
      { weight: 3, arbitrary: fc.constant('open' as const) },
      { weight: 2, arbitrary: fc.constant('succeed' as const) },
      { weight: 2, arbitrary: fc.constant('fail' as const) },
      { weight: 2, arbitrary: fc.constant('wait' as const) },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const written: string[] = []
        const heard: string[] = []
        const promised: string[] = []
        let write: { batch: LedgerBatch; end: PromiseWithResolvers<void> } | undefined
        let now = 0
        const due: { at: number; run(): void }[] = []
        const realTimeout = globalThis.setTimeout
        globalThis.setTimeout = ((run: () => void, ms: number) => due.push({ at: now + ms, run })) as never
        try {
          const clock = { now: () => now, monotonic: () => now }
          const ledger = groupCommit(
            {
              writeLedger(batch) {
                write = { batch, end: Promise.withResolvers<void>() }
                return write.end.promise
              },
              async setAside({ requestId }) {
                assert.ok(poisoned(requestId), `${requestId} was set aside`)
                written.push(requestId)
              },
            },
            clock,
            { setAside: () => {} },
          )
          const succeed = async (): Promise<void> => {
            const current = write
            write = undefined
            const ids = idsOf(current?.batch)
            if (ids.some(poisoned)) current?.end.reject(new RefusedWrite('no such row'))
            else {
              written.push(...ids)
              current?.end.resolve()
            }
            await turn()
          }
          const pass = async (ms: number): Promise<void> => {
            now += ms
            for (const timer of due.splice(0).filter((it) => it.at <= now || !due.push(it))) timer.run()
            await turn()
          }
          for (const [index, what] of steps.entries()) {
            const id = `${what}-${index}`
            if (what === 'settle') {
              promised.push(id)
              ledger.settle(row(id)).then(
                () => heard.push(id),
                () => {},
              )
            } else if (what === 'open') {
              ledger.note(intent(id)).then(
                () => heard.push(id),
                () => {},
              )
            } else if (what === 'succeed') await succeed()
            else if (what === 'fail') {
              write?.end.reject(new Error('disk is full'))
              write = undefined
              await turn()
            } else await pass(300)
            for (const it of heard) assert.ok(written.includes(it), `${it} was reported as written and was not`)
          }
          const flushed = watch(ledger.flush())
          for (let tries = 0; tries < 500 && flushed.state === 'waiting'; tries++) {
            await succeed()
            await pass(300)
          }
          assert.equal(flushed.state, 'done')
          for (const id of promised) assert.equal(written.filter((it) => it === id).length, 1, id)
        } finally {
          globalThis.setTimeout = realTimeout
        }
      }),
      { numRuns: 200 },
    )
  })
})
