import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/**
 * Two services on one data directory would settle each other's open requests, so a service holds a lock there.
 * It is a lock of SQLite's: it ends with its process, and other containers on the same volume see it too.
 */
const fileIn = (dataDir: string): string => join(dataDir, 'serve.lock')

/** Somebody who only looks holds the lock for a moment. */
const LOOK_MS = 500

/** Throws when another service has it. Closing it gives it back. */
export function takeServiceLock(dataDir: string): { close(): void } {
  const file = new DatabaseSync(fileIn(dataDir), { timeout: LOOK_MS })
  try {
    file.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    file.close()
    throw error
  }
  return file
}

export function isServiceRunning(dataDir: string): boolean {
  try {
    const file = new DatabaseSync(fileIn(dataDir), { readOnly: true, timeout: 0 })
    try {
      file.prepare('SELECT count(*) FROM sqlite_schema').get()
    } finally {
      file.close()
    }
    return false
  } catch (error) {
    // 5 is SQLITE_BUSY: it is locked. Any other error, such as a missing file, means that no service has ever been there.
    return (error as { errcode?: number }).errcode === 5
  }
}
