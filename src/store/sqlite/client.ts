import { Worker } from 'node:worker_threads'
import type { Database, Row } from '../database.ts'
import { sqliteDialect } from '../fragments.ts'
import type { WorkerOptions, WorkerReply, WorkerRequest } from './worker.ts'

/** The SQLite database in a data directory, on a thread of its own. */
export interface SqliteDatabase extends Database {
  /** The same every time the directory is opened, and different for every directory. */
  readonly directoryId: string
}

interface Call {
  resolve(results: readonly (readonly Row[])[]): void
  reject(error: Error): void
}

export async function openSqlite(options: WorkerOptions): Promise<SqliteDatabase> {
  const worker = new Worker(new URL('worker.ts', import.meta.url), { workerData: options })
  const opened = Promise.withResolvers<string>()
  const calls = new Map<number, Call>()
  let lastId = 0
  let failure: Error | undefined

  function fail(error: Error): void {
    failure ??= error
    opened.reject(failure)
    for (const call of calls.values()) call.reject(failure)
    calls.clear()
  }
  worker.on('message', (reply: WorkerReply) => {
    if ('directoryId' in reply) return opened.resolve(reply.directoryId)
    const call = calls.get(reply.id)
    calls.delete(reply.id)
    if ('error' in reply) call?.reject(Object.assign(new Error(reply.error), reply.code && { code: reply.code }))
    else call?.resolve(reply.results)
  })
  worker.on('error', (error) => fail(error instanceof Error ? error : new Error(String(error))))
  const ended = new Promise<void>((resolve) =>
    worker.once('exit', () => {
      fail(new Error('the store is closed'))
      resolve()
    }),
  )

  return {
    dialect: sqliteDialect,
    directoryId: await opened.promise,
    transact(transaction) {
      if (failure) return Promise.reject(failure)
      const id = ++lastId
      worker.postMessage({ id, transaction } satisfies WorkerRequest)
      return new Promise((resolve, reject) => calls.set(id, { resolve, reject }))
    },
    async close() {
      worker.postMessage('close')
      await ended
    },
  }
}
