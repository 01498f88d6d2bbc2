import { scanFrames, type Frame, recordsIn, type JournalRecord } from './journal/records.ts'
import type { JournalPosition, JournalSpan } from './journal/positions.ts'
import type { RequestRow } from './rows.ts'
import { writeInParts } from '../shared/refused-write.ts'
import type { JournalFiles } from './journal/journal-files.ts'
import type { LedgerStore } from './ledger.ts'

/** What it takes to copy rows from the journal to the store. */
export interface Projection {
  readonly files: Pick<JournalFiles, 'read'>
  readonly store: Pick<LedgerStore, 'addRows' | 'setAside'>
  now(): number
  /** Called for a row that the store refuses permanently. It is durable, but not in the ledger. */
  setAside(row: RequestRow, reason: string): void
}

/** Rows in one transaction: enough to share its cost, and few enough that it blocks no other statement for long. */
const ROWS_MAX = 1000

/** Adds the rows of the spans to the store, in order. May be repeated: an existing row stays as it is. */
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

/** Adds rows, and sets aside those that the store refuses permanently. */
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
  // All parts are stored now. Until then, the position must not move past any of them.
  if (!isWhole && through) await store.addRows([], through)
}
