import { randomUUID } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { open, unlink, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { ApiError } from '../core/errors.ts'
import type { Spool, SpooledFile } from '../ports/uploads.ts'

/**
 * Keeps uploads on disk. A file is unlinked as soon as it is open, so the system deletes it when the request
 * or the process ends, and nothing is left behind. All files together have a limit, because the ledger writes
 * to the same disk.
 */
export function openSpool(folder: string, maxBytes: number): Spool {
  // A process that died between opening and unlinking a file left it here.
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  let used = 0

  return {
    async open() {
      const handle = await openUnlinked(folder)
      let length = 0
      let closed = false
      const file: SpooledFile = {
        get length() {
          return length
        },
        async append(chunks) {
          if (closed) throw new Error('the upload is closed')
          const bytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
          if (used + bytes > maxBytes) throw full()
          used += bytes
          length += bytes
          try {
            await writeAll(handle, chunks, length - bytes)
          } catch (cause) {
            throw full(cause)
          }
        },
        async read(into, position) {
          const { bytesRead } = await handle.read(into, 0, into.length, position)
          return bytesRead
        },
        async close() {
          if (closed) return
          closed = true
          used -= length
          await handle.close()
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
    throw full(cause)
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

function full(cause?: unknown): ApiError {
  return new ApiError('service_unavailable', 'There is no room for uploads right now. Try again later.', { cause })
}
