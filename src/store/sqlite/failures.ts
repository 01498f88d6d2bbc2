import { diskFailureOf, explainDiskFailure, type DiskFailure } from '../../shared/disk-failure.ts'
import { refusal } from './migrate.ts'

/** SQLite's primary result codes. */
const BUSY = 5
const CORRUPT = 11
const NOT_A_DATABASE = 26
const DISK: Readonly<Record<number, DiskFailure>> = { 8: 'unwritable', 10: 'failing', 13: 'full', 14: 'unwritable' }

/** The primary code of an error from SQLite. Its extended codes have more in the upper bytes. */
export function sqliteCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | undefined)?.errcode
  return typeof code === 'number' ? code & 0xff : undefined
}

/**
 * Returns the same error, or one whose single line tells an operator what is wrong and what to do. `written` is what was
 * being written, if that is not the data directory.
 */
export function explainSqliteError(error: unknown, dataDir: string, written = dataDir): Error {
  const it = error instanceof Error ? error : new Error(String(error))
  const code = sqliteCode(it)
  if (code === CORRUPT || code === NOT_A_DATABASE) return damagedDirectory(dataDir, it.message, it)
  if (code === BUSY) {
    const message = `another program keeps ${dataDir}/weir.db locked (${it.message}): end it and try again`
    return refusal('ERR_DATA_DIR_LOCKED', message, it)
  }
  const failure = code === undefined ? diskFailureOf((it as NodeJS.ErrnoException).code) : DISK[code]
  return failure ? refusal('ERR_DATA_DIR_DISK', explainDiskFailure(failure, written, it.message), it) : it
}

export function damagedDirectory(dataDir: string, detail: string, cause?: unknown): Error {
  return refusal(
    'ERR_DATA_DIR_DAMAGED',
    `${dataDir} is damaged (${detail}) and was left as it is: restore a backup with weir restore FILE --force`,
    cause,
  )
}

/** Whether a retry is useless, for example because the directory was replaced. A full disk or a lock may be temporary. */
export function isFinal({ code = '' }: NodeJS.ErrnoException): boolean {
  return code.startsWith('ERR_DATA_DIR_') && code !== 'ERR_DATA_DIR_DISK' && code !== 'ERR_DATA_DIR_LOCKED'
}
