import { createHash, hash } from 'node:crypto'
import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs'
import { refusal, sqliteSteps } from '../../store/sqlite/migrate.ts'

/**
 * A backup is one file: the SQLite database, the segments of the journal, a line of JSON that describes them, and a last
 * line of fixed length with the description's length and checksum. SQLite ignores what follows a database, so its own
 * tools open a backup too.
 */
export interface BackupDescription {
  /** When it was made, as an ISO date. */
  readonly created: string
  /** How many migrations were applied to the database. */
  readonly schema: number
  readonly database: DescribedPart
  /** In the order in which they follow the database. Backups from before there was a journal have none. */
  readonly journal?: readonly DescribedSegment[]
  /** How many rows each table has. */
  readonly rows: Readonly<Record<string, number>>
  /** The content of the small files that belong to an installation. */
  readonly files: Readonly<Record<string, string>>
}

/** A piece of the backup. */
export interface DescribedPart {
  readonly bytes: number
  readonly sha256: string
}

/** A segment of the journal, as far as it went when the backup began. */
export interface DescribedSegment extends DescribedPart {
  readonly segment: number
}

/** The files of a data directory, besides the database, that an installation cannot work without. */
export const KEPT_FILES = ['operator-token', 'link-secret'] as const

const LAST_LINE = /^weir-backup 1 (\d{10}) ([0-9a-f]{64})\n$/
const LAST_LINE_BYTES = 90
/** The files are short, there are few tables, and a line about each of many segments is short too. */
const DESCRIPTION_BYTES_MAX = 100_000_000
const CHUNK_BYTES = 1_048_576

export function appendDescription(handle: number, description: BackupDescription): void {
  const json = Buffer.from(`${JSON.stringify(description)}\n`)
  const length = String(json.length).padStart(10, '0')
  const lastLine = Buffer.from(`weir-backup 1 ${length} ${hash('sha256', json)}\n`)
  writeAt(handle, Buffer.concat([json, lastLine]), contentBytes(description))
}

/** Reads the description, and checks every byte of the file against it. */
export function checkedDescription(file: string): BackupDescription {
  const handle = openSync(file, 'r')
  try {
    const { size } = fstatSync(handle)
    const line = readAt(handle, size - LAST_LINE_BYTES, LAST_LINE_BYTES).toString('latin1')
    const [, length, checksum] = LAST_LINE.exec(line) ?? []
    const start = size - LAST_LINE_BYTES - Number(length)
    if (length === undefined || start < 0 || Number(length) > DESCRIPTION_BYTES_MAX) throw notABackup(file)
    const json = readAt(handle, start, Number(length))
    if (hash('sha256', json) !== checksum) throw damaged(file)
    const description = JSON.parse(json.toString('utf8')) as BackupDescription
    // Checked first, since a newer version may have put more into the file.
    if (description.schema > sqliteSteps.length) throw newer(file, description.schema)
    const segments = segmentsIn(description)
    const isWhole =
      contentBytes(description) === start &&
      segments.every(({ segment }) => Number.isSafeInteger(segment)) &&
      [{ from: 0, ...description.database }, ...segments].every(
        ({ from, bytes, sha256 }) => checksumOf(handle, from, bytes) === sha256,
      )
    if (!isWhole) throw damaged(file)
    return description
  } finally {
    closeSync(handle)
  }
}

/** The segments of a backup, and where each begins. */
export function segmentsIn({
  database,
  journal = [],
}: BackupDescription): readonly (DescribedSegment & { readonly from: number })[] {
  let end = database.bytes
  return journal.map((it) => ({ ...it, from: (end += it.bytes) - it.bytes }))
}

export function journalBytes({ journal = [] }: BackupDescription): number {
  return journal.reduce((sum, { bytes }) => sum + bytes, 0)
}

const contentBytes = (description: BackupDescription): number => description.database.bytes + journalBytes(description)

/** The SHA-256 of a piece of a file. */
export function checksumOf(handle: number, from: number, length: number): string {
  const checksum = createHash('sha256')
  for (const chunk of chunksOf(handle, from, length)) checksum.update(chunk)
  return checksum.digest('hex')
}

/** A piece of a file; less if the file ends before. Each chunk is overwritten by the next. */
export function* chunksOf(handle: number, from: number, length: number): Generator<Buffer> {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
  for (let done = 0; done < length;) {
    const read = readSync(handle, chunk, 0, Math.min(chunk.length, length - done), from + done)
    if (read === 0) return
    yield chunk.subarray(0, read)
    done += read
  }
}

export function writeAt(handle: number, bytes: Buffer, position: number): void {
  for (let done = 0; done < bytes.length;) {
    done += writeSync(handle, bytes, done, undefined, position + done)
  }
}

function readAt(handle: number, position: number, length: number): Buffer {
  if (position < 0) return Buffer.alloc(0)
  const bytes = Buffer.alloc(length)
  return bytes.subarray(0, readSync(handle, bytes, 0, length, position))
}

const notABackup = (file: string): Error =>
  refusal('ERR_NOT_A_BACKUP', `${file} is not a backup, or its end is missing: use a complete copy of the file`)

const damaged = (file: string): Error =>
  refusal('ERR_BACKUP_DAMAGED', `${file} is damaged: its checksum does not match. Use another copy or another backup`)

const newer = (file: string, schema: number): Error =>
  refusal(
    'ERR_DATA_DIR_NEWER',
    `${file} was written by a newer version of Weir (schema ${schema}; this version knows ${sqliteSteps.length}): update Weir first`,
  )
