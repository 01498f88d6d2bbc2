import { createHash, hash } from 'node:crypto'
import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs'
import { refusal } from './migrate.ts'

/**
 * A backup is one file: the SQLite database, a line of JSON that describes it, and a last line of fixed length with
 * the description's length and checksum. SQLite ignores what follows a database, so its own tools open a backup too.
 */
export interface BackupDescription {
  /** When it was made, as an ISO date. */
  readonly created: string
  /** How many migrations the database has taken. */
  readonly schema: number
  readonly database: { readonly bytes: number; readonly sha256: string }
  /** How many rows each table has. */
  readonly rows: Readonly<Record<string, number>>
  /** The content of the small files that belong to an installation. */
  readonly files: Readonly<Record<string, string>>
}

/** The files of a data directory, besides the database, that an installation cannot do without. */
export const KEPT_FILES = ['operator-token', 'link-secret'] as const

const LAST_LINE = /^weir-backup 1 (\d{10}) ([0-9a-f]{64})\n$/
const LAST_LINE_BYTES = 90
/** The files are short, and there are few tables. */
const DESCRIPTION_BYTES_MAX = 1_000_000
const CHUNK_BYTES = 1_048_576

export function appendDescription(handle: number, description: BackupDescription): void {
  const json = Buffer.from(`${JSON.stringify(description)}\n`)
  const length = String(json.length).padStart(10, '0')
  const everything = Buffer.concat([json, Buffer.from(`weir-backup 1 ${length} ${hash('sha256', json)}\n`)])
  let written = 0
  while (written < everything.length) {
    written += writeSync(handle, everything, written, undefined, description.database.bytes + written)
  }
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
    const { bytes, sha256 } = description.database
    if (bytes !== start || checksumOf(handle, bytes) !== sha256) throw damaged(file)
    return description
  } finally {
    closeSync(handle)
  }
}

/** The SHA-256 of the first `length` bytes of a file. */
export function checksumOf(handle: number, length: number): string {
  const checksum = createHash('sha256')
  for (const chunk of chunksOf(handle, length)) checksum.update(chunk)
  return checksum.digest('hex')
}

/** The first `length` bytes of a file. Each chunk is overwritten by the next. */
export function* chunksOf(handle: number, length: number): Generator<Buffer> {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
  for (let position = 0; position < length;) {
    const read = readSync(handle, chunk, 0, Math.min(chunk.length, length - position), position)
    if (read === 0) return
    yield chunk.subarray(0, read)
    position += read
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
