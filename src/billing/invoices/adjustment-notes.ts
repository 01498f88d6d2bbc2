import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../shared/clock.ts'
import type { AdjustmentNoteStore, IssuedInvoice, Reversal, UnfinishedNote } from './invoice-store.ts'

/** How many rows one transaction reads. Adding rows waits for it, so it has to end within milliseconds. */
const SLICE_ROWS = 200
/**
 * The minimum pause between two of them. A writer in another process that finds SQLite busy retries after 1, 2, 5, 10,
 * 15, 20, 25 … ms, so it hits every pause that is this long and no shorter than the transaction before it.
 */
const PAUSE_MS = 25

/**
 * Finishes the document that this process or another one began, if there is one, and returns it. Its whole state is in
 * the store, so a crash in the middle loses nothing, and two processes may finish the same document.
 */
export async function finishNote(store: AdjustmentNoteStore, clock: Clock): Promise<UnfinishedNote | undefined> {
  const first = await store.unfinishedNote()
  const isSame = (it: UnfinishedNote | undefined): it is UnfinishedNote => it?.note.number === first?.note.number
  for (let current = first; current && isSame(current); current = await store.unfinishedNote()) {
    const startedAt = clock.monotonic()
    if (await store.continueNote(current, SLICE_ROWS)) {
      await sleep(Math.max(PAUSE_MS, clock.monotonic() - startedAt))
    } else if (!(await store.finishNote(current.note)) && isSame(await store.unfinishedNote())) {
      throw new Error(`${current.note.number} does not have the rows that it was computed from`)
    }
  }
  return first
}

/** Whether an unfinished note is the one requested: the request was cut off before its answer. */
export function isSameCredit(
  { note, reversal }: UnfinishedNote,
  requested: Pick<IssuedInvoice, 'workspaceId' | 'period'> & Pick<Reversal, 'requestIds' | 'reason'>,
): boolean {
  const ids = (requestIds: Reversal['requestIds']): string =>
    JSON.stringify(requestIds && [...new Set(requestIds)].toSorted())
  return (
    note.kind === 'adjustment_note' &&
    note.workspaceId === requested.workspaceId &&
    note.period === requested.period &&
    reversal.reason === requested.reason &&
    ids(reversal.requestIds) === ids(requested.requestIds)
  )
}
