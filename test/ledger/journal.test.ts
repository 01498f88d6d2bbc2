import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { JournalSpan } from '../../src/ledger/journal/positions.ts'
import type { JournalRecord } from '../../src/ledger/journal/records.ts'
import { openJournal, SEGMENT_BYTES, type Journal } from '../../src/ledger/journal/journal.ts'
import { sampleIntent as intent, sampleRow as row } from '../support/ledger-samples.ts'
import {
  scriptedJournalFiles,
  type ScriptedJournalFiles,
  type ScriptedWrite,
} from '../support/scripted-journal-files.ts'
import { handClock, turn, type HandClock } from '../support/hand-clock.ts'

interface Bench extends ScriptedJournalFiles {
  readonly journal: Journal
  readonly clock: HandClock
  readonly grown: JournalSpan[]
}

function bench(t: TestContext, firstSegment = 1): Bench {
  const clock = handClock(t.mock.timers)
  const scripted = scriptedJournalFiles()
  const grown: JournalSpan[] = []
  const journal = openJournal({ files: scripted.files, firstSegment, clock, grew: (span) => grown.push(span) })
  return { ...scripted, journal, clock, grown }
}

function watch(promise: Promise<void>): { state: 'waiting' | 'done' | 'refused' } {
  const watched: { state: 'waiting' | 'done' | 'refused' } = { state: 'waiting' }
  promise.then(
    () => (watched.state = 'done'),
    () => (watched.state = 'refused'),
  )
  return watched
}

/** A record in a word: `i:a` is the intent of a, `r:a` its row. */
function word(record: JournalRecord): string {
  if (record.kind === 'head') return record.head.previous ? `after ${record.head.previous.segment}` : 'first'
  return record.kind === 'intent' ? `i:${record.intent.requestId}` : `r:${record.row.requestId}`
}

const words = (write: ScriptedWrite | undefined): string => (write?.records ?? []).map(word).join(' ')
const lastOf = ({ writes }: Bench): ScriptedWrite => writes.at(-1) ?? assert.fail('nothing was written')

/** More than a segment holds, in one record. */
const FILLING = 'x'.repeat(SEGMENT_BYTES)
const fill = ({ journal }: Bench): { state: string } => watch(journal.settle(row('big', { model: FILLING })))

describe('the journal', () => {
  it('writes a single row with one durable write, and reports it only when the write has ended', async (t) => {
    const it = bench(t)
    const settled = watch(it.journal.settle(row('a')))
    await turn()
    assert.deepEqual([it.writes.length, lastOf(it).isDurable, settled.state], [1, true, 'waiting'])
    assert.deepEqual(it.grown, [])
    await it.succeed()
    assert.equal(settled.state, 'done')
    assert.deepEqual(it.grown, [{ segment: 1, from: 0, to: lastOf(it).bytes }])
    assert.deepEqual(it.journal.end(), { segment: 1, offset: lastOf(it).bytes })
    assert.deepEqual([it.writes.length, it.underWay()], [1, 0])
  })

  it('writes a row that was settled while its first segment was created', async (t) => {
    const it = bench(t)
    const prepared = it.journal.prepare()
    const settled = watch(it.journal.settle(row('a')))
    assert.equal(it.writes.length, 0)
    await prepared
    await it.succeed()
    assert.equal(settled.state, 'done')
  })

  it('reports growth before it reports the row, so that a waiting reader can read it', async (t) => {
    const clock = handClock(t.mock.timers)
    const scripted = scriptedJournalFiles()
    const events: string[] = []
    const journal = openJournal({ ...scripted, firstSegment: 1, clock, grew: () => events.push('grew') })
    void journal.settle(row('a')).then(() => events.push('settled'))
    await turn()
    await scripted.succeed()
    assert.deepEqual(events, ['grew', 'settled'])
  })

  it('puts everything that arrives during a write into the next frame, in order', async (t) => {
    const it = bench(t)
    const first = watch(it.journal.settle(row('a')))
    await turn()
    const others = ['b', 'c'].map((id) => watch(it.journal.settle(row(id))))
    it.journal.note(intent('d'))
    others.push(watch(it.journal.settle(row('e'))))
    assert.deepEqual(it.writes.map(words), ['first r:a'])
    await it.succeed()
    assert.deepEqual(it.writes.map(words), ['first r:a', 'r:b r:c i:d r:e'])
    assert.equal(lastOf(it).offset, it.writes[0]?.bytes)
    assert.equal(first.state, 'done')
    assert.ok(others.every(({ state }) => state === 'waiting'))
    await it.succeed()
    assert.ok(others.every(({ state }) => state === 'done'))
    assert.equal(it.writes.length, 2)
  })

  it('passes intents to the operating system at once, without waiting for the disk, and writes them again with the next row', async (t) => {
    const it = bench(t)
    it.journal.note(intent('a'))
    await turn()
    assert.deepEqual([words(lastOf(it)), lastOf(it).isDurable], ['first i:a', false])
    it.journal.note(intent('b'))
    await it.succeed()
    assert.deepEqual([words(lastOf(it)), lastOf(it).isDurable, lastOf(it).offset], ['first i:a i:b', false, 0])
    await it.succeed()
    assert.equal(it.underWay(), 0, 'nothing is left to hand over')
    assert.deepEqual(it.grown, [], 'nothing of it is durable')
    void it.journal.settle(row('a'))
    assert.deepEqual([words(lastOf(it)), lastOf(it).isDurable, lastOf(it).offset], ['first i:a i:b r:a', true, 0])
    await it.succeed()
    assert.equal(it.writes.length, 3)
    it.journal.note(intent('c'))
    assert.deepEqual([words(lastOf(it)), lastOf(it).offset], ['i:c', it.journal.end().offset])
  })

  it('makes intents durable without a row once there are more than 64', async (t) => {
    const it = bench(t)
    for (let index = 0; index < 64; index++) it.journal.note(intent(`a${index}`))
    await turn()
    await it.succeed()
    assert.equal(lastOf(it).isDurable, false)
    it.journal.note(intent('one more'))
    assert.equal(lastOf(it).isDurable, true)
    assert.equal(lastOf(it).records.length, 66)
    await it.succeed()
    assert.equal(it.underWay(), 0)
    assert.equal(it.grown.length, 1)
  })

  it('does not report a row before the durable write that follows the creation of its segment', async (t) => {
    const it = bench(t)
    it.journal.note(intent('a'))
    const settled = watch(it.journal.settle(row('a')))
    await turn()
    assert.deepEqual([lastOf(it).isDurable, settled.state], [false, 'waiting'])
    await it.succeed()
    assert.deepEqual([lastOf(it).isDurable, settled.state], [true, 'waiting'])
    await it.succeed()
    assert.equal(settled.state, 'done')
  })

  it('writes thousands of rows in frames of at most 2,000, in order', async (t) => {
    const it = bench(t)
    const all = Array.from({ length: 5001 }, (_, index) => watch(it.journal.settle(row(String(index)))))
    await turn()
    for (let written = 0; written < 3; written++) await it.succeed()
    assert.equal(it.underWay(), 0)
    assert.ok(it.writes.every(({ records }) => records.length <= 2001))
    assert.deepEqual(
      it.writes
        .flatMap(({ records }) => records)
        .filter(({ kind }) => kind === 'row')
        .map(word),
      all.map((_, index) => `r:${index}`),
    )
    assert.ok(all.every(({ state }) => state === 'done'))
    for (const [index, span] of it.grown.entries()) assert.equal(span.from, it.grown[index - 1]?.to ?? 0)
  })

  it('starts a new segment when one is full, with the open intents and where the last one ended', async (t) => {
    const it = bench(t, 41)
    it.journal.note(intent('open'))
    it.journal.note(intent('ends'))
    const settled = fill(it)
    await turn()
    await it.succeed()
    await it.succeed()
    assert.equal(settled.state, 'done')
    void it.journal.settle(row('ends'))
    it.journal.note(intent('new'))
    await turn()
    assert.deepEqual(it.created, [41, 42])
    assert.deepEqual(it.closed, [41])
    assert.deepEqual([lastOf(it).segment, lastOf(it).offset], [42, 0])
    assert.equal(words(lastOf(it)), 'after 41 i:open r:ends i:new')
    const [head] = lastOf(it).records
    assert.deepEqual(head?.kind === 'head' && head.head.previous, { segment: 41, end: it.grown.at(-1)?.to })
    await it.succeed()
    assert.deepEqual(it.journal.end(), { segment: 42, offset: lastOf(it).bytes })
    assert.deepEqual(it.removed, [], 'segments are removed when they are applied')
  })

  it('repeats the intent of a row that does not fit into the first frame of a segment', async (t) => {
    const it = bench(t)
    it.journal.note(intent('last'))
    fill(it)
    await turn()
    await it.succeed()
    await it.succeed()
    for (let index = 0; index < 2000; index++) void it.journal.settle(row(`a${index}`))
    void it.journal.settle(row('last'))
    await turn()
    await it.succeed()
    const opening = it.writes.find(({ segment }) => segment === 2)
    assert.ok(words(opening).includes('i:last'), 'a crash now must not forget it')
    assert.equal(words(lastOf(it)), 'r:last')
  })

  it('ends where the durable part ends, even while a new segment has nothing durable', async (t) => {
    const it = bench(t)
    assert.deepEqual(it.journal.end(), { segment: 1, offset: 0 })
    fill(it)
    await turn()
    await it.succeed()
    const end = it.journal.end()
    it.journal.note(intent('a'))
    await turn()
    await it.succeed()
    assert.equal(lastOf(it).segment, 2)
    assert.deepEqual(it.journal.end(), end)
  })

  it('keeps everything of a failed write, and retries in a new segment until it is durable', async (t) => {
    const it = bench(t)
    void it.journal.settle(row('earlier'))
    await turn()
    await it.succeed()
    it.journal.note(intent('a'))
    await it.succeed()
    const settled = watch(it.journal.settle(row('a')))
    await it.fail()
    assert.deepEqual([settled.state, it.underWay()], ['waiting', 0])
    for (let tries = 0; tries < 3; tries++) {
      it.clock.advance(249)
      assert.equal(it.underWay(), 0)
      it.clock.advance(1)
      await turn()
      assert.equal(words(lastOf(it)), 'after 1 i:a r:a')
      if (tries < 2) await it.fail()
    }
    await it.succeed()
    assert.equal(settled.state, 'done')
    assert.deepEqual(it.created, [1, 2, 3, 4], 'no number is used again')
    assert.deepEqual(it.closed, [1, 2, 3])
    assert.deepEqual(it.removed, [2, 3], 'only those without anything durable')
    assert.deepEqual(
      it.grown.map(({ segment }) => segment),
      [1, 4],
    )
    it.clock.advance(10_000)
    await turn()
    assert.equal(it.underWay(), 0)
  })

  it('records in the next segment how far the failed one counts', async (t) => {
    const it = bench(t)
    void it.journal.settle(row('a'))
    await turn()
    await it.succeed()
    const { end } = { end: it.journal.end() }
    void it.journal.settle(row('b'))
    await it.fail()
    assert.deepEqual(it.journal.end(), end)
    it.clock.advance(250)
    await turn()
    const [head] = lastOf(it).records
    assert.deepEqual(head, { kind: 'head', head: { format: 1, previous: { segment: 1, end: end.offset } } })
  })

  it('retries with the next number when a segment cannot even be created', async (t) => {
    const it = bench(t)
    it.createFailures.push(new Error('no space left on the device'), new Error('no space left on the device'))
    const settled = watch(it.journal.settle(row('a')))
    await turn()
    assert.match(String(it.journal.status().failure), /no space/)
    it.clock.advance(250)
    await turn()
    it.clock.advance(250)
    await turn()
    assert.deepEqual(it.created, [3])
    await it.succeed()
    assert.equal(settled.state, 'done')
  })

  it('refuses intents while it cannot be written, and accepts them again when it can', async (t) => {
    const it = bench(t)
    void it.journal.settle(row('a'))
    await turn()
    await it.fail()
    assert.throws(() => it.journal.note(intent('b')), /no space left/)
    it.clock.advance(250)
    await turn()
    assert.throws(() => it.journal.note(intent('b')), /no space left/)
    await it.succeed()
    it.journal.note(intent('b'))
    assert.equal(words(lastOf(it)), 'i:b')
    assert.equal(it.journal.status().failure, undefined)
  })

  it('keeps the intents of a failed write too: their requests are running', async (t) => {
    const it = bench(t)
    it.journal.note(intent('a'))
    await turn()
    await it.fail()
    it.clock.advance(250)
    await turn()
    assert.equal(words(lastOf(it)), 'first i:a')
  })

  it('makes a caller wait 5 s at most, and writes the late row instead only then', async (t) => {
    const it = bench(t)
    const late = row('a', { outcome: 'withheld', amount: 0n })
    const settled = watch(it.journal.settle(row('a'), () => late))
    const plain = watch(it.journal.settle(row('b')))
    await turn()
    it.clock.advance(4999)
    await it.fail()
    assert.equal(settled.state, 'waiting')
    it.clock.advance(250)
    await turn()
    assert.deepEqual(rowsOf(lastOf(it)), [row('a'), row('b')])
    await it.fail()
    assert.deepEqual([settled.state, plain.state], ['refused', 'refused'])
    it.clock.advance(250)
    await turn()
    assert.deepEqual(rowsOf(lastOf(it)), [late, row('b')])
    await it.fail()
    it.clock.advance(250)
    await turn()
    await it.succeed()
    assert.deepEqual(rowsOf(lastOf(it)), [late, row('b')])
    assert.equal(it.journal.status().waiting, 0)
  })

  it('reports the age of the oldest row that is not durable, including rows being written', async (t) => {
    const it = bench(t)
    const none = { failure: undefined, waiting: 0, lagMs: 0 }
    it.journal.note(intent('a'))
    it.clock.advance(1000)
    assert.deepEqual(it.journal.status(), none, 'no caller waits for an intent')
    await turn()
    await it.succeed()
    void it.journal.settle(row('a'))
    it.clock.advance(30)
    void it.journal.settle(row('b'))
    it.clock.advance(12)
    assert.deepEqual(it.journal.status(), { failure: undefined, waiting: 2, lagMs: 42 })
    await it.succeed()
    assert.deepEqual(it.journal.status(), { failure: undefined, waiting: 1, lagMs: 12 })
    await it.fail()
    it.clock.advance(250)
    await turn()
    assert.equal(it.journal.status().lagMs, 262)
    await it.succeed()
    assert.deepEqual(it.journal.status(), none)
  })

  it('resolves flush when everything is durable, including intents, even after failures', async (t) => {
    const it = bench(t)
    const empty = watch(it.journal.flush())
    await turn()
    assert.equal(empty.state, 'done')
    it.journal.note(intent('a'))
    await turn()
    await it.succeed()
    const flushed = watch(it.journal.flush())
    await turn()
    assert.deepEqual([lastOf(it).isDurable, flushed.state], [true, 'waiting'])
    await it.fail()
    it.clock.advance(250)
    await turn()
    assert.equal(flushed.state, 'waiting')
    await it.succeed()
    assert.equal(flushed.state, 'done')
  })

  it('reports when it closes whether any intent is open', async (t) => {
    const it = bench(t)
    it.journal.note(intent('a'))
    const flushed = it.journal.flush()
    await turn()
    await it.succeed()
    await it.succeed()
    await flushed
    assert.deepEqual(it.journal.close(), { isComplete: false })
    assert.deepEqual(it.closed, [1])

    const other = bench2(t)
    other.journal.note(intent('a'))
    void other.journal.settle(row('a'))
    await turn()
    await other.succeed()
    await other.succeed()
    assert.deepEqual(other.journal.close(), { isComplete: true })
  })

  it('does nothing after it was closed, and keeps a file open until its write has ended', async (t) => {
    const it = bench(t)
    void it.journal.settle(row('a')).catch(() => {})
    await turn()
    assert.deepEqual(it.journal.close(), { isComplete: false })
    assert.deepEqual(it.closed, [], 'its number could belong to another file by the time of the write')
    await it.fail()
    assert.deepEqual(it.closed, [1])
    it.clock.advance(10_000)
    await turn()
    assert.deepEqual([it.created, it.underWay()], [[1], 0])

    const failing = bench2(t)
    void failing.journal.settle(row('a')).catch(() => {})
    await turn()
    await failing.fail()
    failing.journal.close()
    it.clock.advance(10_000)
    await turn()
    assert.deepEqual(failing.created, [1])
  })

  /** Another one in the same test: the timers are mocked already. */
  function bench2(t: TestContext): Bench {
    t.mock.timers.reset()
    return bench(t)
  }
})

const rowsOf = ({ records }: ScriptedWrite): object[] =>
  records.flatMap((record) => (record.kind === 'row' ? [record.row] : []))
