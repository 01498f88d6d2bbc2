import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/**
 * Two services on one data directory would settle each other's open requests, so a service holds a lock in it. SQLite
 * holds the lock: it ends with the process, and other containers on the same volume see it, too.
 */
const fileIn = (dataDir: string): string => join(dataDir, 'serve.lock')

/** `isServiceRunning` in another process holds the lock for a moment. */
const WAIT_MS = 500

/** Throws when another service holds the lock. Closing it releases the lock. */
export function takeServiceLock(dataDir: string): { close(): void } {
  const file = new DatabaseSync(fileIn(dataDir), { timeout: WAIT_MS })
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
    const file = new DatabaseSync(fileIn(dataDir), { readOnly: true })
    try {
      file.prepare('SELECT count(*) FROM sqlite_schema').get()
    } finally {
      file.close()
    }
    return false
  } catch (error) {
    // 5 is SQLITE_BUSY: a service holds the lock. Any other error, such as a missing file, means that none has ever run here.
    return (error as { errcode?: number }).errcode === 5
  }
}
