import { readdirSync, readlinkSync } from 'node:fs'

/** How many files below a folder this process has open, also those that have no name any more. */
export function openFiles(folder: string): number {
  return readdirSync('/proc/self/fd').filter((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`).startsWith(folder)
    } catch {
      return false
    }
  }).length
}
