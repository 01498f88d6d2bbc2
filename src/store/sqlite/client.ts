import type { Database, DatabaseEvents } from '../database.ts'
import { backoffMs } from '../../shared/backoff.ts'
import { sqliteDialect } from '../fragments.ts'
import { isFinal } from './failures.ts'
import { lockForService, replacedDirectory, requireDatabase } from './open-database.ts'
import { startThread, type StoreThread } from './thread.ts'
import type { ConnectionOptions } from './connection.ts'

/** The SQLite database of a data directory, on its own thread. A thread that ends is replaced. */
export interface SqliteDatabase extends Database {
  /** Stays the same for a directory, and differs between directories. */
  readonly directoryId: string
  /** False while no thread is running. Every transaction is rejected then. */
  isUp(): boolean
}

const ATTEMPTS_MAX = 10
const FIRST_PAUSE_MS = 100
const PAUSE_MS_MAX = 5000
/** The number of attempts is reset after a thread has run for this long. */
const LONG_LIFE_MS = 60_000

export async function openSqlite(options: ConnectionOptions, events?: DatabaseEvents): Promise<SqliteDatabase> {
  // The lock is not held by the thread, which may end: it also protects the journal.
  const lock = options.exclusive ? lockForService(options.dataDir) : undefined
  const first = await startThread(options).catch((error: Error) => {
    lock?.close()
    throw error
  })
  const { directoryId } = first
  const closing = Promise.withResolvers<void>()
  let isClosing = false
  let closed: Promise<void> | undefined
  let thread: StoreThread | undefined = first

  async function keepRunning(): Promise<void> {
    let attempts = 0
    while (thread) {
      const startedAt = performance.now()
      const reason = await thread.ended
      thread = undefined
      if (isClosing) return
      events?.ended(reason)
      if (performance.now() - startedAt > LONG_LIFE_MS) attempts = 0
      let failure = reason
      while (!thread && attempts < ATTEMPTS_MAX && !isFinal(failure)) {
        await Promise.race([pause(backoffMs(++attempts, FIRST_PAUSE_MS, PAUSE_MS_MAX)), closing.promise])
        if (isClosing) return
        thread = await startAgain(options, directoryId).catch((error: Error) => void (failure = error))
      }
      if (!thread) return events?.lost(failure)
      events?.replaced()
      if (isClosing) thread.close()
    }
  }
  const over = keepRunning()

  async function close(): Promise<void> {
    isClosing = true
    closing.resolve()
    thread?.close()
    await over
    lock?.close()
  }

  return {
    dialect: sqliteDialect,
    directoryId,
    isUp: () => thread !== undefined,
    transact: (transaction) =>
      thread?.transact(transaction) ??
      Promise.reject(new Error(isClosing ? 'the store is closed' : 'the store is not running')),
    close: () => (closed ??= close()),
  }
}

/** The directory may have been moved away. Then nothing may be created or written in its place. */
async function startAgain(options: ConnectionOptions, directoryId: string): Promise<StoreThread> {
  requireDatabase(options.dataDir)
  const thread = await startThread(options)
  if (thread.directoryId === directoryId) return thread
  thread.close()
  await thread.ended
  throw replacedDirectory(options.dataDir)
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref()
  })
}
