import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Deployment, Model } from '../../catalog/model.ts'
import { ApiError, CallerLeft } from '../../shared/errors.ts'
import { HEADROOM, memoryToParse, type JsonBody } from '../../shared/json/json-body.ts'
import { takeTurns, type TurnClient } from '../../shared/turns.ts'
import type { RequestFacts, MissingInput } from '../request/prepared-request.ts'
import type { RequestMemory } from '../../server/body.ts'
import { movable, movedBuffer } from './moved-bytes.ts'
import type { ThreadAnswers, ThreadRequests, ThreadReply } from './prepare-worker.ts'

/** An endpoint, as far as preparing its requests is concerned. */
export interface Preparation<Result> {
  readonly id: string
  prepare(body: JsonBody, model: Model, deployment: Deployment, facts: RequestFacts): Result | MissingInput
}

/** The sender of a request, as far as preparing it is concerned. */
export type RequestClient = TurnClient & RequestMemory

/** Where a request goes. */
export interface Destination {
  readonly model: Model
  readonly deployment: Deployment
}

/** Finds the model that a request names. Throws if the caller may not call it. */
export type FindModel = (name: string, isStream: boolean) => Destination

export type Prepared<Result> = Destination & { readonly result: Result }

/** The thread keeps the memory of its largest body, so it ends after a while without large bodies. */
const IDLE_MS = 30_000

/** Waiting bodies count towards the memory of their workspaces. That limit is reached first. */
const turns = takeTurns({
  atOnce: 1,
  maxWaiting: 4096,
  maxWaitingOfOwner: 1024,
  full: 'Too many large requests are waiting to be read. Try again shortly.',
  ownerFull: 'Too many of your large requests are waiting to be read. Try again when some of them have been answered.',
})

interface Thread {
  readonly worker: Worker
  /** Aborted when the thread ends. */
  readonly ended: AbortSignal
}

// One thread for the process, started by the first body that needs it.
let running: Thread | undefined
let idle: NodeJS.Timeout | undefined

/**
 * Prepares a request in a thread. One at a time: workspaces take turns, and a caller that disconnects before its turn
 * is dropped. The memory of the body is transferred to the thread, and back if the preparation needs something first.
 */
export function prepareInThread<Result>(
  client: RequestClient,
  { id }: Preparation<Result>,
  body: Buffer,
  facts: RequestFacts,
  find: FindModel,
): Promise<Prepared<Result | MissingInput> & { readonly bytes: Buffer | undefined }> {
  return turns.run(client, async () => {
    // The parsed tree is not counted: there is one at a time, in the thread.
    client.holdRequest(memoryToParse(body.length - HEADROOM + imageBytes(facts), 0))
    const thread = openThread()
    try {
      const moved = movable(body)
      const { model, isStream } = await callThread<'read'>(thread, { id, bytes: moved, facts }, [moved.buffer])
      if (client.isGone) throw new CallerLeft()
      const destination = find(model, isStream)
      const { result, bytes } = await callThread<'prepare'>(thread, destination)
      return {
        ...destination,
        result: withBuffers(result) as Result | MissingInput,
        bytes: bytes && movedBuffer(bytes),
      }
    } finally {
      idle = setTimeout(endThread, IDLE_MS).unref()
    }
  })
}

/** Of images that were fetched for the request. */
function imageBytes({ images }: RequestFacts): number {
  return images.values().reduce((sum, { length }) => sum + length, 0)
}

function withBuffers(result: object): object {
  return 'bodies' in result ? { ...result, bodies: (result.bodies as readonly Uint8Array[]).map(movedBuffer) } : result
}

function openThread(): Thread {
  clearTimeout(idle)
  if (running) return running
  const worker = new Worker(new URL('./prepare-worker.ts', import.meta.url))
  worker.unref()
  const ending = new AbortController()
  const thread = { worker, ended: ending.signal }
  const forget = (): void => {
    if (running === thread) running = undefined
  }
  // `ask` rejects the request that was running. The thread may take a while to end, and the next request needs another.
  worker.on('error', forget)
  worker.once('exit', () => {
    forget()
    ending.abort()
  })
  return (running = thread)
}

function endThread(): void {
  void running?.worker.terminate()
  running = undefined
}

/** Rejects if the thread ends, or fails. */
async function callThread<Kind extends keyof ThreadRequests>(
  { worker, ended }: Thread,
  question: ThreadRequests[Kind],
  moved: readonly ArrayBuffer[] = [],
): Promise<ThreadAnswers[Kind]> {
  worker.postMessage(question, moved)
  const [reply] = (await once(worker, 'message', { signal: ended }).catch(threadFailed)) as [ThreadReply<Kind>]
  if ('answer' in reply) return reply.answer
  if ('failure' in reply) throw reply.failure
  const { code, message, details } = reply.refusal
  throw new ApiError(code, message, details)
}

/** For example, it ran out of memory. */
function threadFailed(cause: unknown): never {
  throw new ApiError(
    'service_unavailable',
    'The part of the service that reads large requests failed with this one. Try again, or send a smaller request.',
    { cause },
  )
}
