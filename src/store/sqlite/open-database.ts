import { mkdirSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { diskFailureOf, explainDiskFailure } from '../../core/disk-failure.ts'
import { damagedDirectory, explained, sqliteCode } from './failures.ts'
import { migrate, refusal } from './migrate.ts'
import { takeServiceLock } from './service-lock.ts'

/** How long a write waits for another process. A caller's last byte waits longer than this for the write. */
const BUSY_MS = 4000
const SQLITE_BUSY = 5

/** What weir migrate leaves of a database whose content is in PostgreSQL. */
export const MOVED_DATABASE = 'weir.db.moved'

/** Opens the database of a data directory, and creates both if they do not exist. */
export function openDatabase(dataDir: string, { exclusive }: { exclusive: boolean }): DatabaseSync {
  return inPlainWords(dataDir, () => {
    refuseMissingDatabase(dataDir)
    const opened = new DatabaseSync(join(dataDir, 'weir.db'), { timeout: BUSY_MS })
    try {
      opened.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON')
      migrate(opened, dataDir, { exclusive })
      return opened
    } catch (error) {
      opened.close()
      throw error
    }
  })
}

/** Takes the data directory's service lock. Creates the directory if it does not exist. */
export function lockForService(dataDir: string): { close(): void } {
  return inPlainWords(dataDir, () => {
    makeDirectory(dataDir)
    try {
      return takeServiceLock(dataDir)
    } catch (error) {
      if (sqliteCode(error) !== SQLITE_BUSY) throw error
      throw refusal('ERR_DATA_DIR_TAKEN', `another service is running on ${dataDir}: stop it first`, error)
    }
  })
}

/** Whether a name in a data directory is a restore's working folder. It is only there while one runs or if it was cut off. */
export const isRestoreFolder = (name: string): boolean => name.startsWith('restoring-')

/**
 * SQLite creates a database that does not exist, and deletes a write-ahead log without one. In a directory that has been
 * used, that would turn a lost file into a fresh start without any data.
 */
export function refuseMissingDatabase(dataDir: string): void {
  makeDirectory(dataDir)
  if (sizeOf(join(dataDir, 'weir.db')) > 0) return
  const names = readdirSync(dataDir)
  if (names.some(isRestoreFolder)) {
    throw refusal('ERR_DATA_DIR_RESTORING', `a restore of ${dataDir} was cut off: run weir restore FILE --force again`)
  }
  if (names.includes(MOVED_DATABASE)) {
    throw refusal(
      'ERR_DATA_DIR_MOVED',
      `the books of ${dataDir} were moved to PostgreSQL: set database in weir.yaml, or WEIR_DATABASE_URL`,
    )
  }
  // The service makes the folder for uploads once its database is open.
  if (names.includes('spool') || sizeOf(join(dataDir, 'weir.db-wal')) > 0) {
    throw damagedDirectory(dataDir, 'weir.db is missing or empty')
  }
}

/** For a service that has opened this database before. Opening it would create an empty one where it is missing. */
export function requireDatabase(dataDir: string): void {
  if (sizeOf(join(dataDir, 'weir.db')) === 0) throw replacedDirectory(dataDir)
}

export function replacedDirectory(dataDir: string): Error {
  return refusal('ERR_DATA_DIR_REPLACED', `${dataDir} is not the data directory any more; restart the service`)
}

/** Not mkdir's own `recursive`, which never returns if a file system such as /proc refuses new names. */
function makeDirectory(directory: string): void {
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory()) return
  try {
    const parent = dirname(directory)
    if (parent !== directory) makeDirectory(parent)
    mkdirSync(directory, { mode: 0o700 })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    // Another process may have made it just now.
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

function inPlainWords<Result>(dataDir: string, work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    throw explained(error, dataDir)
  }
}
