import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import * as fc from 'fast-check'
import type { Ledger, LedgerBatch } from '../../src/ports/ledger.ts'
import { groupCommit } from '../../src/ledger/group-commit.ts'
import { sampleIntent as intent, sampleRow as row } from '../support/ledger-samples.ts'
import { handClock, turn, type HandClock } from './hand-clock.ts'

/** A ledger on a store whose writes succeed or fail one by one, when the test says so. */
interface Bench {
  readonly ledger: Ledger
  readonly clock: HandClock
  /** Every batch the store was given, oldest first. */
  readonly batches: LedgerBatch[]
  succeed(): Promise<void>
  fail(): Promise<void>
}

function bench(t: TestContext): Bench {
  const clock = handClock(t.mock.timers)
  const batches: LedgerBatch[] = []
  const open: PromiseWithResolvers<void>[] = []
  const ledger = groupCommit((batch) => {
    assert.equal(open.length, 0, 'two batches at once')
    batches.push(batch)
    const write = Promise.withResolvers<void>()
    open.push(write)
    return write.promise
  }, clock)
  return {
    ledger,
    clock,
    batches,
    succeed() {
      open.pop()?.resolve()
      return turn()
    },
    fail() {
      open.pop()?.reject(new Error('disk is full'))
      return turn()
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

  it('loses no row and reports no success that was none, whatever fails in whatever order', async () => {
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
          const ledger = groupCommit((batch) => {
            write = { batch, end: Promise.withResolvers<void>() }
            return write.end.promise
          }, clock)
          const succeed = async (): Promise<void> => {
            const current = write
            write = undefined
            written.push(...idsOf(current?.batch))
            current?.end.resolve()
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
          for (let tries = 0; tries < 20 && flushed.state === 'waiting'; tries++) {
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
