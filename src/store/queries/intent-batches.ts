import type { LedgerBatch } from '../../ports/ledger.ts'

/**
 * Which batches of intents can be cleared away. Intents are stored a batch at a time, as one row, and the row goes
 * when every request in it is settled: cheaper than adding and removing a row for each request. A request that is in
 * the ledger is not open, so a batch that a crash left behind does no harm.
 */
export interface IntentBatches {
  /** The name of the next batch, and the batches that can be cleared away in the same transaction. */
  next(): { readonly name: string; readonly settled: readonly string[] }
  /** Call when the transaction with `next()` has succeeded. */
  written(next: { readonly name: string; readonly settled: readonly string[] }, batch: LedgerBatch): void
}

/** `incarnation` is different for every process, so no two of them choose the same name for a batch. */
export function intentBatches(incarnation: string): IntentBatches {
  const batchOf = new Map<string, { readonly name: string; open: number }>()
  const allSettled = new Set<string>()
  let count = 0
  return {
    next: () => ({ name: `${incarnation}-${++count}`, settled: [...allSettled] }),
    written({ name, settled }, { intents, rows }) {
      for (const it of settled) allSettled.delete(it)
      const noted = { name, open: intents.length }
      for (const { requestId } of intents) batchOf.set(requestId, noted)
      for (const { requestId } of rows) {
        const batch = batchOf.get(requestId)
        if (!batch) continue
        batchOf.delete(requestId)
        batch.open--
        if (batch.open === 0) allSettled.add(batch.name)
      }
    },
  }
}
