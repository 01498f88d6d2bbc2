import { scanFrames, recordsIn, type SegmentHead } from './journal/records.ts'
import { isAfter } from './journal/positions.ts'
import { interruptedRow, type Intent } from './rows.ts'
import type { JournalFiles } from './journal/journal-files.ts'
import type { LedgerStore } from './ledger.ts'
import { addRows, decodedFrame, projectFrames, type DecodedFrame, type Projection } from './projection.ts'

export interface RecoveryParts extends Projection {
  readonly files: JournalFiles
  readonly store: Pick<LedgerStore, 'addRows' | 'setAside' | 'journalPosition'>
}

/** What an earlier process left in the journal. Its rows are in the store now. */
export interface Recovered {
  readonly rows: number
  /** Recorded and never settled. */
  readonly open: readonly Intent[]
  /** The segments that are only needed to look for what the disk lost. */
  readonly segments: readonly { readonly segment: number; readonly isDamaged: boolean }[]
  /** The number of the next segment. */
  readonly nextSegment: number
}

/** Copies the rows of every segment to the store. May be repeated, and interrupted at any point. */
export async function applyJournal(parts: RecoveryParts): Promise<Recovered> {
  const numbers = await parts.files.list()
  const applied = await parts.store.journalPosition()
  const open = new Map<string, Intent>()
  const segments: { segment: number; isDamaged: boolean }[] = []
  let rows = 0
  for (const { segment, end } of await countingParts(parts.files, numbers, applied?.segment ?? 0)) {
    // One segment at a time, since a long outage leaves many.
    const scanned = scanFrames(await parts.files.read(segment, 0, end), segment)
    const frames = scanned.frames.map(decodedFrame)
    for (const record of frames.flatMap(({ records }) => records)) {
      if (record.kind === 'intent') open.set(record.intent.requestId, record.intent)
      if (record.kind !== 'row') continue
      open.delete(record.row.requestId)
      rows++
    }
    const isNew = (frame: DecodedFrame): boolean => !applied || isAfter({ segment, offset: frame.end }, applied)
    await projectFrames(parts, segment, frames.filter(isNew))
    segments.push({ segment, isDamaged: scanned.damage.length > 0 || scanned.end < end })
  }
  const last = Math.max(0, ...numbers, applied?.segment ?? 0)
  return { rows, open: [...open.values()], segments, nextSegment: last + 1 }
}

/** Settles at no cost what was recorded and never settled, and removes the segments. */
export async function closeJournal(parts: RecoveryParts, { open, segments }: Recovered): Promise<void> {
  const at = parts.now()
  await addRows(
    parts,
    open.map((intent) => interruptedRow(intent, at)),
  )
  for (const { segment, isDamaged } of segments) {
    if (isDamaged) await parts.files.putAway(segment)
    else await parts.files.remove(segment)
  }
}

/**
 * How far each segment counts. After a failed write, the next segment records where the last one ended: what follows
 * was never confirmed, and is written again in the new one. A segment without any durable frame is not mentioned at
 * all. The first segment of a process refers to none, since everything before it was settled when the process started.
 *
 * Segments before the one that is being applied are finished: each segment begins with what was open at that time. Such
 * a segment may still exist because it could not be removed.
 */
async function countingParts(
  files: JournalFiles,
  numbers: readonly number[],
  appliedSegment: number,
): Promise<readonly { readonly segment: number; readonly end: number }[]> {
  const parts: { segment: number; end: number }[] = []
  let next: SegmentHead | undefined
  for (const segment of numbers.toReversed()) {
    const { frames, end } = scanFrames(await files.read(segment), segment)
    const named = next?.previous
    const isSkipped = segment < appliedSegment || (next !== undefined && (named?.segment ?? 0) < segment)
    parts.unshift({ segment, end: isSkipped ? 0 : named?.segment === segment ? named.end : end })
    if (!isSkipped) next = headIn(frames[0]?.text) ?? next
  }
  return parts
}

function headIn(text: string | undefined): SegmentHead | undefined {
  const [first] = text === undefined ? [] : recordsIn(text.split('\n', 1)[0] ?? '')
  return first?.kind === 'head' ? first.head : undefined
}
