import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { JOURNAL_FOLDER } from './core/journal/segment-names.ts'
import { journalFiles } from './ledger/journal-files.ts'
import { journalOwner } from './ledger/journal-owner.ts'
import { applyJournal, closeJournal } from './ledger/recovery.ts'
import type { Store } from './ports/store.ts'
import { settleRunningService } from './running-service.ts'
import { openStore, openStoreHere, type DatabaseChoice } from './store/open.ts'
import { systemClock } from './system-clock.ts'

/** The folder of the journal in a data directory. */
export const journalFolder = (dataDir: string): string => join(dataDir, JOURNAL_FOLDER)

/**
 * Opens the store for a command, with every row that is durable here: a service that runs on the data directory brings its
 * rows there first, and what a killed one left in its journal is brought there by the command. With PostgreSQL, the
 * rows of other machines get there by themselves, a fraction of a second later.
 */
export async function openSettledStore(choice: DatabaseChoice): Promise<Store> {
  const { dataDir } = choice
  while (!(await settleRunningService(dataDir)) && existsSync(journalFolder(dataDir))) {
    if (await applyLeftRows(choice)) break
  }
  return openStore({ ...choice, exclusive: false })
}

/** What a service that was killed had left, and is in its store now. */
export interface LeftBehind {
  readonly rows: number
  /** Requests that were under way, settled at nothing. */
  readonly interrupted: number
  /** Segments of which the disk lost a part. */
  readonly damaged: number
}

/** Brings everything that is left in the journal of a data directory into the store of its owner. Nobody may use either. */
export async function settleLeftJournal(store: Store, dataDir: string): Promise<LeftBehind> {
  const parts = { files: journalFiles(journalFolder(dataDir)), store, now: systemClock.now, setAside() {} }
  const left = await applyJournal(parts)
  const open = [...(await store.earlierIntents()), ...left.open]
  await closeJournal(parts, { ...left, open })
  await store.forgetEarlierIntents()
  await store.forgetJournal()
  const damaged = left.segments.filter(({ isDamaged }) => isDamaged).length
  return { rows: left.rows, interrupted: open.length, damaged }
}

/** Delivers what a replica left that will not start again. Refuses a directory whose service is running. */
export async function shipJournal(dataDir: string, databaseUrl: string): Promise<LeftBehind> {
  const owner = journalOwner(journalFolder(dataDir)).earlier
  const store = await openStoreHere({ dataDir, databaseUrl, owner, exclusive: true })
  try {
    return await settleLeftJournal(store, dataDir)
  } finally {
    await store.close()
  }
}

/** False if a service has started meanwhile. What was under way is left for the next start, which settles it. */
async function applyLeftRows(choice: DatabaseChoice): Promise<boolean> {
  const folder = journalFolder(choice.dataDir)
  const files = journalFiles(folder)
  if (choice.databaseUrl !== undefined && (await files.list()).length === 0) return true
  const owner = choice.databaseUrl === undefined ? undefined : journalOwner(folder).earlier
  let store: Store
  try {
    store = await openStoreHere({ ...choice, owner, exclusive: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_DATA_DIR_TAKEN') return false
    throw error
  }
  try {
    await applyJournal({ files, store, now: systemClock.now, setAside() {} })
    return true
  } finally {
    await store.close()
  }
}
