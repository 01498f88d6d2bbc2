import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { JOURNAL_FOLDER } from './core/journal/segment-names.ts'
import { journalFiles } from './ledger/journal-files.ts'
import { applyJournal } from './ledger/recovery.ts'
import type { Store } from './ports/store.ts'
import { settleRunningService } from './running-service.ts'
import { openStore, openStoreHere } from './store/open.ts'
import { systemClock } from './system-clock.ts'

/** The folder of the journal in a data directory. */
export const journalFolder = (dataDir: string): string => join(dataDir, JOURNAL_FOLDER)

/**
 * Opens the store of a data directory for a command, with every row that is durable: a running service brings its rows
 * there first, and what a killed one left in its journal is brought there by the command.
 */
export async function openSettledStore(dataDir: string): Promise<Store> {
  while (!(await settleRunningService(dataDir)) && existsSync(journalFolder(dataDir))) {
    if (await applyLeftRows(dataDir)) break
  }
  return openStore({ dataDir, exclusive: false })
}

/** False if a service has started meanwhile. What was under way is left for the next start, which settles it. */
async function applyLeftRows(dataDir: string): Promise<boolean> {
  let store: Store
  try {
    store = openStoreHere({ dataDir, exclusive: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_DATA_DIR_TAKEN') return false
    throw error
  }
  try {
    await applyJournal({ files: journalFiles(journalFolder(dataDir)), store, now: systemClock.now, setAside() {} })
    return true
  } finally {
    await store.close()
  }
}
