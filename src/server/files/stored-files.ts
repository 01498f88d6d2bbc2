import type { Readable } from 'node:stream'
import { ApiError } from '../../shared/errors.ts'
import type { ByteSource } from '../uploads/uploads.ts'

/** Keeps large files until they are removed. They are read and written a piece at a time, and have the names that the caller gives. */
export interface StoredFiles {
  /** Names the storage. Processes with the same place have the same files. */
  readonly place: string
  /** The bytes that it still has room for. Throws `service_unavailable` if these are more. */
  room(bytes: number): Promise<number>
  /** Resolves when the file is durable. Replaces a file of the same name. */
  write(name: string, source: ByteSource): Promise<void>
  /**
   * The bytes from `start` to before `end`. The receiver must read it to the end or destroy it. Throws `not_found` if there is no
   * such file, and other errors while the storage is away.
   */
  read(name: string, start: number, end: number): Promise<Readable>
  /** A file that does not exist counts as removed. */
  remove(name: string): Promise<void>
  close(): Promise<void>
}

export function missing(cause?: unknown): ApiError {
  return new ApiError('not_found', 'The content of the file is missing.', { cause })
}

const PIECE_BYTES = 65_536

/** The bytes of a source, a piece at a time. */
export async function* piecesOf(source: ByteSource): AsyncGenerator<Buffer> {
  for (let position = 0; position < source.length;) {
    const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, source.length - position))
    const bytes = await source.read(piece, position)
    if (bytes === 0) throw new Error('the file ended early')
    position += bytes
    yield piece.subarray(0, bytes)
  }
}
