import { mkdirSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { diskFailureOf, explainDiskFailure } from '../../shared/disk-failure.ts'
import { flushFolderSync } from '../../shared/flush-folder.ts'
import { damagedDirectory, explainSqliteError, sqliteCode } from './failures.ts'
import { migrateSqlite, refusal } from './migrate.ts'
import { takeServiceLock } from './service-lock.ts'

/** How long a write waits for another process. It is shorter than a response waits for its row. */
const BUSY_MS = 4000
const SQLITE_BUSY = 5

/** The name that weir migrate gives to a database after moving it to PostgreSQL. */
export const MOVED_DATABASE = 'weir.db.moved'

/** Opens the database of a data directory, and creates both if they do not exist. */
export function openDatabase(dataDir: string, { exclusive }: { exclusive: boolean }): DatabaseSync {
  return withExplainedErrors(dataDir, () => {
    refuseMissingDatabase(dataDir)
    const opened = new DatabaseSync(join(dataDir, 'weir.db'), { timeout: BUSY_MS })
    try {
      opened.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON')
      migrateSqlite(opened, dataDir, { exclusive })
      return opened
    } catch (error) {
      opened.close()
      throw error
    }
  })
}

/** Takes the data directory's service lock. Creates the directory if it does not exist. */
export function lockForService(dataDir: string): { close(): void } {
  return withExplainedErrors(dataDir, () => {
    makeDirectory(dataDir)
    try {
      return takeServiceLock(dataDir)
    } catch (error) {
      if (sqliteCode(error) !== SQLITE_BUSY) throw error
      throw refusal('ERR_DATA_DIR_TAKEN', `another service is running on ${dataDir}: stop it first`, error)
    }
  })
}

/** Whether a name in a data directory is the working folder of a restore. It exists only while one runs or if one was interrupted. */
export const isRestoreFolder = (name: string): boolean => name.startsWith('restoring-')

/**
 * SQLite creates a missing database, and deletes a write-ahead log that has no database. In a used directory, a lost file
 * would silently become a fresh start without any data.
 */
export function refuseMissingDatabase(dataDir: string): void {
  makeDirectory(dataDir)
  if (sizeOf(join(dataDir, 'weir.db')) > 0) return
  const names = readdirSync(dataDir)
  if (names.some(isRestoreFolder)) {
    throw refusal(
      'ERR_DATA_DIR_RESTORING',
      `a restore of ${dataDir} was interrupted: run weir restore FILE --force again`,
    )
  }
  if (names.includes(MOVED_DATABASE)) {
    throw refusal(
      'ERR_DATA_DIR_MOVED',
      `the ledger of ${dataDir} was moved to PostgreSQL: set database in weir.yaml, or WEIR_DATABASE_URL`,
    )
  }
  // The service creates the folder for uploads only after its database is open.
  if (names.includes('spool') || sizeOf(join(dataDir, 'weir.db-wal')) > 0) {
    throw damagedDirectory(dataDir, 'weir.db is missing or empty')
  }
}

/** For a service that has opened this database before: opening a missing database would create an empty one. */
export function requireDatabase(dataDir: string): void {
  if (sizeOf(join(dataDir, 'weir.db')) === 0) throw replacedDirectory(dataDir)
}

export function replacedDirectory(dataDir: string): Error {
  return refusal('ERR_DATA_DIR_REPLACED', `${dataDir} is not the data directory any more; restart the service`)
}

/** Does not use mkdir's `recursive`, which never returns if a file system such as /proc refuses new names. */
function makeDirectory(directory: string): void {
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory()) return
  try {
    const parent = dirname(directory)
    if (parent !== directory) makeDirectory(parent)
    mkdirSync(directory, { mode: 0o700 })
    flushFolderSync(parent)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    // Another process may have created it in the meantime.
    if (code === 'EEXIST' && statSync(directory).isDirectory()) return
    if (code === 'ERR_DATA_DIR_DISK') throw error
    const failure = diskFailureOf(code) ?? 'unwritable'
    throw refusal('ERR_DATA_DIR_DISK', explainDiskFailure(failure, directory, message), error)
  }
}

/** 0 also if the file does not exist. */
function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

function withExplainedErrors<Result>(dataDir: string, work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    throw explainSqliteError(error, dataDir)
  }
}
