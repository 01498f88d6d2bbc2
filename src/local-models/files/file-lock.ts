import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 200

/**
 * Runs `work` while no other process has the lock. SQLite's exclusive transaction is a lock of the operating system: it
 * ends with its process, even one that was killed, so it never goes stale.
 */
export async function withFileLock<T>(
  lockPath: string,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
): Promise<T> {
  await mkdir(dirname(lockPath), { recursive: true })
  const database = new DatabaseSync(lockPath)
  try {
    while (!tryLock(database)) await sleep(POLL_MS, undefined, signal ? { signal } : {})
    return await work()
  } finally {
    database.close()
  }
}

function tryLock(database: DatabaseSync): boolean {
  try {
    database.exec('BEGIN EXCLUSIVE')
    return true
  } catch (error) {
    if (/locked|busy/i.test((error as Error).message)) return false
    throw error
  }
}
