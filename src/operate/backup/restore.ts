import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { FILES_FOLDER } from '../../batches/file-store.ts'
import { JOURNAL_FOLDER, segmentName } from '../../ledger/journal/segment-names.ts'
import { openUnchanging } from './backup.ts'
import {
  batchFilesIn,
  checkedDescription,
  chunksOf,
  KEPT_FILES,
  segmentsIn,
  type BackupDescription,
} from './backup-file.ts'
import { flushFolderSync } from '../../shared/flush-folder.ts'
import { explainSqliteError } from '../../store/sqlite/failures.ts'
import { firstFault, rowCounts, sameCounts } from './integrity.ts'
import { refusal } from '../../store/sqlite/migrate.ts'
import { isRestoreFolder, lockForService } from '../../store/sqlite/open-database.ts'

export interface RestoreOptions {
  readonly file: string
  readonly dataDir: string
  /** Allows a data directory that is in use already. */
  readonly force: boolean
  readonly now: number
  /** The actor in the audit log. */
  readonly actor: string
}

export interface Restored {
  readonly description: BackupDescription
  /** Where the former content of the data directory is now. */
  readonly replaced: string | undefined
}

const DATABASE = 'weir.db'
/** Models can be downloaded again, so they are neither backed up nor moved. The lock belongs to this restore. */
const LEFT_ALONE = /^(models|serve\.lock.*|before-restore-.*)$/
/** The database is moved away first and put back last: a service does not start on a directory in between. */
const DATABASE_FIRST = [DATABASE, `${DATABASE}-wal`, `${DATABASE}-shm`]

/**
 * Replaces a data directory with a backup. Nothing is deleted: the previous files are moved to a folder next to the
 * restored ones. The backup is checked twice before that: the file, and then the database made from it.
 */
export function restoreBackup({ file, dataDir, force, now, actor }: RestoreOptions): Restored {
  const description = checkedDescription(file)
  const lock = lockForService(dataDir)
  try {
    const present = contentOf(dataDir)
    if (present.length > 0 && !force) {
      throw refusal(
        'ERR_DATA_DIR_USED',
        `${dataDir} is not empty: choose another directory with --data, or move its content aside with --force`,
      )
    }
    const stamp = new Date(now).toISOString().replaceAll(/[:.]/g, '-')
    const staged = join(dataDir, `restoring-${stamp}`)
    stage(staged, file, description, { at: now, actor })
    const replaced = present.length === 0 ? undefined : join(dataDir, `before-restore-${stamp}`)
    if (replaced !== undefined) moveAside(dataDir, replaced, present)
    for (const name of [...readdirSync(staged).filter((it) => it !== DATABASE), DATABASE]) {
      renameSync(join(staged, name), join(dataDir, name))
    }
    rmSync(staged, { recursive: true })
    flushFolderSync(dataDir)
    return { description, replaced }
  } catch (error) {
    throw explainSqliteError(error, dataDir)
  } finally {
    lock.close()
  }
}

function contentOf(dataDir: string): readonly string[] {
  return readdirSync(dataDir).filter((name) => !LEFT_ALONE.test(name))
}

const isKept = (name: string): boolean => KEPT_FILES.some((kept) => kept === name)

/** Writes the restored files into a folder of their own, and checks the database there. */
function stage(folder: string, file: string, description: BackupDescription, by: { at: number; actor: string }): void {
  mkdirSync(folder, { mode: 0o700 })
  try {
    copyPart(file, 0, description.database.bytes, join(folder, DATABASE))
    const segments = segmentsIn(description).map((it) => ({ ...it, name: segmentName(it.segment) }))
    stageParts(join(folder, JOURNAL_FOLDER), file, segments)
    stageParts(join(folder, FILES_FOLDER), file, batchFilesIn(description))
    for (const [name, content] of Object.entries(description.files)) {
      if (isKept(name)) writeFileSync(join(folder, name), content, { mode: 0o600, flush: true })
    }
    check(join(folder, DATABASE), file, description)
    record(join(folder, DATABASE), file, description, by)
    flushFolderSync(folder)
  } catch (error) {
    rmSync(folder, { recursive: true })
    throw error
  }
}

function stageParts(
  folder: string,
  file: string,
  parts: readonly { readonly name: string; readonly from: number; readonly bytes: number }[],
): void {
  if (parts.length === 0) return
  mkdirSync(folder, { mode: 0o700 })
  for (const { name, from, bytes } of parts) copyPart(file, from, bytes, join(folder, name))
  flushFolderSync(folder)
}

function copyPart(file: string, from: number, bytes: number, to: string): void {
  const [source, target] = [openSync(file, 'r'), openSync(to, 'wx', 0o600)]
  try {
    for (const chunk of chunksOf(source, from, bytes)) {
      for (let done = 0; done < chunk.length;) done += writeSync(target, chunk, done)
    }
    fsyncSync(target)
  } finally {
    closeSync(source)
    closeSync(target)
  }
}

function check(databaseFile: string, file: string, { rows }: BackupDescription): void {
  const database = openUnchanging(databaseFile)
  try {
    const fault = firstFault(database)
    if (fault === undefined && sameCounts(rowCounts(database), rows)) return
    throw refusal(
      'ERR_BACKUP_DAMAGED',
      `${file} is damaged (${fault ?? 'rows are missing'}): use another copy or another backup`,
    )
  } finally {
    database.close()
  }
}

/** Records the restore in the restored database, unless it is older than the audit log. */
function record(
  databaseFile: string,
  file: string,
  { created }: BackupDescription,
  { at, actor }: { at: number; actor: string },
): void {
  const database = new DatabaseSync(databaseFile)
  try {
    const hasLog = database.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'audit_log'").get()
    if (!hasLog) return
    database
      .prepare(`INSERT INTO audit_log (at, actor, request_id, action, subject, request, outcome)
        VALUES (?, ?, '', 'restoreBackup', ?, ?, 'done')`)
      .run(at, actor, basename(file), JSON.stringify({ created }))
  } finally {
    database.close()
  }
}

function moveAside(dataDir: string, replaced: string, present: readonly string[]): void {
  mkdirSync(replaced, { mode: 0o700 })
  const first = DATABASE_FIRST.filter((name) => present.includes(name))
  for (const name of [...first, ...present.filter((it) => !first.includes(it))]) {
    // The folder of an interrupted restore contains nothing that the backup does not have.
    if (isRestoreFolder(name)) rmSync(join(dataDir, name), { recursive: true })
    else renameSync(join(dataDir, name), join(replaced, name))
  }
  flushFolderSync(replaced)
}
