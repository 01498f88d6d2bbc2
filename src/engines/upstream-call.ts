import type { Adapter, AdapterAnswer } from '../catalog/model.ts'
import { ApiError } from '../shared/errors.ts'
import { AnswerStalled, RequestAborted, type AnswerHandler, type Deadlines, type Sending } from './http-client/index.ts'
import type { EngineCallTrace } from '../shared/request-trace.ts'
import { withFields, type AdapterLoads } from './adapter-loads.ts'
import type { CallEnd, EngineCall, RunningCall } from './engine.ts'
import { callEnds, callShowsLife, callStarts, pathAt, type EngineAddress } from './address.ts'
import type { Balance, Chosen } from './balance.ts'
import { refusalFrom } from './refusal.ts'

const MAX_REFUSAL_BYTES = 65_536

/** A request that crashes its engine is sent to one more, not to all of them. */
export const MAX_SENDS = 2

/** Where the calls of one deployment go. */
export interface Upstream {
  readonly balance: Balance
  /** undefined: this kind of server takes none. */
  readonly adapters: AdapterLoads | undefined
  /** The address broke off a connection: what its server had in memory may be gone. */
  forget(address: EngineAddress): void
  /** The headers that every call has, as lines. */
  readonly lines: string
  /** False: a call must not have the id of its request. */
  readonly takesRequestIds: boolean
  /** From the start of a call to the headers of its answer, over all addresses that are tried. */
  readonly firstByte: Deadlines
  /** An address failed a call. The reason is for the log, never for the caller. */
  callFailed(url: string, reason: string): void
}

/**
 * One call. An address that cannot be reached has seen nothing of the request, so the next one is tried. Once the
 * request was sent, it is sent at most once more, and not at all after a timeout.
 */
export function runCall(call: EngineCall, upstream: Upstream): RunningCall {
  const tried = new Set<EngineAddress>()
  let chosen: Chosen | undefined
  /** Engines that the request was sent to. */
  let sends = 0
  let sending: Sending | undefined
  let isWithEngine = false
  /** The engine that was sent the request last broke off before its answer. */
  let isLost = false
  let isPaused = false
  let hasLoadedAgain = false
  /** The result of the call if this side ends it. */
  let stopped: CallEnd | undefined
  const { promise: ended, resolve } = Promise.withResolvers<CallEnd>()
  const cancelDeadline = upstream.firstByte.set(timeOut)

  function finish(end: CallEnd): void {
    cancelDeadline()
    const lost = sends === 0 ? 'unsent' : isLost ? 'sent' : undefined
    resolve(end.kind === 'failed' && lost ? { ...end, lost } : end)
  }

  function stop(end: CallEnd): void {
    stopped ??= end
    const message = 'this side has ended the call'
    sending?.abort(end.kind === 'aborted' ? new RequestAborted(message) : new AnswerStalled(message))
  }

  function timeOut(): void {
    upstream.callFailed(chosen?.address.url ?? '', 'no answer within first_byte_timeout_ms')
    stop({ kind: 'failed', error: timedOut(), started: false })
  }

  /** Tries the next address. When none is left, the call fails with the error of the previous one. */
  function attempt(previousError?: ApiError): void {
    if (stopped) return finish(stopped)
    const next = upstream.balance.next(call.prompt, tried)
    if (!next) return finish({ kind: 'failed', error: previousError ?? noAddress(), started: false })
    chosen = next
    const { address } = next
    tried.add(address)
    isWithEngine = false
    callStarts(address)
    if (call.adapter) sendWithAdapter(address, call.adapter)
    else send(address, call.body)
  }

  /** The server may have to load the adapter first. Other calls may wait for the same load, so an abort does not end it. */
  function sendWithAdapter(address: EngineAddress, adapter: Adapter): void {
    let hasLeft = false
    const leave = (): void => {
      hasLeft = true
      callEnds(address, false)
      if (stopped) finish(stopped)
    }
    const failed = (cause: Error): void => {
      sending = undefined
      callEnds(address, false)
      upstream.callFailed(address.url, `adapter ${adapter.name}: ${cause.message}`)
      attempt(withoutAdapter(cause))
    }
    sending = { abort: leave, pause() {}, resume() {} }
    upstream.adapters!.load(address, adapter).then(
      // Only models that generate text have adapters, and the bodies of their calls are in memory.
      (fields) => hasLeft || send(address, withFields(call.body as Buffer, fields)),
      (cause: Error) => hasLeft || failed(cause),
    )
  }

  function send(address: EngineAddress, body: EngineCall['body']): void {
    const { contentType } = call
    const trace = call.trace.engineCall(address.url)
    const id = upstream.takesRequestIds ? `x-request-id: ${call.trace.requestId}\r\n` : ''
    const lines = `${upstream.lines}content-type: ${contentType}\r\n${id}${trace.lines}`
    sending = address.client.send(
      { method: 'POST', path: pathAt(address, call.path), lines, body },
      attemptHandler(address, trace),
    )
    if (isPaused) sending.pause()
  }

  function attemptHandler(address: EngineAddress, trace: EngineCallTrace): AnswerHandler {
    let isSent = false
    let started = false
    let status = 0
    let refusal: Buffer[] = []
    let refusalBytes = 0

    function fail(error: ApiError, reason: string, isFinal: boolean): void {
      upstream.callFailed(address.url, reason)
      if (isFinal || sends >= MAX_SENDS) finish({ kind: 'failed', error, started })
      else attempt(error)
    }

    return {
      sending() {
        isWithEngine = true
        isLost = false
        if (!isSent) sends++
        isSent = true
      },
      resending() {
        isWithEngine = false
      },
      head(statusCode, answerHeaders) {
        status = statusCode
        if (status >= 300) return
        started = true
        cancelDeadline()
        callShowsLife(address)
        call.receiver.start(answerHeaders)
      },
      data(chunk) {
        if (started) {
          callShowsLife(address)
          return call.receiver.data(chunk)
        }
        if (refusalBytes < MAX_REFUSAL_BYTES) refusal.push(Buffer.from(chunk))
        refusalBytes += chunk.length
      },
      ended() {
        sending = undefined
        trace.ended(status)
        callEnds(address, false)
        if (started) return finish({ kind: 'ended' })
        const body = Buffer.concat(refusal).toString('utf8', 0, MAX_REFUSAL_BYTES)
        refusal = []
        const { error, isWorthAnother } = refusalFrom(status, body, call.inputName)
        if (mustLoadAgain({ status, body })) {
          upstream.adapters?.forget(address)
          tried.delete(address)
          sends--
          return attempt(error)
        }
        if (isWorthAnother) fail(error, `status ${status}`, false)
        else finish({ kind: 'failed', error, started })
      },
      failed(cause) {
        sending = undefined
        trace.failed(cause)
        callEnds(address, stopped?.kind !== 'aborted' && !(cause instanceof ApiError))
        if (stopped) return finish(stopped)
        if (isConnectionLost(cause)) upstream.forget(address)
        isLost ||= isConnectionLost(cause) && !started
        fail(failureFrom(cause, started), cause.message, started || cause instanceof AnswerStalled)
      },
    }
  }

  /** Once, so that a server that loses adapters at once is not asked without end. */
  function mustLoadAgain(refusal: AdapterAnswer): boolean {
    if (!call.adapter || hasLoadedAgain || !upstream.adapters?.isMissing(refusal)) return false
    hasLoadedAgain = true
    return true
  }

  attempt()
  return {
    ended,
    isWithEngine: () => isWithEngine,
    learn: (cachedTokens) => chosen?.learn(cachedTokens),
    abort: () => stop({ kind: 'aborted' }),
    pause() {
      isPaused = true
      sending?.pause()
    },
    resume() {
      isPaused = false
      sending?.resume()
    },
  }
}

/** The call was aborted, or the server broke off: it may have been restarted. */
function isConnectionLost(cause: Error): boolean {
  return !(cause instanceof ApiError) && !(cause instanceof AnswerStalled)
}

function noAddress(): ApiError {
  return new ApiError('model_unavailable', 'Every engine of this model is down. Try again later.', { param: 'model' })
}

function withoutAdapter(cause: unknown): ApiError {
  return new ApiError('model_unavailable', 'The engine could not load the adapter of this model. Try again later.', {
    param: 'model',
    cause,
  })
}

function timedOut(cause?: Error): ApiError {
  return new ApiError('upstream_timeout', 'The engine did not answer in time.', { cause })
}

function failureFrom(cause: Error, started: boolean): ApiError {
  // Our own refusal: there was no memory left for the answer.
  if (cause instanceof ApiError) return cause
  if (cause instanceof AnswerStalled) return timedOut(cause)
  const message = started ? 'The engine broke off in the middle of its answer.' : 'The engine could not be reached.'
  return new ApiError('upstream_error', message, { cause })
}
