import { randomUUID } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { open, unlink, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { changingByteBudget } from '../../shared/byte-budget.ts'
import type { DiskRoom } from '../../shared/disk-room.ts'
import { ApiError } from '../../shared/errors.ts'
import type { Spool, SpooledFile } from './uploads.ts'

export interface SpoolOptions {
  readonly folder: string
  /** For all uploads of this process together. */
  readonly maxBytes: number
  readonly disk: DiskRoom
}

/**
 * Keeps uploads on disk. A file is unlinked as soon as it is open, so the system deletes it when the request or the
 * process ends. Uploads may use the disk space beyond the reserve for the ledger, up to a limit, and those of one
 * workspace at most half of it.
 */
export function openSpool({ folder, maxBytes, disk }: SpoolOptions): Spool {
  // A process that died between opening and unlinking a file left it here.
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const budget = changingByteBudget((held) => {
    const onDisk = held + disk.left()
    return { all: Math.min(maxBytes, onDisk), owner: Math.min(maxBytes / 2, onDisk * disk.ownerShare) }
  })

  return {
    async open(owner) {
      const handle = await openUnlinked(folder)
      const room = budget.open(owner)
      let length = 0
      let closed = false
      const file: SpooledFile = {
        get length() {
          return length
        },
        async append(chunks) {
          if (closed) throw new Error('the upload is closed')
          const bytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
          await disk.measure(bytes).catch(refuse)
          const limit = room.hold(length + bytes)
          if (limit !== undefined) throw full(limit)
          const start = length
          length += bytes
          await disk.write(bytes, () => writeAll(handle, chunks, start)).catch(refuse)
        },
        async read(into, position) {
          const { bytesRead } = await handle.read(into, 0, into.length, position)
          return bytesRead
        },
        async close() {
          if (closed) return
          closed = true
          try {
            await handle.close()
          } finally {
            room.release()
          }
        },
      }
      return file
    },
  }
}

async function openUnlinked(folder: string): Promise<FileHandle> {
  const path = join(folder, randomUUID())
  let handle: FileHandle | undefined
  try {
    handle = await open(path, 'wx+', 0o600)
    await unlink(path)
    return handle
  } catch (cause) {
    await handle?.close()
    return refuse(cause)
  }
}

async function writeAll(handle: FileHandle, chunks: readonly Buffer[], start: number): Promise<void> {
  let position = start
  for (const chunk of chunks) {
    for (let done = 0; done < chunk.length;) {
      const { bytesWritten } = await handle.write(chunk, done, chunk.length - done, position)
      done += bytesWritten
      position += bytesWritten
    }
  }
}

function full(limit: 'share' | 'budget', cause?: unknown): ApiError {
  const message =
    limit === 'share'
      ? 'The uploads of this workspace take up its share of the disk. Try again when some of them have finished.'
      : 'There is no room for uploads right now. Try again later.'
  return new ApiError('service_unavailable', message, { cause })
}

function refuse(cause: unknown): never {
  throw full('budget', cause)
}
