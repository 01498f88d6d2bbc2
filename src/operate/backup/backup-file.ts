import { createHash, hash } from 'node:crypto'
import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs'
import { basename } from 'node:path'
import { refusal, sqliteSteps } from '../../store/sqlite/migrate.ts'

/**
 * A backup is one file: the SQLite database, the segments of the journal, the files of batches, a line of JSON that describes them, and a last
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
  /** They follow the journal, in this order. Backups from before there were batches have none. */
  readonly batchFiles?: readonly DescribedFile[]
  /** How many files of batches the database lists that are not in the backup: they are in S3. */
  readonly batchFilesElsewhere?: number
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

/** A file of a batch, or the one that names their folder as a storage. */
export interface DescribedFile extends DescribedPart {
  readonly name: string
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
    const [segments, files] = [segmentsIn(description), batchFilesIn(description)]
    const isWhole =
      contentBytes(description) === start &&
      segments.every(({ segment }) => Number.isSafeInteger(segment)) &&
      files.every(({ name }) => basename(name) === name && !name.startsWith('.')) &&
      [{ from: 0, ...description.database }, ...segments, ...files].every(
        ({ from, bytes, sha256 }) => checksumOf(handle, from, bytes) === sha256,
      )
    if (!isWhole) throw damaged(file)
    return description
  } finally {
    closeSync(handle)
  }
}

/** The segments of a backup, and where each begins. */
export function segmentsIn({ database, journal = [] }: BackupDescription): readonly (DescribedSegment & Place)[] {
  return placed(journal, database.bytes)
}

/** The files of batches, and where each begins. */
export function batchFilesIn(description: BackupDescription): readonly (DescribedFile & Place)[] {
  return placed(description.batchFiles ?? [], description.database.bytes + journalBytes(description))
}

interface Place {
  readonly from: number
}

function placed<Part extends DescribedPart>(parts: readonly Part[], from: number): readonly (Part & Place)[] {
  let end = from
  return parts.map((it) => ({ ...it, from: (end += it.bytes) - it.bytes }))
}

const bytesOf = (parts: readonly DescribedPart[]): number => parts.reduce((sum, { bytes }) => sum + bytes, 0)

export const journalBytes = ({ journal = [] }: BackupDescription): number => bytesOf(journal)

export const batchFileBytes = ({ batchFiles = [] }: BackupDescription): number => bytesOf(batchFiles)

const contentBytes = (description: BackupDescription): number =>
  description.database.bytes + journalBytes(description) + batchFileBytes(description)

/** Appends a file to a backup, as far as it goes. Calls `written` after each piece. */
export function appendPart(
  { handle, bytes }: { readonly handle: number; readonly bytes: number },
  into: number,
  position: number,
  written: () => void,
): DescribedPart {
  let end = position
  for (const chunk of chunksOf(handle, 0, bytes)) {
    writeAt(into, chunk, end)
    end += chunk.length
    written()
  }
  return { bytes: end - position, sha256: checksumOf(into, position, end - position) }
}

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

function writeAt(handle: number, bytes: Buffer, position: number): void {
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
