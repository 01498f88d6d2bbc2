import { statfs } from 'node:fs/promises'
import type { DiskSpace } from './core/disk-room.ts'

/** The disk that has this folder. What is reserved for the system's administrator is not free. */
export async function diskSpace(folder: string): Promise<DiskSpace> {
  const { blocks, bavail, bsize } = await statfs(folder)
  return { size: blocks * bsize, free: bavail * bsize }
}
