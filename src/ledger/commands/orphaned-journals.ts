import { existsSync, readdirSync } from 'node:fs'
import { segmentsAmong } from '../journal/segment-names.ts'
import { shipJournal, type SettledJournal } from '../../cli/settled-store.ts'
import { journalFolder } from '../journal/journal-files-on-disk.ts'
import { hasLedger } from '../../store/database-choice.ts'
import { serviceDirectories, workerDirectory } from '../../cluster/workers/directories.ts'

/** The result for one journal that no worker will open again. */
export type Delivery = { readonly directory: string } & (SettledJournal | { readonly failure: string })

/**
 * Delivers the journals in directories that none of these workers uses: the service ran with more workers when it
 * crashed, or with none. A directory with a running service is skipped, because its lock is held.
 */
export async function deliverOrphanedJournals(
  dataDir: string,
  databaseUrl: string,
  workers: number,
): Promise<readonly Delivery[]> {
  const inUse = new Set(Array.from({ length: workers }, (_, index) => workerDirectory(dataDir, index + 1)))
  const deliveries: Delivery[] = []
  for (const directory of serviceDirectories(dataDir).filter((it) => !inUse.has(it))) {
    try {
      if (isLeft(directory)) deliveries.push({ directory, ...(await shipJournal(directory, databaseUrl)) })
    } catch (error) {
      deliveries.push({ directory, failure: (error as Error).message })
    }
  }
  return deliveries
}

function isLeft(directory: string): boolean {
  const folder = journalFolder(directory)
  const hasRows = existsSync(folder) && segmentsAmong(readdirSync(folder)).length > 0
  // A journal next to an SQLite ledger belongs to that ledger.
  return hasRows && !hasLedger({ dataDir: directory })
}
