import type { ByteBudget } from '../shared/byte-budget.ts'
import { ApiError } from '../shared/errors.ts'
import { untraced } from '../server/incoming-request.ts'
import type { Reply } from '../server/reply.ts'
import type { LineClient } from './line-endpoints.ts'

/**
 * Takes the answer to a line. Its caller never disconnects, but the service may cut it off, which costs nothing. A line
 * that waits for its turn is cut off when `stop` is aborted. One that an engine has goes on.
 */
export interface LineReply extends Reply, LineClient {
  /** The whole answer; undefined until there is one. */
  answer(): string | undefined
  cut(): void
  /** Releases the memory. */
  release(): void
}

export function lineReply(requestId: string, owner: string, memory: ByteBudget, stop?: AbortSignal): LineReply {
  const held = { request: memory.open(owner), answer: memory.open(owner) }
  let listeners: readonly (() => void)[] = []
  let answer: string | undefined
  let isWaiting = true
  const requireRoom = (full: string | undefined): void => {
    if (full !== undefined) throw new ApiError('service_unavailable', 'The service has too much data in flight.')
  }
  const notStreamed = (): never => {
    throw new Error('the answer to a line of a batch is not streamed')
  }
  const reply = {
    requestId,
    owner,
    trace: untraced(requestId, {}),
    isGone: false,
    isCut: false,
    isOnRecord: false,
    setWaiting(isWaitingNow: boolean) {
      isWaiting = isWaitingNow
      stopWaiting()
    },
    // Batches have limits of their own.
    countTokens() {},
    onGone(listener: () => void) {
      if (reply.isGone) listener()
      else listeners = [...listeners, listener]
      return () => {
        listeners = listeners.filter((it) => it !== listener)
      }
    },
    holdRequest: (bytes: number) => requireRoom(held.request.hold(bytes)),
    holdAnswer: (bytes: number) => requireRoom(held.answer.hold(bytes)),
    sendAnswer(_contentType: string, body: string | Buffer | readonly Buffer[]) {
      answer = textOf(body)
    },
    openAnswer: notStreamed,
    openStream: notStreamed,
    write: notStreamed,
    onDrain: notStreamed,
    end: notStreamed,
    answer: () => answer,
    cut() {
      reply.isGone = true
      reply.isCut = true
      const leaving = listeners
      listeners = []
      for (const listener of leaving) listener()
    },
    release() {
      stop?.removeEventListener('abort', stopWaiting)
      held.request.release()
      held.answer.release()
    },
  }
  function stopWaiting(): void {
    if (isWaiting && stop?.aborted) reply.cut()
  }
  stop?.addEventListener('abort', stopWaiting)
  return reply
}

export function textOf(body: string | Buffer | readonly Buffer[]): string {
  if (typeof body === 'string') return body
  return (Buffer.isBuffer(body) ? body : Buffer.concat(body)).toString('utf8')
}
