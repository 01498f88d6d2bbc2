import {
  closeSync,
  existsSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { appendDescription, checksumOf, journalBytes, KEPT_FILES, type BackupDescription } from './backup-file.ts'
import { appendBatchFiles, listedFiles, type ListedFiles } from './batch-files.ts'
import { flushFolderSync } from '../../shared/flush-folder.ts'
import { explainSqliteError } from '../../store/sqlite/failures.ts'
import { firstFault, rowCounts, sameCounts } from './integrity.ts'
import { appendSegments, closeSegments, openSegments, type OpenSegment } from './journal-copy.ts'
import { refusal, versionOf } from '../../store/sqlite/migrate.ts'

export interface BackupOptions {
  readonly dataDir: string
  readonly file: string
  /** Replaces a file that is there already. */
  readonly force: boolean
  readonly now: number
  /** Called as pages are copied. */
  progress(done: number, total: number): void
}

export interface MadeBackup {
  readonly bytes: number
  /** How much of it is the journal. */
  readonly journalBytes: number
  readonly description: BackupDescription
}

/** How many pages are copied before the disk gets a pause: 1 MiB. */
const PAGES_PER_STEP = 256
const BUSY_MS = 4000

/**
 * Copies a data directory to one file, even while a service writes to it. The copy is a snapshot of the database: a
 * read transaction, which never delays a writer. The file gets its name only when it is complete and checked.
 *
 * The journal is copied before the database: a row is removed from the journal once the database has it, so it is in
 * one of the two copies, or in both. The next start on them adds the rows that the database does not have.
 */
export async function takeBackup(options: BackupOptions): Promise<MadeBackup> {
  const { dataDir, file } = options
  const databaseFile = join(dataDir, 'weir.db')
  if (!existsSync(databaseFile)) {
    throw refusal('ERR_NO_DATABASE', `there is nothing to back up: ${dataDir} has no weir.db. Choose it with --data`)
  }
  if (!existsSync(dirname(resolve(file)))) {
    throw refusal('ERR_NO_FOLDER', `the folder ${dirname(resolve(file))} does not exist: create it first`)
  }
  if (existsSync(file) && !options.force) {
    throw refusal('ERR_BACKUP_EXISTS', `${file} exists: choose another name, or replace it with --force`)
  }
  const segments = openSegments(dataDir)
  try {
    return await writeBackup(databaseFile, segments, options)
  } finally {
    closeSegments(segments)
  }
}

async function writeBackup(
  databaseFile: string,
  segments: readonly OpenSegment[],
  options: BackupOptions,
): Promise<MadeBackup> {
  const { dataDir, file } = options
  const part = `${file}.part`
  rmSync(part, { force: true })
  const handle = openSync(part, 'wx+', 0o600)
  try {
    const taken = await copyDatabase(databaseFile, part, handle, options)
    const listed = checkCopy(part, taken.rows, dataDir)
    const written = (): void => letOthersWrite(handle)
    const { size } = fstatSync(handle)
    const database = { bytes: size, sha256: checksumOf(handle, 0, size) }
    const journal = appendSegments(segments, handle, size, written)
    const description: BackupDescription = {
      created: new Date(options.now).toISOString(),
      schema: taken.schema,
      database,
      journal,
      batchFiles: appendBatchFiles(listed, dataDir, handle, fstatSync(handle).size, written),
      batchFilesElsewhere: listed.elsewhere,
      rows: taken.rows,
      files: keptFiles(dataDir),
    }
    appendDescription(handle, description)
    fsyncSync(handle)
    renameSync(part, file)
    flushFolderSync(dirname(resolve(file)))
    return { bytes: fstatSync(handle).size, journalBytes: journalBytes(description), description }
  } catch (error) {
    rmSync(part, { force: true })
    throw explainSqliteError(error, dataDir, file)
  } finally {
    closeSync(handle)
  }
}

async function copyDatabase(
  from: string,
  to: string,
  handle: number,
  { dataDir, progress }: BackupOptions,
): Promise<{ readonly schema: number; readonly rows: Readonly<Record<string, number>> }> {
  const source = new DatabaseSync(from, { timeout: BUSY_MS })
  try {
    // Without this transaction, SQLite would restart the copy after every write of the service.
    source.exec('BEGIN')
    const schema = versionOf(source, dataDir)
    const rows = rowCounts(source)
    await backup(source, to, {
      rate: PAGES_PER_STEP,
      progress({ totalPages, remainingPages }) {
        progress(totalPages - remainingPages, totalPages)
        letOthersWrite(handle)
      },
    })
    source.exec('COMMIT')
    // The WAL could not be checkpointed during the copy. Doing it here keeps a caller from waiting for it.
    source.exec('PRAGMA wal_checkpoint(PASSIVE)')
    return { schema, rows }
  } finally {
    source.close()
  }
}

/**
 * A service on the same disk waits for its own rows to be written. So little of the copy is ever unwritten, and the
 * disk is free for half of the time.
 */
function letOthersWrite(handle: number): void {
  const started = performance.now()
  fdatasyncSync(handle)
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, performance.now() - started)
}

/** Returns the files of batches that the copy lists. */
function checkCopy(file: string, rows: Readonly<Record<string, number>>, dataDir: string): ListedFiles {
  const copy = openUnchanging(file)
  try {
    const fault = firstFault(copy)
    if (fault !== undefined) {
      throw refusal('ERR_DATA_DIR_DAMAGED', `the database is damaged (${fault}): restore the last good backup`)
    }
    if (!sameCounts(rowCounts(copy), rows)) {
      throw refusal('ERR_BACKUP_DAMAGED', 'the copy does not have the rows of the database: check the disk, try again')
    }
    return listedFiles(copy, dataDir)
  } finally {
    copy.close()
  }
}

/** Opens a database that is not being changed. Needs no locks and leaves no files beside it. */
export function openUnchanging(file: string): DatabaseSync {
  const url = pathToFileURL(resolve(file))
  url.searchParams.set('immutable', '1')
  return new DatabaseSync(url, { readOnly: true })
}

function keptFiles(dataDir: string): Readonly<Record<string, string>> {
  const present = KEPT_FILES.filter((name) => existsSync(join(dataDir, name)))
  return Object.fromEntries(present.map((name) => [name, readFileSync(join(dataDir, name), 'utf8')]))
}
