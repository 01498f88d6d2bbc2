import { Worker } from 'node:worker_threads'
import { RefusedWrite } from '../../shared/refused-write.ts'
import type { Database, Row } from '../database.ts'
import type { ConnectionOptions } from './connection.ts'
import type { WorkerReply, WorkerRequest } from './worker.ts'

/** A thread that has the database open. */
export interface StoreThread extends Pick<Database, 'transact'> {
  readonly directoryId: string
  /** Resolves when the thread has ended, for whatever reason. By then, open transactions have been rejected. */
  readonly ended: Promise<Error>
  close(): void
}

interface Call {
  resolve(results: readonly (readonly Row[])[]): void
  reject(error: Error): void
}

type FailedReply = Extract<WorkerReply, { readonly error: string }>

export async function startThread(options: ConnectionOptions): Promise<StoreThread> {
  const worker = new Worker(new URL('worker.ts', import.meta.url), { workerData: options })
  const opened = Promise.withResolvers<string>()
  const ended = Promise.withResolvers<Error>()
  const calls = new Map<number, Call>()
  let lastId = 0
  let failure: Error | undefined

  worker.on('message', (reply: WorkerReply) => {
    if ('directoryId' in reply) return opened.resolve(reply.directoryId)
    const call = calls.get(reply.id)
    calls.delete(reply.id)
    if ('error' in reply) call?.reject(failureIn(reply))
    else call?.resolve(reply.results)
  })
  worker.once('error', (error) => (failure = error instanceof Error ? error : new Error(String(error))))
  worker.once('exit', () => {
    failure ??= new Error('the store thread has ended')
    opened.reject(failure)
    for (const call of calls.values()) call.reject(failure)
    ended.resolve(failure)
  })

  return {
    directoryId: await opened.promise,
    ended: ended.promise,
    transact(transaction) {
      if (failure) return Promise.reject(failure)
      const id = ++lastId
      try {
        worker.postMessage({ id, transaction } satisfies WorkerRequest)
      } catch (cause) {
        // A value that cannot be sent to the thread cannot be stored either.
        return Promise.reject(new RefusedWrite((cause as Error).message, { cause }))
      }
      return new Promise((resolve, reject) => calls.set(id, { resolve, reject }))
    },
    close: () => worker.postMessage('close'),
  }
}

function failureIn({ error, code, isRefusal }: FailedReply): Error {
  if (isRefusal) return new RefusedWrite(error)
  return Object.assign(new Error(error), code === undefined ? {} : { code })
}
