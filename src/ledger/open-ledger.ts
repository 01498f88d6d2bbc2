import { setTimeout as sleep } from 'node:timers/promises'
import type { JournalSpan } from '../core/journal/positions.ts'
import type { Clock } from '../ports/clock.ts'
import type { JournalFiles } from '../ports/journal-files.ts'
import type { Ledger, LedgerStore } from '../ports/ledger.ts'
import { openJournal } from './journal.ts'
import { journalLedger, type LedgerLimits } from './journal-ledger.ts'
import { createProjector } from './projector.ts'
import { applyJournal, closeJournal } from './recovery.ts'
import { retryRefusedRows } from './refused-rows.ts'

export interface LedgerParts extends LedgerLimits {
  readonly files: JournalFiles
  /** Only used until the ledger is open, for what an earlier process left. */
  readonly store: LedgerStore
  readonly clock: Clock
  /** Adds rows of the journal to the store, on a thread of its own. */
  apply(spans: readonly JournalSpan[]): Promise<void>
  /** Called when the store has everything that an earlier process left, before anything is written to the journal. */
  begin(): Promise<void>
  readonly events: LedgerEvents
}

export interface LedgerEvents {
  /** What an earlier process left open was settled at nothing. */
  interrupted(requests: number): void
  /** The disk lost a part of these segments, and the rows in it. */
  damaged(segments: readonly number[]): void
  /** Rows that the store refused before are in the ledger now. */
  refusedRowsAdded(rows: number): void
  /** The store still refuses rows that an earlier process set aside. */
  stillRefused(rows: number): void
  /** The store refuses a row for good. It is durable, but not in the ledger. */
  setAside(row: { readonly requestId: string; readonly workspaceId: string }, reason: string): void
  /** The store takes no rows, or takes them again. */
  storeFailed(reason: Error): void
  storeRecovered(): void
}

/** A store that keeps failing must not keep the service from stopping. The journal keeps its rows for the next start. */
const LAST_FLUSH_MS = 10_000

/** Settles what an earlier process left, and opens the journal for this one. */
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
      await Promise.race([ledger.flush().catch(() => {}), sleep(LAST_FLUSH_MS, undefined, { ref: false })])
      projector.close()
      const { isComplete } = journal.close()
      if (!isComplete || projector.status().bytes > 0) return
      // One that is applied may be gone by now. One that stays is removed by the next start.
      for (const segment of await files.list().catch(() => [])) await files.remove(segment).catch(() => {})
    },
  }
}

/** Returns the number of the first new segment. */
async function settleEarlierRuns({ files, store, clock, events }: LedgerParts): Promise<number> {
  // First those of earlier runs, so that a row that is set aside now is told once.
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
