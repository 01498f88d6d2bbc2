import { journalFiles, journalFolder } from '../../src/ledger/journal/journal-files-on-disk.ts'
import { openLedger } from '../../src/ledger/open-ledger.ts'
import type { Store } from '../../src/store/store.ts'

/**
 * Does what a start does first with a data directory: brings the rows of its journal into the ledger, and settles at
 * nothing what was under way. Returns how many requests that were.
 */
export async function settleEarlierRuns(store: Store, dataDir: string, now: number): Promise<number> {
  let interrupted = 0
  const ledger = await openLedger({
    files: journalFiles(journalFolder(dataDir)),
    store,
    clock: { now: () => now, monotonic: () => 0 },
    maxJournalBytes: 0,
    begin: async () => {},
    waitFor: 'journal',
    apply: () => Promise.resolve(),
    events: {
      interrupted: (requests) => (interrupted = requests),
      damaged() {},
      refusedRowsAdded() {},
      stillRefused() {},
      setAside() {},
      storeFailed() {},
      storeRecovered() {},
    },
  })
  await ledger.close()
  return interrupted
}
