import { writeInParts } from '../shared/refused-write.ts'
import type { LedgerStore } from './ledger.ts'

/** How many rows a start retries. The rest is left for the next start. */
const MAX_ROWS = 10_000

/**
 * Adds the rows that were set aside to the ledger, if the store accepts them now: the cause may have been removed, or a
 * new version may have fixed it. Returns how many were added, and how many are still refused.
 */
export async function retryRefusedRows(
  store: Pick<LedgerStore, 'refusedRows' | 'addRefused'>,
): Promise<{ readonly added: number; readonly refused: number }> {
  const setAside = await store.refusedRows(MAX_ROWS)
  const readable = setAside.flatMap(({ row }) => (row ? [row] : []))
  let added = 0
  if (readable.length > 0) {
    await writeInParts(
      readable,
      async (rows) => {
        await store.addRefused(rows)
        added += rows.length
      },
      async () => {},
    )
  }
  return { added, refused: setAside.length - added }
}
