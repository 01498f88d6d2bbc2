import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import * as fc from 'fast-check'
import { isAfter, type JournalPosition, type JournalSpan } from '../../src/ledger/journal/positions.ts'
import type { LedgerStore } from '../../src/ledger/ledger.ts'
import { projectFrames, type DecodedFrame } from '../../src/ledger/projection.ts'
import { createProjector, type Projector } from '../../src/ledger/projector.ts'
import { sampleRow } from '../support/ledger-samples.ts'
import { handClock, turn, type HandClock } from '../support/hand-clock.ts'

interface Bench {
  readonly projector: Projector
  readonly clock: HandClock
  /** What the store was given, the oldest first. */
  readonly calls: (readonly JournalSpan[])[]
  readonly done: number[]
  readonly events: string[]
  underWay(): boolean
  succeed(): Promise<void>
  fail(): Promise<void>
}

function bench(t: TestContext): Bench {
  const clock = handClock(t.mock.timers)
  const calls: (readonly JournalSpan[])[] = []
  const done: number[] = []
  const events: string[] = []
  let call: PromiseWithResolvers<void> | undefined
  const projector = createProjector({
    clock,
    apply(spans) {
      assert.equal(call, undefined, 'two at once')
      calls.push(spans)
      call = Promise.withResolvers()
      return call.promise
    },
    done: (segment) => done.push(segment),
    failed: ({ message }) => events.push(message),
    recovered: () => events.push('recovered'),
  })
  function end(how: (it: PromiseWithResolvers<void>) => void): Promise<void> {
    const ending = call ?? assert.fail('nothing is being applied')
    call = undefined
    how(ending)
    return turn()
  }
  return {
    projector,
    clock,
    calls,
    done,
    events: events,
    underWay: () => call !== undefined,
    succeed: () => end((it) => it.resolve()),
    fail: () => end((it) => it.reject(new Error('the database is locked'))),
  }
}

function watch(promise: Promise<void>): { state: 'waiting' | 'done' | 'refused' } {
  const watched: { state: 'waiting' | 'done' | 'refused' } = { state: 'waiting' }
  promise.then(
    () => (watched.state = 'done'),
    () => (watched.state = 'refused'),
  )
  return watched
}

const span = (segment: number, from: number, to: number): JournalSpan => ({ segment, from, to })
const MIB = 1024 * 1024

describe('the rows of a journal', () => {
  it('are added a thousand or a little more at a time, each time with the position that they reach', async () => {
    const added: (readonly [rows: number, offset: number | undefined])[] = []
    const store: Pick<LedgerStore, 'addRows' | 'setAside'> = {
      addRows: async (rows, through) => void added.push([rows.length, through?.offset]),
      async setAside() {},
    }
    const frame = (rows: number, end: number): DecodedFrame => ({
      end,
      records: Array.from({ length: rows }, (_, index) => ({ kind: 'row', row: sampleRow(`${end}-${index}`) })),
    })
    const projection = { store, files: { read: () => assert.fail() }, now: () => 0, setAside() {} }
    const frames = [frame(600, 10), frame(399, 20), frame(1, 30), frame(600, 40), frame(0, 50)]
    await projectFrames(projection, 1, frames)
    assert.deepEqual(added, [
      [1000, 30],
      [600, 50],
    ])
  })
})

describe('the projector', () => {
  it('collects rows for 200 ms, and applies them together', async (t) => {
    const { projector, clock, calls, succeed } = bench(t)
    projector.add(span(1, 0, 10))
    clock.advance(150)
    projector.add(span(1, 10, 30))
    assert.deepEqual(calls, [])
    clock.advance(50)
    assert.deepEqual(calls, [[span(1, 0, 30)]])
    projector.add(span(1, 30, 40))
    await succeed()
    assert.equal(calls.length, 1)
    clock.advance(200)
    assert.deepEqual(calls[1], [span(1, 30, 40)])
    await succeed()
    clock.advance(10_000)
    assert.equal(calls.length, 2, 'nothing is left to do')
  })

  it('collects rows for 200 ms again after a read', async (t) => {
    const { projector, clock, calls, succeed } = bench(t)
    projector.add(span(1, 0, 10))
    clock.advance(150)
    projector.add(span(1, 10, 20))
    await Promise.all([projector.through({ segment: 1, offset: 20 }), succeed()])
    projector.add(span(1, 20, 30))
    clock.advance(199)
    assert.equal(calls.length, 1)
    clock.advance(1)
    assert.equal(calls.length, 2)
  })

  it('applies rows at once if a reader waits, and resolves when the store has them', async (t) => {
    const { projector, calls, succeed } = bench(t)
    projector.add(span(1, 0, 10))
    const first = watch(projector.through({ segment: 1, offset: 10 }))
    assert.deepEqual(calls, [[span(1, 0, 10)]])
    projector.add(span(1, 10, 20))
    const second = watch(projector.through({ segment: 1, offset: 20 }))
    await succeed()
    assert.deepEqual([first.state, second.state], ['done', 'waiting'])
    assert.deepEqual(calls[1], [span(1, 10, 20)], 'the next reader does not wait for the pause either')
    await succeed()
    assert.equal(second.state, 'done')
  })

  it('resolves at once for a reader if the store already has the rows', async (t) => {
    const { projector, succeed } = bench(t)
    const none = watch(projector.through({ segment: 1, offset: 0 }))
    projector.add(span(1, 0, 10))
    const first = watch(projector.through({ segment: 1, offset: 10 }))
    await succeed()
    projector.add(span(1, 10, 20))
    const again = watch(projector.through({ segment: 1, offset: 10 }))
    await turn()
    assert.deepEqual([none.state, first.state, again.state], ['done', 'done', 'done'])
  })

  it('notifies readers when the store fails, retries by itself, and reports the failure once', async (t) => {
    const { projector, clock, calls, events: heard, fail, succeed } = bench(t)
    projector.add(span(1, 0, 10))
    const reader = watch(projector.through({ segment: 1, offset: 10 }))
    await fail()
    assert.equal(reader.state, 'refused')
    for (let tries = 0; tries < 3; tries++) {
      clock.advance(500)
      await fail()
    }
    assert.deepEqual(heard, ['the database is locked'])
    assert.ok(calls.every((spans) => spans[0]?.from === 0 && spans[0].to === 10))
    const later = watch(projector.through({ segment: 1, offset: 10 }))
    await succeed()
    assert.equal(later.state, 'done')
    assert.deepEqual(heard, ['the database is locked', 'recovered'])
  })

  it('applies a backlog in pieces of about 4 MiB, one after the other', async (t) => {
    const { projector, clock, calls, done, fail, succeed } = bench(t)
    projector.add(span(1, 0, 10))
    clock.advance(200)
    for (let segment = 2; segment <= 5; segment++) projector.add(span(segment, 0, 3 * MIB))
    await fail()
    clock.advance(500)
    assert.deepEqual(
      calls.at(-1)?.map(({ segment }) => segment),
      [1, 2, 3],
    )
    await succeed()
    clock.advance(0)
    clock.advance(1)
    assert.deepEqual(
      calls.at(-1)?.map(({ segment }) => segment),
      [4, 5],
    )
    assert.deepEqual(done, [1, 2, 3])
    await succeed()
    assert.deepEqual(done, [1, 2, 3, 4])
    assert.equal(projector.status().bytes, 0)
  })

  it('releases a segment when all of it is applied and another one follows, whichever happens last', async (t) => {
    const { projector, clock, done, succeed } = bench(t)
    projector.add(span(1, 0, 10))
    clock.advance(200)
    await succeed()
    assert.deepEqual(done, [], 'it may still grow')
    projector.add(span(2, 0, 10))
    assert.deepEqual(done, [1])
    clock.advance(200)
    projector.add(span(2, 10, 20))
    projector.add(span(3, 0, 10))
    await succeed()
    assert.deepEqual(done, [1], 'a part of it came while the rest was applied')
    clock.advance(200)
    await succeed()
    assert.deepEqual(done, [1, 2])
  })

  it('reports how many bytes are not applied, for how long, and whether the store accepts them', async (t) => {
    const { projector, clock, fail, succeed } = bench(t)
    assert.deepEqual(projector.status(), { bytes: 0, lagMs: 0, isFailing: false })
    projector.add(span(1, 0, 10))
    clock.advance(100)
    projector.add(span(2, 0, 30))
    assert.deepEqual(projector.status(), { bytes: 40, lagMs: 100, isFailing: false })
    clock.advance(100)
    clock.advance(300)
    await fail()
    assert.deepEqual(projector.status(), { bytes: 40, lagMs: 500, isFailing: true })
    clock.advance(500)
    await succeed()
    assert.deepEqual(projector.status(), { bytes: 0, lagMs: 0, isFailing: false })
    projector.add(span(2, 30, 40))
    clock.advance(200)
    projector.add(span(2, 40, 50))
    clock.advance(300)
    await succeed()
    clock.advance(50)
    assert.deepEqual(projector.status(), { bytes: 10, lagMs: 50, isFailing: false }, 'since others were applied')
  })

  it('applies nothing after it was closed', async (t) => {
    const { projector, clock, calls, fail } = bench(t)
    projector.add(span(1, 0, 10))
    clock.advance(200)
    const reader = watch(projector.through({ segment: 1, offset: 10 }))
    projector.close()
    await turn()
    assert.equal(reader.state, 'refused', 'a reader is not left waiting')
    await fail()
    clock.advance(10_000)
    projector.add(span(1, 10, 20))
    clock.advance(10_000)
    assert.equal(calls.length, 1)
    await assert.rejects(projector.through({ segment: 1, offset: 20 }), /closed/)
  })

  it('applies each byte once and in order, resolves each read, and releases segments in time', async (t) => {
    const step = fc.constantFrom('grow', 'switch', 'read', 'succeed', 'fail', 'wait' as const)
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        t.mock.timers.reset()
        const { projector, clock, calls, done, underWay, succeed, fail } = bench(t)
        let end: JournalPosition = { segment: 1, offset: 0 }
        let applied: JournalPosition = { segment: 0, offset: 0 }
        const readers: { readonly position: JournalPosition; readonly watched: { state: string } }[] = []
        async function finish(): Promise<void> {
          for (const { segment, from, to } of calls.at(-1) ?? []) {
            if (segment === applied.segment) assert.equal(from, applied.offset)
            else assert.ok(from === 0 && segment > applied.segment)
            applied = { segment, offset: to }
          }
          await succeed()
          for (const { position, watched } of readers) {
            if (!isAfter(position, applied)) assert.notEqual(watched.state, 'waiting')
          }
        }
        for (const action of steps) {
          if (action === 'grow' || (action === 'switch' && end.offset > 0)) {
            const { segment, offset } = action === 'grow' ? end : { segment: end.segment + 1, offset: 0 }
            projector.add(span(segment, offset, offset + 7))
            end = { segment, offset: offset + 7 }
          } else if (action === 'read') {
            readers.push({ position: end, watched: watch(projector.through(end)) })
          } else if (action === 'wait') clock.advance(300)
          else if (action === 'succeed' && underWay()) await finish()
          else if (action === 'fail' && underWay()) {
            await fail()
            assert.ok(readers.every(({ watched }) => watched.state !== 'waiting'))
          }
          await turn()
          for (const { position, watched } of readers) {
            if (watched.state === 'done') assert.ok(position.offset === 0 || !isAfter(position, applied))
          }
          assert.ok(done.every((segment) => segment < end.segment && segment <= applied.segment))
        }
        for (let rounds = 0; rounds < 20; rounds++) {
          clock.advance(500)
          if (underWay()) await finish()
        }
        assert.equal(projector.status().bytes, 0)
        if (end.offset > 0) assert.deepEqual(applied, end)
        assert.deepEqual(
          done,
          Array.from({ length: end.segment - 1 }, (_, index) => index + 1),
        )
        assert.ok(readers.every(({ watched }) => watched.state !== 'waiting'))
      }),
    )
  })
})
