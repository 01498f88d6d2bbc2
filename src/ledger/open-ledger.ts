import timers from 'node:timers/promises'
import type { JournalSpan } from './journal/positions.ts'
import type { Clock } from '../shared/clock.ts'
import type { JournalFiles } from './journal/journal-files.ts'
import type { Ledger, LedgerStore } from './ledger.ts'
import { openJournal } from './journal/journal.ts'
import { journalLedger, type LedgerLimits } from './journal-ledger.ts'
import { createProjector } from './projector.ts'
import { applyJournal, closeJournal } from './recovery.ts'
import { retryRefusedRows } from './refused-rows.ts'

export interface LedgerParts extends LedgerLimits {
  readonly files: JournalFiles
  /** Only used until the ledger is open, for rows of an earlier process. */
  readonly store: LedgerStore
  readonly clock: Clock
  /** Adds rows of the journal to the store, on a thread of its own. */
  apply(spans: readonly JournalSpan[]): Promise<void>
  /** Called when the store has all rows of an earlier process, before anything is written to the journal. */
  begin(): Promise<void>
  readonly events: LedgerEvents
}

export interface LedgerEvents {
  /** Requests that an earlier process left open were settled at no cost. */
  interrupted(requests: number): void
  /** The disk lost a part of these segments, and the rows in it. */
  damaged(segments: readonly number[]): void
  /** Rows that the store refused before are in the ledger now. */
  refusedRowsAdded(rows: number): void
  /** The store still refuses rows that an earlier process set aside. */
  stillRefused(rows: number): void
  /** The store refuses a row permanently. The row is durable, but not in the ledger. */
  setAside(row: { readonly requestId: string; readonly workspaceId: string }, reason: string): void
  /** The store stopped accepting rows, or accepts them again. */
  storeFailed(reason: Error): void
  storeRecovered(): void
}

/** A failing store must not keep the service from stopping. The journal keeps its rows for the next start. */
const LAST_FLUSH_MS = 10_000

/** Settles what an earlier process left open, and opens the journal for this one. */
export async function openLedger(parts: LedgerParts): Promise<Ledger & { close(): Promise<void> }> {
  const { files, clock, events } = parts
  const firstSegment = await settleEarlierRuns(parts)
  await parts.begin()
  const projector = createProjector({
    clock,
    apply: parts.apply,
    done: (segment) => void files.remove(segment).catch(() => {}),
    failed: events.storeFailed,
    recovered: events.storeRecovered,
  })
  const journal = openJournal({ files, firstSegment, clock, grew: projector.add })
  await journal.prepare()
  const ledger = journalLedger(journal, projector, parts)
  return {
    ...ledger,
    async close() {
      await Promise.race([ledger.flush().catch(() => {}), timers.setTimeout(LAST_FLUSH_MS, undefined, { ref: false })])
      projector.close()
      const { isComplete } = journal.close()
      if (!isComplete || projector.status().bytes > 0) return
      // A segment that was applied may be gone by now. One that could not be removed is removed at the next start.
      for (const segment of await files.list().catch(() => [])) await files.remove(segment).catch(() => {})
    },
  }
}

/** Returns the number of the first new segment. */
async function settleEarlierRuns({ files, store, clock, events }: LedgerParts): Promise<number> {
  // Rows of earlier runs first, so that a row that is set aside now is reported once.
  const { added, refused } = await retryRefusedRows(store)
  if (added > 0) events.refusedRowsAdded(added)
  if (refused > 0) events.stillRefused(refused)
  const recovery = { files, store, now: clock.now, setAside: events.setAside }
  const left = await applyJournal(recovery)
  const open = [...(await store.earlierIntents()), ...left.open]
  await closeJournal(recovery, { ...left, open })
  await store.forgetEarlierIntents()
  if (open.length > 0) events.interrupted(open.length)
  const damaged = left.segments.flatMap(({ segment, isDamaged }) => (isDamaged ? [segment] : []))
  if (damaged.length > 0) events.damaged(damaged)
  return left.nextSegment
}
