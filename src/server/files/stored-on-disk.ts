import { randomUUID } from 'node:crypto'
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import type { DiskRoom } from '../../shared/disk-room.ts'
import { ApiError } from '../../shared/errors.ts'
import { flushFolder, flushFolderSync } from '../../shared/flush-folder.ts'
import { missing, piecesOf, type StoredFiles } from './stored-files.ts'

/** Stores files in a folder. The disk keeps a reserve for the ledger, which they do not use. */
export function storedOnDisk(folder: string, disk: DiskRoom): StoredFiles {
  if (mkdirSync(folder, { recursive: true, mode: 0o700 }) !== undefined) flushFolderSync(dirname(folder))
  const place = placeOf(folder)

  async function measure(bytes: number): Promise<void> {
    await disk.measure(bytes)
    if (bytes > disk.left()) throw new Error('the disk has no room besides the reserve')
  }

  return {
    place,
    async room(bytes) {
      await measure(bytes).catch(refuse)
      return Math.floor(disk.left())
    },
    async write(name, source) {
      const path = join(folder, name)
      // Another process may write the same file. The last one wins, with a whole file.
      const part = `${path}.${randomUUID()}.part`
      try {
        const handle = await open(part, 'wx', 0o600)
        try {
          for await (const piece of piecesOf(source)) {
            await measure(piece.length)
            await disk.write(piece.length, () => handle.writeFile(piece))
          }
          await handle.sync()
        } finally {
          await handle.close()
        }
        await rename(part, path)
        await flushFolder(folder)
      } catch (cause) {
        await rm(part, { force: true }).catch(() => {})
        refuse(cause)
      }
    },
    async read(name, start, end) {
      if (start >= end) return Readable.from([])
      const handle = await open(join(folder, name)).catch((cause: NodeJS.ErrnoException) => {
        // A file that was deleted while a backup was made is listed after the restore.
        throw cause.code === 'ENOENT' ? missing(cause) : cause
      })
      return handle.createReadStream({ start, end: end - 1 })
    },
    remove: (name) => rm(join(folder, name), { force: true }),
    async close() {},
  }
}

function refuse(cause: unknown): never {
  throw new ApiError('service_unavailable', 'The file could not be stored. Try again later.', { cause })
}

/** Created once, whichever process is first: replicas that share the folder find the same name in it. */
function placeOf(folder: string): string {
  const file = join(folder, 'place')
  const part = `${file}.${randomUUID()}`
  writeFileSync(part, `disk ${randomUUID()}`, { mode: 0o600, flush: true })
  try {
    linkSync(part, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(part, { force: true })
  }
  return readFileSync(file, 'utf8')
}
