import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import type { Row, Statement, Transaction } from '../database.ts'
import { migrate, refusal } from './migrate.ts'
import { takeServiceLock } from './service-lock.ts'
import { statementCache } from './statement-cache.ts'

/**
 * SQLite on its own thread: its calls are synchronous and end in an fsync, which would hold up every request on
 * the main thread. It runs transactions and knows nothing of what they mean.
 */
export interface WorkerOptions {
  readonly dataDir: string
  /** Takes the data directory's service lock. */
  readonly exclusive: boolean
}

export interface WorkerRequest {
  readonly id: number
  readonly transaction: Transaction
}

export type WorkerReply =
  /** The first one: the database is open. */
  | { readonly id: 0; readonly directoryId: string }
  | { readonly id: number; readonly results: readonly (readonly Row[])[] }
  | { readonly id: number; readonly error: string }

/** How long a write waits for another process. A caller's last byte waits longer than this for the write. */
const BUSY_MS = 4000
const PREPARED_MAX = 200

const options = workerData as WorkerOptions
mkdirSync(options.dataDir, { recursive: true, mode: 0o700 })
const lock = options.exclusive ? lockDirectory() : undefined
const database = openDatabase()
const prepared = statementCache(PREPARED_MAX, (sql) => database.prepare(sql))

parentPort?.on('message', (request: WorkerRequest | 'close') => {
  if (request === 'close') {
    database.close()
    lock?.close()
    parentPort?.close()
    return
  }
  parentPort?.postMessage(answer(request))
})
const directoryId = String(database.prepare('SELECT id FROM data_directory').get()?.['id'])
parentPort?.postMessage({ id: 0, directoryId } satisfies WorkerReply)

function lockDirectory(): { close(): void } {
  try {
    return takeServiceLock(options.dataDir)
  } catch (cause) {
    throw refusal('ERR_DATA_DIR_TAKEN', `another service is running on ${options.dataDir}`, cause)
  }
}

function openDatabase(): DatabaseSync {
  const opened = new DatabaseSync(join(options.dataDir, 'weir.db'), { timeout: BUSY_MS })
  opened.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON')
  migrate(opened, options.dataDir, options)
  return opened
}

function answer({ id, transaction }: WorkerRequest): WorkerReply {
  try {
    // A write takes the one place of a writer at once, which covers every lock it names. A read leaves it alone.
    database.exec(transaction.access === 'read' ? 'BEGIN' : 'BEGIN IMMEDIATE')
    const results = transaction.statements.map(run)
    database.exec('COMMIT')
    return { id, results }
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    return { id, error: error instanceof Error ? error.message : String(error) }
  }
}

function run({ sql, runs, returns }: Statement): readonly Row[] {
  const compiled = prepared.get(sql)
  if (returns === 'rows') {
    compiled.setReadBigInts(true)
    return compiled.all(...(runs[0] ?? []))
  }
  for (const values of runs) compiled.run(...values)
  return []
}
