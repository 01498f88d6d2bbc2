import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'

const pollMs = 200

/**
 * Runs `work` while no other process holds the lock. SQLite's exclusive transaction is a lock of the operating system:
 * it ends with the process, even one killed outright, so it never goes stale.
 */
export async function withFileLock<T>(
  lockPath: string,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
): Promise<T> {
  await mkdir(dirname(lockPath), { recursive: true })
  const database = new DatabaseSync(lockPath)
  try {
    while (!tryLock(database)) await setTimeout(pollMs, undefined, signal ? { signal } : {})
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
