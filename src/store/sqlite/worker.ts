import { parentPort, workerData } from 'node:worker_threads'
import type { Row, Statement, Transaction } from '../database.ts'
import { explained } from './failures.ts'
import { lockForService, openDatabase } from './open-database.ts'
import { refusesValues } from './refused-values.ts'
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
  /**
   * The code is there if the operator can do something about it; `isRefusal` if the values of the transaction were
   * refused, as they would be again.
   */
  | { readonly id: number; readonly error: string; readonly code: string | undefined; readonly isRefusal: boolean }

const PREPARED_MAX = 200

const options = workerData as WorkerOptions
const lock = options.exclusive ? lockForService(options.dataDir) : undefined
const database = openDatabase(options.dataDir, options)
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

function answer({ id, transaction }: WorkerRequest): WorkerReply {
  try {
    // A write takes the one place of a writer at once, which covers every lock it names. A read leaves it alone.
    database.exec(transaction.access === 'read' ? 'BEGIN' : 'BEGIN IMMEDIATE')
    const results = transaction.statements.map(run)
    database.exec('COMMIT')
    return { id, results }
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    const { message, code } = explained(error, options.dataDir) as NodeJS.ErrnoException
    return { id, error: message, code, isRefusal: refusesValues(error) }
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
