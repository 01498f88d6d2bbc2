import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { noUsage } from '../../src/billing/rating/rating.ts'
import { frameOf, headText, intentText, rowText, type SegmentHead } from '../../src/ledger/journal/records.ts'
import { openLedger } from '../../src/ledger/open-ledger.ts'
import { applyJournal, closeJournal } from '../../src/ledger/recovery.ts'
import { simulatedDisk } from '../simulation/journal/disk.ts'
import type { History } from '../simulation/journal/history.ts'
import { simulatedStore, type SimulatedStore } from '../simulation/journal/store.ts'
import { sampleIntent, sampleRow } from '../support/ledger-samples.ts'

const clock = { now: () => 5, monotonic: () => 5 }

/** The bytes of a segment, one text for each frame. */
function segmentOf(number: number, previous: SegmentHead['previous'], ...texts: string[]): Buffer {
  let bytes = Buffer.alloc(0)
  for (const [index, text] of texts.entries()) {
    const head = index === 0 ? `${headText({ format: 1, previous })}\n` : ''
    bytes = Buffer.concat([bytes, frameOf(head + text, number, bytes.length)])
  }
  return bytes
}

const row = (id: string): string => rowText(sampleRow(id))
const intent = (id: string): string => intentText(sampleIntent(id))

interface Started {
  readonly store: SimulatedStore
  readonly damaged: number[]
  readonly interrupted: number[]
  readonly left: readonly number[]
  outcomes(): Record<string, string>
}

/** Starts on these segments, in the order of their numbers. */
async function start(
  segments: Record<number, Buffer>,
  position?: { segment: number; offset: number },
): Promise<Started> {
  const history: History = []
  const image = new Map(Object.entries(segments).map(([number, bytes]) => [Number(number), bytes]))
  const files = simulatedDisk(image, history, () => ({ error: undefined, part: 1 }), false)
  const store = simulatedStore({ rows: new Map(), aside: new Map(), position }, history, () => false)
  const damaged: number[] = []
  const interrupted: number[] = []
  await openLedger({
    files,
    store,
    clock,
    maxJournalBytes: Infinity,
    begin: async () => {},
    waitFor: 'journal',
    apply: async () => {},
    events: {
      interrupted: (requests) => interrupted.push(requests),
      damaged: (numbers) => damaged.push(...numbers),
      refusedRowsAdded() {},
      stillRefused() {},
      setAside() {},
      storeFailed() {},
      storeRecovered() {},
    },
  })
  return {
    store,
    damaged,
    interrupted,
    left: await files.list(),
    outcomes: () => Object.fromEntries([...store.state().rows].map(([id, { outcome }]) => [id, outcome])),
  }
}

describe('a start after a crash', () => {
  it('removes no segment before open requests are settled', async () => {
    const history: History = []
    const files = simulatedDisk(new Map(), history, () => ({ error: undefined, part: 1 }), false)
    const store = simulatedStore({ rows: new Map(), aside: new Map(), position: undefined }, history, () => true)
    const removed: number[] = []
    const parts = {
      files: { ...files, remove: async (segment: number) => void removed.push(segment) },
      store,
      now: clock.now,
      setAside() {},
    }
    const left = { rows: 0, open: [sampleIntent('a')], segments: [{ segment: 1, isDamaged: false }], nextSegment: 2 }
    await assert.rejects(closeJournal(parts, left), /locked/)
    assert.deepEqual(removed, [])
  })

  it('adds the rows of every segment, settles open requests at nothing, and removes the segments', async () => {
    const first = segmentOf(4, null, intent('a'), `${row('a')}\n${intent('b')}\n${intent('c')}`)
    const second = segmentOf(5, { segment: 4, end: first.length }, `${intent('b')}\n${intent('c')}`, row('b'))
    const { outcomes, interrupted, damaged, left, store } = await start({ 4: first, 5: second })
    assert.deepEqual(outcomes(), { a: 'completed', b: 'completed', c: 'interrupted' })
    assert.partialDeepStrictEqual(store.state().rows.get('c'), {
      ...noUsage,
      amount: 0n,
      httpStatus: null,
      errorCode: null,
      queueWaitMs: 0,
      firstTokenMs: null,
      durationMs: 0,
      estimated: false,
    })
    assert.deepEqual([interrupted, damaged, left], [[1], [], [6]], 'only the new segment is left')
    assert.deepEqual(store.state().position, { segment: 5, offset: second.length })
  })

  it('keeps everything around damage, and names the damaged segment', async () => {
    const bytes = segmentOf(1, null, row('a'), row('b'), row('c'))
    bytes[bytes.length >> 1]! ^= 1
    const { outcomes, damaged } = await start({ 1: bytes })
    assert.deepEqual(outcomes(), { a: 'completed', c: 'completed' })
    assert.deepEqual(damaged, [1])
  })

  it('detects a segment that is shorter than the next one records', async () => {
    const first = segmentOf(1, null, row('a'), row('b'))
    const second = segmentOf(2, { segment: 1, end: first.length }, row('c'))
    const { outcomes, damaged } = await start({ 1: first.subarray(0, first.length - 1), 2: second })
    assert.deepEqual(outcomes(), { a: 'completed', c: 'completed' })
    assert.deepEqual(damaged, [1])
  })

  it('treats neither a cut nor zeros at the end of the last segment as damage', async () => {
    const bytes = segmentOf(1, null, row('a'), row('b'))
    for (const end of [
      bytes.subarray(0, bytes.length - 1),
      Buffer.concat([bytes.subarray(0, -9), Buffer.alloc(5000)]),
    ]) {
      const { outcomes, damaged } = await start({ 1: end })
      assert.deepEqual([outcomes(), damaged], [{ a: 'completed' }, []])
    }
  })

  it('finds a segment whose beginning is damaged, and those before it', async () => {
    const first = segmentOf(1, null, row('a'))
    const second = segmentOf(2, { segment: 1, end: first.length }, row('b'), row('c'))
    const third = segmentOf(3, { segment: 2, end: second.length }, row('d'))
    second[20]! ^= 1
    const { outcomes, damaged } = await start({ 1: first, 2: second, 3: third })
    assert.deepEqual(outcomes(), { a: 'completed', c: 'completed', d: 'completed' })
    assert.deepEqual(damaged, [2])
  })

  it('adds nothing that the store already has, and starts with a new segment number', async () => {
    const bytes = segmentOf(7, null, row('a'), row('b'))
    const end = segmentOf(7, null, row('a')).length
    const { outcomes } = await start({ 7: bytes }, { segment: 7, offset: end })
    assert.deepEqual(outcomes(), { b: 'completed' })
  })

  it('ignores what a failed write left, if the next segment has another row for the same request', async () => {
    const late = rowText(sampleRow('b', { outcome: 'withheld', amount: 0n }))
    const whole = segmentOf(1, null, row('a'), row('b'))
    const end = segmentOf(1, null, row('a')).length
    const after = await start({ 1: whole, 3: segmentOf(3, { segment: 1, end }, late) })
    assert.deepEqual(after.outcomes(), { a: 'completed', b: 'withheld' })
    const empty = await start({
      1: whole,
      2: segmentOf(2, { segment: 1, end }, row('b')),
      3: segmentOf(3, { segment: 1, end }, late),
    })
    assert.deepEqual(empty.outcomes(), { a: 'completed', b: 'withheld' }, 'nothing of segment 2 was ever durable')
    const first = await start({ 1: segmentOf(1, null, row('b')), 2: segmentOf(2, null, late) })
    assert.deepEqual(first.outcomes(), { b: 'withheld' }, 'nothing of the first segment was ever durable')
  })

  it('does not skip a row that the store refuses before it is set aside', async () => {
    const history: History = []
    const bytes = segmentOf(1, null, [row('a'), row('refused-3'), row('b'), row('refused-13')].join('\n'))
    const files = simulatedDisk(new Map([[1, bytes]]), history, () => ({ error: undefined, part: 1 }), false)
    const store = simulatedStore({ rows: new Map(), aside: new Map(), position: undefined }, history, () => false)
    const reported: string[] = []
    await applyJournal({ files, store, now: clock.now, setAside: ({ requestId }) => reported.push(requestId) })
    assert.deepEqual([...store.state().rows.keys()], ['a', 'b'])
    assert.deepEqual([...store.state().aside.keys()], ['refused-3', 'refused-13'])
    assert.deepEqual(reported, ['refused-3', 'refused-13'])
    const positions = history.map((it) => it.kind === 'stored' && it.position !== undefined)
    assert.equal(positions.indexOf(true), history.length - 1)
  })

  it('ignores a segment that is applied and could not be removed', async () => {
    const third = segmentOf(3, { segment: 2, end: 500 }, row('b'))
    const segments = { 1: segmentOf(1, null, intent('refused')), 3: third }
    const { outcomes, left } = await start(segments, { segment: 3, offset: third.length })
    assert.deepEqual([outcomes(), left], [{}, [4]], 'only the new segment is left')
  })

  it('removes nothing that a newer version wrote', async () => {
    const newer = frameOf('["h",2,null]', 2, 0)
    const history: History = []
    const image = new Map([
      [1, segmentOf(1, null, row('a'))],
      [2, newer],
    ])
    const files = simulatedDisk(image, history, () => ({ error: undefined, part: 1 }), false)
    const store = simulatedStore({ rows: new Map(), aside: new Map(), position: undefined }, history, () => false)
    const applied = applyJournal({ files, store, now: clock.now, setAside() {} })
    await assert.rejects(applied, { code: 'ERR_DATA_DIR_NEWER' })
    assert.deepEqual([await files.list(), history], [[1, 2], []])
  })

  it('numbers the next segment after those that exist and those that were applied', async () => {
    const history: History = []
    for (const [numbers, segment, next] of [
      [[], undefined, 1],
      [[], 9, 10],
      [[3, 12], 9, 13],
    ] as const) {
      const image = new Map(numbers.map((number) => [number, Buffer.alloc(0)]))
      const files = simulatedDisk(image, history, () => ({ error: undefined, part: 1 }), false)
      const position = segment === undefined ? undefined : { segment, offset: 1 }
      const store = simulatedStore({ rows: new Map(), aside: new Map(), position }, history, () => false)
      const { nextSegment } = await applyJournal({ files, store, now: clock.now, setAside() {} })
      assert.equal(nextSegment, next)
    }
  })
})
