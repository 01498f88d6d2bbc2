import { Worker } from 'node:worker_threads'
import type { JournalSpan } from '../journal/positions.ts'
import type { ProjectorOptions, ProjectorReply, ProjectorRequest } from './worker.ts'

/** The projector's thread as the service sees it. A thread that has exited is replaced at the next call. */
export interface ProjectorThread {
  /** Adds the rows of these spans to the store. One call at a time. */
  apply(spans: readonly JournalSpan[]): Promise<void>
  close(): Promise<void>
}

export interface ProjectorThreadEvents {
  /** The store refuses a row permanently. The row is durable, but not in the ledger. */
  setAside(row: { readonly requestId: string; readonly workspaceId: string }, reason: string): void
}

export function projectorThread(options: ProjectorOptions, events: ProjectorThreadEvents): ProjectorThread {
  let worker: Worker | undefined
  let call: PromiseWithResolvers<void> | undefined

  function start(): Worker {
    const started = new Worker(new URL('worker.ts', import.meta.url), { workerData: options })
    let failure = new Error('the projector thread has ended')
    started.on('message', (reply: ProjectorReply) => {
      if (reply.kind === 'set_aside') return events.setAside(reply, reply.reason)
      if (reply.kind === 'failed') call?.reject(Object.assign(new Error(reply.reason), { code: reply.code }))
      else call?.resolve()
    })
    started.once('error', (error: Error) => (failure = error))
    started.once('exit', () => {
      worker = undefined
      // Has no effect on a call that was already answered.
      call?.reject(failure)
    })
    return started
  }

  return {
    apply(spans) {
      worker ??= start()
      call = Promise.withResolvers()
      worker.postMessage({ spans } satisfies ProjectorRequest)
      return call.promise
    },
    async close() {
      const ending = worker
      if (!ending) return
      const ended = new Promise((resolve) => ending.once('exit', resolve))
      ending.postMessage('close')
      await ended
    },
  }
}
