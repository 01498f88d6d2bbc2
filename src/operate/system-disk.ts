import { statfs } from 'node:fs/promises'
import type { DiskSpace } from '../shared/disk-room.ts'

/** The disk that contains this folder. Space reserved for root does not count as free. */
export async function diskSpace(folder: string): Promise<DiskSpace> {
  const { blocks, bavail, bsize } = await statfs(folder)
  return { size: blocks * bsize, free: bavail * bsize }
}
