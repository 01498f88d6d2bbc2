import type { LedgerBatch } from '../ports/ledger.ts'

/**
 * Intents are written a batch at a time, as one row, and only cleared away when every request of it was
 * settled: cheaper than a row to add and to take away for each request. A request is open as long as it is
 * not in the ledger, so a batch that a crash left behind does no harm.
 */
export interface IntentJournal {
  /** The id for the next batch, and the batches that may be cleared away with it. */
  next(): { readonly id: number; readonly closed: readonly number[] }
  /** The transaction that had them succeeded. */
  written(id: number, closed: readonly number[], batch: LedgerBatch): void
}

export function intentJournal(): IntentJournal {
  const batchOf = new Map<string, { readonly id: number; open: number }>()
  const settled = new Set<number>()
  let lastId = 0
  return {
    next: () => ({ id: ++lastId, closed: [...settled] }),
    written(id, closed, { intents, rows }) {
      for (const it of closed) settled.delete(it)
      const opened = { id, open: intents.length }
      for (const { requestId } of intents) batchOf.set(requestId, opened)
      for (const { requestId } of rows) {
        const batch = batchOf.get(requestId)
        if (!batch) continue
        batchOf.delete(requestId)
        batch.open--
        if (batch.open === 0) settled.add(batch.id)
      }
    },
  }
}
