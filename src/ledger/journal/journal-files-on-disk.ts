import { constants, mkdirSync, write } from 'node:fs'
import { open, readdir, rename, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { diskFailureOf, explainDiskFailure } from '../../shared/disk-failure.ts'
import { flushFolder, flushFolderSync } from '../../shared/flush-folder.ts'
import { JOURNAL_FOLDER, segmentName, segmentsAmong } from './segment-names.ts'
import type { JournalFiles } from './journal-files.ts'

const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL

/** The journal in a folder of its own, which is created if it does not exist. */
export function journalFiles(folder: string): JournalFiles {
  const path = (segment: number): string => join(folder, segmentName(segment))
  try {
    if (mkdirSync(folder, { recursive: true, mode: 0o700 }) !== undefined) flushFolderSync(dirname(folder))
  } catch (error) {
    throw explained(error, folder)
  }
  return {
    list: async () => segmentsAmong(await readdir(folder)),
    async create(segment) {
      // Two descriptors, since the mode in which a file was opened decides whether a write waits for the disk.
      const durable = await open(path(segment), CREATE | constants.O_DSYNC, 0o600).catch((error: unknown) => {
        throw explained(error, folder)
      })
      const handles = [durable]
      const closeAll = (): void => {
        for (const handle of handles) handle.close().catch(() => {})
      }
      try {
        const plain = await open(path(segment), constants.O_WRONLY)
        handles.push(plain)
        await flushFolder(folder)
        return {
          write: (bytes, offset, isDurable, done) => writeAll((isDurable ? durable : plain).fd, bytes, offset, done),
          close: closeAll,
        }
      } catch (error) {
        closeAll()
        await unlink(path(segment)).catch(() => {})
        throw explained(error, folder)
      }
    },
    async read(segment, from = 0, to = Infinity) {
      const handle = await open(path(segment), 'r')
      try {
        const end = Math.min(to, (await handle.stat()).size)
        const bytes = Buffer.allocUnsafe(Math.max(0, end - from))
        let done = 0
        while (done < bytes.length) {
          const { bytesRead } = await handle.read(bytes, done, bytes.length - done, from + done)
          if (bytesRead === 0) break
          done += bytesRead
        }
        return bytes.subarray(0, done)
      } finally {
        await handle.close()
      }
    },
    remove: (segment) => unlink(path(segment)),
    putAway: (segment) => rename(path(segment), `${path(segment)}.damaged`),
  }
}

/** Turns a disk failure into one line that says what to do. */
function explained(error: unknown, folder: string): unknown {
  const { code, message } = error as NodeJS.ErrnoException
  const failure = diskFailureOf(code)
  if (!failure) return error
  return Object.assign(new Error(explainDiskFailure(failure, folder, message), { cause: error }), {
    code: 'ERR_DATA_DIR_DISK',
  })
}

/** A write may be partial, for example on a disk that is almost full. */
function writeAll(handle: number, bytes: Buffer, offset: number, done: (error: Error | null) => void): void {
  write(handle, bytes, 0, bytes.length, offset, (error, written) => {
    if (error || written === bytes.length) done(error)
    else writeAll(handle, bytes.subarray(written), offset + written, done)
  })
}

/** The folder of the journal in a data directory. */
export const journalFolder = (dataDir: string): string => join(dataDir, JOURNAL_FOLDER)
