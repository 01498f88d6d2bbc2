import { scanFrames, type Frame } from '../core/journal/frames.ts'
import type { JournalPosition, JournalSpan } from '../core/journal/positions.ts'
import { recordsIn, type JournalRecord } from '../core/journal/records.ts'
import type { RequestRow } from '../core/money/ledger.ts'
import { writeInParts } from '../core/refused-write.ts'
import type { JournalFiles } from '../ports/journal-files.ts'
import type { LedgerStore } from '../ports/ledger.ts'

/** What rows need on their way from the journal into the store. */
export interface Projection {
  readonly files: Pick<JournalFiles, 'read'>
  readonly store: Pick<LedgerStore, 'addRows' | 'setAside'>
  now(): number
  /** Hears of a row that the store refuses for good. It is durable, but not in the ledger. */
  setAside(row: RequestRow, reason: string): void
}

/** Rows in one transaction: enough to share its cost, and few enough that nobody waits for it. */
const ROWS_MAX = 1000

/** Adds the rows of the spans to the store, in order. May be repeated: a row that is there already stays as it is. */
export async function projectSpans(projection: Projection, spans: readonly JournalSpan[]): Promise<void> {
  for (const { segment, from, to } of spans) {
    const { frames, end, damage } = scanFrames(await projection.files.read(segment, from, to), segment, from)
    if (end !== to || damage.length > 0) {
      throw new Error(`segment ${segment} of the journal cannot be read between ${from} and ${to}: check the disk`)
    }
    await projectFrames(projection, segment, frames.map(decodedFrame))
  }
}

export interface DecodedFrame {
  readonly records: readonly JournalRecord[]
  readonly end: number
}

export function decodedFrame({ text, end }: Frame): DecodedFrame {
  return { records: recordsIn(text), end }
}

export async function projectFrames(
  projection: Projection,
  segment: number,
  frames: readonly DecodedFrame[],
): Promise<void> {
  let rows: RequestRow[] = []
  for (const [index, { records, end }] of frames.entries()) {
    for (const record of records) if (record.kind === 'row') rows.push(record.row)
    if (rows.length < ROWS_MAX && index < frames.length - 1) continue
    await addRows(projection, rows, { segment, offset: end })
    rows = []
  }
}

/** Adds rows, and sets aside those that the store refuses for good. */
export async function addRows(
  { store, now, setAside }: Projection,
  rows: readonly RequestRow[],
  through?: JournalPosition,
): Promise<void> {
  if (rows.length === 0) return
  let isWhole = true
  await writeInParts(
    rows,
    async (part) => {
      isWhole = part.length === rows.length
      await store.addRows(part, isWhole ? through : undefined)
    },
    async (row, { message }) => {
      isWhole = false
      await store.setAside(row, message, now())
      setAside(row, message)
    },
  )
  // Every part is there by now. Before that, the position must not pass any of them.
  if (!isWhole && through) await store.addRows([], through)
}
