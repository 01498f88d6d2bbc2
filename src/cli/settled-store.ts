import { existsSync } from 'node:fs'
import { journalFiles, journalFolder } from '../ledger/journal/journal-files-on-disk.ts'
import { journalOwner } from '../ledger/journal/journal-owner.ts'
import { applyJournal, closeJournal } from '../ledger/recovery.ts'
import type { Store } from '../store/store.ts'
import { settleRunningService } from '../operate/running-service.ts'
import type { DatabaseChoice } from '../store/database-choice.ts'
import { openStoreHere } from '../store/open.ts'
import { systemClock } from '../shared/system-clock.ts'

/**
 * Opens the store for a command, with every row that is durable on this machine: a running service first writes its rows
 * to the store, and the command itself applies the journal of a killed one. With PostgreSQL, other machines write their
 * rows to it on their own, a fraction of a second later.
 */
export async function openSettledStore(choice: DatabaseChoice): Promise<Store> {
  const { dataDir } = choice
  while (!(await settleRunningService(dataDir)) && existsSync(journalFolder(dataDir))) {
    if (await applyLeftRows(choice)) break
  }
  return openStoreHere({ ...choice, exclusive: false })
}

/** What was in the journal of a killed service. It is in the store now. */
export interface SettledJournal {
  readonly rows: number
  /** Requests that were under way, settled at no cost. */
  readonly interrupted: number
  /** Segments of which the disk lost a part. */
  readonly damaged: number
}

/** Applies the journal of a data directory to the store of its owner. Neither may be in use. */
export async function settleOrphanedJournal(store: Store, dataDir: string): Promise<SettledJournal> {
  const parts = { files: journalFiles(journalFolder(dataDir)), store, now: systemClock.now, setAside() {} }
  const left = await applyJournal(parts)
  const open = [...(await store.earlierIntents()), ...left.open]
  await closeJournal(parts, { ...left, open })
  await store.forgetEarlierIntents()
  await store.forgetJournal()
  const damaged = left.segments.filter(({ isDamaged }) => isDamaged).length
  return { rows: left.rows, interrupted: open.length, damaged }
}

/** Delivers the journal of a replica that will not start again. Refuses a directory whose service is running. */
export async function shipJournal(dataDir: string, databaseUrl: string): Promise<SettledJournal> {
  const owner = journalOwner(journalFolder(dataDir)).earlier
  const store = await openStoreHere({ dataDir, databaseUrl, owner, exclusive: true })
  try {
    return await settleOrphanedJournal(store, dataDir)
  } finally {
    await store.close()
  }
}

/** False if a service has started in the meantime. Open requests are left for the next start, which settles them. */
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
