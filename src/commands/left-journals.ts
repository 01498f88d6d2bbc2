import { existsSync, readdirSync } from 'node:fs'
import { segmentsAmong } from '../core/journal/segment-names.ts'
import { journalFolder, shipJournal, type LeftBehind } from '../settled-books.ts'
import { hasLedger } from '../store/open.ts'
import { serviceDirectories, workerDirectory } from '../workers/directories.ts'

/** What became of a journal that no worker will open again. */
export type Delivery = { readonly directory: string } & (LeftBehind | { readonly failure: string })

/**
 * Delivers the journals of directories that none of these workers uses: there were more of them when the service crashed, or
 * it had none. A directory whose service runs is left alone; its lock says so.
 */
export async function deliverLeftJournals(
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
  // A journal beside an SQLite ledger belongs to it.
  return hasRows && !hasLedger({ dataDir: directory })
}
