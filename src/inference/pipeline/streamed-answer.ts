import { ApiError, CallerLeft } from '../../shared/errors.ts'
import { refusalInStream } from '../../engines/refusal.ts'
import { streamedUsage, type CountedUsage } from '../metering/usage-bounds.ts'
import type { EngineRequest, StreamedAnswer } from '../../engines/job.ts'
import type { RequestRow } from '../../ledger/rows.ts'
import type { CallEnd, EngineReceiver } from '../../engines/engine.ts'
import type { AdmittedRequest, AnswerPath } from './admitted-request.ts'
import type { PipelineParts } from './parts.ts'
import {
  completed,
  failureOf,
  sentShare,
  settle,
  settleDeparture,
  settleFailure,
  usageWithoutAnswer,
  withinHold,
} from './settle.ts'
import type { AlarmClock } from '../../shared/clock.ts'

/** How long an engine that has sent its whole answer has to end its response. */
const LINGER_MS = 1000

/**
 * An answer that is streamed token by token, from one or more calls in sequence. Its last event waits until the row is
 * durable.
 */
export function streamedAnswer(parts: PipelineParts, request: AdmittedRequest, answer: StreamedAnswer): AnswerPath {
  const { job, reply, calls, waitMs } = request
  const relay = answer.relay(request.head)
  let end: CallEnd = { kind: 'ended' }
  let firstTokenAt: number | null = null
  let isOpen = false
  const { idle: idleText } = relay
  const alive = keepAlive(parts.clock, idleText && (() => write(idleText())))

  function receiverUntil(ended: () => void): EngineReceiver {
    let isOver = false
    return {
      start: alive.start,
      data(chunk) {
        if (isOver) return
        const text = relay.push(chunk)
        if (text !== '') sendOn(text)
        isOver = relay.isDone() || relay.isBroken()
        if (isOver) ended()
      },
    }
  }

  function sendOn(text: string): void {
    if (relay.deltaCount() > 0) firstTokenAt ??= parts.clock.monotonic()
    write(text)
    alive.sent()
  }

  function write(text: string): void {
    if (!isOpen) {
      if (!calls.keep()) return
      reply.openStream({ 'X-Queue-Wait-Ms': String(waitMs) })
    }
    isOpen = true
    if (!reply.write(text)) calls.pauseUntilDrained()
  }

  async function breakOff(counted: CountedUsage): Promise<RequestRow> {
    const broke = new ApiError('upstream_error', 'The engine broke off in the middle of its answer.')
    try {
      // A role is not output: an engine that sent nothing else failed before it produced anything.
      return relay.deltaCount() === 0
        ? await settleFailure(parts, request, broke, { isOpen, firstTokenAt })
        : await settle(parts, request, {
            outcome: 'engine_broke',
            httpStatus: 200,
            errorCode: broke.code,
            counted,
            firstTokenAt,
          })
    } finally {
      reply.end(relay.failure(broke))
    }
  }

  /** Resolves when the engine has sent its whole answer, or its call has ended before that. */
  async function takeStream(call: EngineRequest): Promise<void> {
    const over = Promise.withResolvers<CallEnd>()
    const receiver = receiverUntil(() => over.resolve({ kind: 'ended' }))
    calls.run({ ...call, receiver }).then(over.resolve, over.reject)
    end = await over.promise
    if (relay.isPastLimit()) calls.abort()
    else calls.abortAfter(LINGER_MS, parts.clock)
  }

  /** The request was admitted for one call at a time. */
  function idle(): Promise<void> {
    return new Promise((resolve) => calls.whenIdle(resolve))
  }

  /** The engine opened a stream only to refuse the request in it. */
  function refused(): ApiError | undefined {
    const event = end.kind === 'ended' ? relay.wrongEvent() : undefined
    return event === undefined ? undefined : refusalInStream(event, job.calls[0]?.inputName)
  }

  /** The engine opened a stream and ended it normally, without any content. */
  function isSilent(): boolean {
    return end.kind === 'ended' && !isOpen && !reply.isGone && !relay.isBroken()
  }

  /**
   * Some engines never send an error in a stream: they just end it. Asked again for a whole answer, they report the
   * error.
   */
  async function fetchReason(call: EngineRequest): Promise<void> {
    await idle()
    const why = await calls.run({ ...call, receiver: { start() {}, data() {} } })
    const isRefused = why.kind === 'failed' && why.error.status === 400
    if (isRefused || why.kind === 'aborted') end = why
  }

  return {
    async takeFromEngine() {
      try {
        for (const [number, call] of job.calls.entries()) {
          if (number > 0) {
            if (!relay.next()) return
            await idle()
          }
          await takeStream(call)
          if (call.ifSilent && isSilent()) return fetchReason(call.ifSilent)
        }
      } finally {
        alive.stop()
      }
    },
    async giveToCaller() {
      const counted = await withinHold(request, streamedUsage(job, relay, sentShare(request)))
      // If the engine failed as well, that takes precedence.
      if (reply.isGone && (relay.isComplete() || end.kind === 'aborted')) {
        const isSilent = relay.deltaCount() === 0 && relay.reportedUsage() === undefined
        await settleDeparture(parts, request, isSilent ? usageWithoutAnswer(request) : counted, firstTokenAt)
        throw new CallerLeft()
      }
      if (!isOpen) {
        const error = refused() ?? failureOf(end)
        await settleFailure(parts, request, error, { isOpen, firstTokenAt })
        throw error
      }
      if (!relay.isComplete()) return breakOff(counted)
      const row = await settle(parts, request, { ...completed, counted, firstTokenAt }).catch((error: ApiError) => {
        reply.end(relay.failure(error))
        throw error
      })
      reply.end(relay.closing(counted.usage))
      return row
    },
  }
}

/** Well below the idle timeouts of clients and proxies. */
export const IDLE_MS = 15_000

/** Sends pings on a stream while its engine works and nothing else is sent. */
export interface KeepAlive {
  /** The engine has answered. Starts the timer unless it is running. */
  start(): void
  /** Something was sent. */
  sent(): void
  stop(): void
}

/**
 * Calls `ping` whenever nothing was sent for a while. Starts once the engine has answered, so nothing is sent to a
 * request that is still queued, and a refusal keeps its status. There is one timer, however many tokens are sent.
 */
export function keepAlive(clock: AlarmClock, ping: (() => void) | undefined): KeepAlive {
  let cancel: (() => void) | undefined
  let lastAt = 0

  function watch(ms: number): void {
    cancel = clock.after(ms, () => {
      const left = lastAt + IDLE_MS - clock.monotonic()
      if (left > 0) return watch(left)
      lastAt = clock.monotonic()
      ping?.()
      watch(IDLE_MS)
    })
  }

  return {
    start() {
      if (!ping || cancel) return
      lastAt = clock.monotonic()
      watch(IDLE_MS)
    },
    sent() {
      if (ping) lastAt = clock.monotonic()
    },
    stop() {
      cancel?.()
      cancel = undefined
    },
  }
}
