import { parentPort, workerData } from 'node:worker_threads'
import type { Row, Transaction } from '../database.ts'
import { openConnection, type ConnectionOptions } from './connection.ts'
import { explainSqliteError } from './failures.ts'
import { refusesValues } from './refused-values.ts'

/**
 * Runs SQLite on its own thread, because its synchronous calls would block every request on the main thread.
 */
export interface WorkerRequest {
  readonly id: number
  readonly transaction: Transaction
}

export type WorkerReply =
  /** The first reply: the database is open. */
  | { readonly id: 0; readonly directoryId: string }
  | { readonly id: number; readonly results: readonly (readonly Row[])[] }
  /**
   * `code` is set if an operator can fix the error. `isRefusal`: the values were refused, so the transaction would fail
   * again.
   */
  | { readonly id: number; readonly error: string; readonly code: string | undefined; readonly isRefusal: boolean }

const options = workerData as ConnectionOptions
const connection = openConnection(options)

parentPort?.on('message', (request: WorkerRequest | 'close') => {
  if (request === 'close') {
    connection.close()
    parentPort?.close()
    return
  }
  parentPort?.postMessage(answer(request))
})
parentPort?.postMessage({ id: 0, directoryId: connection.directoryId } satisfies WorkerReply)

function answer({ id, transaction }: WorkerRequest): WorkerReply {
  try {
    return { id, results: connection.transact(transaction) }
  } catch (error) {
    const { message, code } = explainSqliteError(error, options.dataDir) as NodeJS.ErrnoException
    return { id, error: message, code, isRefusal: refusesValues(error) }
  }
}
