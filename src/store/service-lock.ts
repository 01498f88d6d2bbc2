import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/**
 * Two services over one data directory would each settle the other's open requests, so a service holds a lock
 * there. It is one of the database's own: it dies with its process, and is seen from another container, too.
 */
const fileIn = (dataDir: string): string => join(dataDir, 'serve.lock')

/** Somebody who only looks holds it up for a moment. */
const LOOK_MS = 500

/** Throws where another service has it. Closing it gives it back. */
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
    // Locked. Any other trouble, such as no file, says that none has ever been there.
    return (error as { errcode?: number }).errcode === 5
  }
}
