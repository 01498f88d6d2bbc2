import { parentPort, workerData } from 'node:worker_threads'
import type { Row, Transaction } from '../database.ts'
import { openConnection, type ConnectionOptions } from './connection.ts'
import { explained } from './failures.ts'
import { refusesValues } from './refused-values.ts'

/**
 * SQLite on its own thread: its calls are synchronous, which would hold up every request on the main thread. It runs
 * transactions and knows nothing of what they mean.
 */
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
    const { message, code } = explained(error, options.dataDir) as NodeJS.ErrnoException
    return { id, error: message, code, isRefusal: refusesValues(error) }
  }
}
