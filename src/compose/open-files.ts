import { join } from 'node:path'
import { FILES_FOLDER } from '../batches/file-store.ts'
import { openBatchFiles, type BatchFiles, type BatchFilesOptions } from '../batches/files.ts'
import { diskSpace } from '../operate/system-disk.ts'
import type { FileStore } from '../server/files/files.ts'
import { localFiles } from '../server/files/local.ts'
import { s3Files, storedInS3 } from '../server/files/s3.ts'
import { storedOnDisk } from '../server/files/stored-on-disk.ts'
import { openSpool } from '../server/uploads/spool.ts'
import type { Spool } from '../server/uploads/uploads.ts'
import { batchesFailed } from '../service-log.ts'
import { diskRoom } from '../shared/disk-room.ts'
import type { Start } from './start.ts'

/** Opens what stores files. A part of compose.ts. */

interface OpenFiles {
  /** Images, behind links. undefined: links are not configured. */
  readonly files: FileStore | undefined
  /** Uploads while they are used. */
  readonly spool: Spool
  readonly batchFiles: BatchFiles
}

export function openFiles(
  { config, clock, opened, telemetry }: Start,
  store: BatchFilesOptions['store'],
  listenerUrl: () => string,
): OpenFiles {
  const { dataDir, sharedDir, processes } = config
  const disk = diskRoom({ space: () => diskSpace(dataDir), now: clock.monotonic, processes })
  const links = config.files()
  const s3 = links?.kind === 's3' ? links : undefined
  const local = links?.kind === 'local' ? links : undefined
  const publicUrl = (): string => local?.publicUrl ?? listenerUrl()
  const files = s3 ? s3Files(s3, clock) : local && localFiles({ ...local, dataDir: sharedDir, publicUrl }, clock, disk)
  opened.defer(() => files?.close())
  const batchFiles = openBatchFiles({
    store,
    // Next to the images, or in the directory that the workers of this machine share.
    storage: s3 ? storedInS3(s3, clock) : storedOnDisk(join(sharedDir, FILES_FOLDER), disk),
    clock,
    ...config.batches,
    failed: batchesFailed(telemetry),
  })
  opened.adopt(batchFiles, (it) => it.close())
  const spool = openSpool({ folder: join(dataDir, 'spool'), maxBytes: config.audio.maxSpoolBytes, disk })
  return { files, spool, batchFiles }
}
