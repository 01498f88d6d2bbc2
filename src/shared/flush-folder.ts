import { closeSync, fsyncSync, openSync } from 'node:fs'
import { open } from 'node:fs/promises'

// A new file or folder, and a new name, is durable only once its entry in the folder around it is on the disk.

export async function flushFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Before the service answers requests, and in commands. */
export function flushFolderSync(folder: string): void {
  const handle = openSync(folder, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
