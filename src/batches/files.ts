import { randomBytes } from 'node:crypto'
import type { Readable } from 'node:stream'
import type { StoredFiles } from '../server/files/stored-files.ts'
import type { ByteSource } from '../server/uploads/uploads.ts'
import type { AlarmClock } from '../shared/clock.ts'
import { ApiError } from '../shared/errors.ts'
import type { BatchStore } from './batch-store.ts'
import type { FilePurpose, FileQuota, StoredFile, StoredFileStore } from './file-store.ts'

export interface BatchFilesOptions extends FileQuota {
  readonly store: StoredFileStore & Pick<BatchStore, 'isFileInUse'>
  readonly storage: StoredFiles
  readonly clock: AlarmClock
  readonly retentionDays: number
  failed(error: Error): void
}

/** The files of workspaces: what they uploaded for batches, and the results. */
export interface BatchFiles {
  /** The storage that new files go to. */
  readonly place: string
  /** Keeps the file for this time, but no longer than the retention. */
  upload(workspaceId: string, filename: string, upload: ByteSource, keptMs?: number): Promise<StoredFile>
  /** Throws `not_found`. */
  file(workspaceId: string, id: string): Promise<StoredFile>
  list(query: ListQuery): Promise<{ readonly files: readonly StoredFile[]; readonly hasMore: boolean }>
  /** The bytes from `start` to before `end`. */
  read(file: StoredFile, start: number, end: number): Promise<Readable>
  /** Stores the result of a batch, which is found once the batch has ended. */
  store(file: Pick<StoredFile, 'id' | 'workspaceId' | 'filename'>, content: ByteSource): Promise<StoredFile>
  /** Throws `conflict` if an unfinished batch needs the file. */
  remove(file: StoredFile): Promise<void>
  close(): Promise<void>
}

export interface ListQuery {
  readonly workspaceId: string
  readonly purpose?: FilePurpose | undefined
  readonly order: 'asc' | 'desc'
  /** The id of the last file of the page before. */
  readonly after?: string | undefined
  readonly limit: number
}

const DAY_MS = 86_400_000
const SWEEP_MS = 60_000
const MAX_SWEPT = 100

export function openBatchFiles(options: BatchFilesOptions): BatchFiles {
  const { store, storage, clock, retentionDays, maxFiles, maxStoredBytes, failed } = options
  let isClosed = false
  let sweeping: Promise<void> = Promise.resolve()
  let stopTimer = clock.after(SWEEP_MS, sweepNow)

  function sweepNow(): void {
    sweeping = sweep().catch(failed).then(sweepLater)
  }

  function sweepLater(): void {
    if (!isClosed) stopTimer = clock.after(SWEEP_MS, sweepNow)
  }

  /** A file that cannot be deleted does not keep the others. While the storage is away, one report is enough. */
  async function sweep(): Promise<void> {
    const now = clock.now()
    const failures: Error[] = []
    for (const file of await store.filesToRemove(storage.place, now, now - DAY_MS, MAX_SWEPT)) {
      if (isClosed) break
      await remove(file).catch((error: Error) => failures.push(error))
    }
    if (failures[0]) throw failures[0]
  }

  /** The bytes first: a row without bytes is removed by the next sweep, but bytes without a row would stay. */
  async function remove(file: StoredFile): Promise<void> {
    requireHere(file)
    await storage.remove(file.id)
    await store.removeFile(file.id)
  }

  function requireHere({ place }: StoredFile): void {
    if (place === storage.place) return
    throw new ApiError(
      'service_unavailable',
      'The file is on the disk of another replica. Operators: replicas need a shared data_dir, or files in S3.',
    )
  }

  async function file(workspaceId: string, id: string): Promise<StoredFile> {
    const found = await store.storedFile(workspaceId, id)
    if (found) return found
    throw new ApiError('not_found', 'There is no such file. It may have expired.', { param: 'file_id' })
  }

  function newFile(
    file: Pick<StoredFile, 'id' | 'workspaceId' | 'filename'>,
    purpose: FilePurpose,
    bytes: number,
    keptMs = Infinity,
  ): StoredFile {
    const createdAt = clock.now()
    const expiresAt = createdAt + Math.min(keptMs, retentionDays * DAY_MS)
    return { ...file, purpose, bytes, place: storage.place, createdAt, expiresAt }
  }

  return {
    place: storage.place,
    async upload(workspaceId, filename, upload, keptMs) {
      const id = `file-${randomBytes(12).toString('hex')}`
      const added = newFile({ id, workspaceId, filename }, 'batch', upload.length, keptMs)
      // The upload is on the disk too, until it has been stored.
      const room = (await storage.room(upload.length)) + upload.length
      if (!(await store.reserveFile(added, { maxFiles, maxStoredBytes, room }))) {
        throw new ApiError(
          'quota_exceeded',
          `This workspace may store ${maxFiles} files with ${maxStoredBytes} bytes in total, and at most half of what the storage has room for. Delete some of them.`,
        )
      }
      try {
        await storage.write(added.id, upload)
        await store.finishFile(added.id)
      } catch (error) {
        await remove(added).catch(failed)
        throw error
      }
      return added
    },
    file,
    async list({ after, limit, ...query }) {
      const last = after === undefined ? undefined : await file(query.workspaceId, after)
      const found = await store.storedFiles({ ...query, after: last, limit: limit + 1 })
      return { files: found.slice(0, limit), hasMore: found.length > limit }
    },
    async read(stored, start, end) {
      requireHere(stored)
      return storage.read(stored.id, start, end)
    },
    async store(result, content) {
      await storage.write(result.id, content)
      return newFile(result, 'batch_output', content.length)
    },
    async remove(stored) {
      if (await store.isFileInUse(stored.id)) {
        throw new ApiError('conflict', 'A batch that has not ended needs the file. Cancel it first.', {
          param: 'file_id',
        })
      }
      await remove(stored)
    },
    async close() {
      isClosed = true
      stopTimer()
      await sweeping
      await storage.close()
    },
  }
}
