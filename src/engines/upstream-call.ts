import type { Readable } from 'node:stream'
import { errors, type Dispatcher } from 'undici'
import { ApiError } from '../core/errors.ts'
import type { CallEnd, EngineCall, RunningCall } from '../ports/engine.ts'
import { callEnds, callSpeaks, callStarts, pathAt, type EngineAddress } from './address.ts'
import type { Balance, Chosen } from './balance.ts'
import type { Deadlines } from './deadlines.ts'
import { refusalFrom } from './refusal.ts'

const MAX_REFUSAL_BYTES = 65_536

/** A request that crashes its engine is sent to one more, not to all of them. */
const MAX_SENDS = 2

/** Where the calls of one deployment go. */
export interface Upstream {
  readonly balance: Balance
  readonly headers: Readonly<Record<string, string>>
  /** From the start of a call to the headers of its answer, whichever addresses are tried. */
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
  let sends = 0
  let controller: Dispatcher.DispatchController | undefined
  let isWithEngine = false
  let isPaused = false
  /** How the call ends when this side ends it. */
  let stopped: CallEnd | undefined
  const { promise: ended, resolve } = Promise.withResolvers<CallEnd>()
  const cancelDeadline = upstream.firstByte.set(timeOut)

  function finish(end: CallEnd): void {
    cancelDeadline()
    resolve(end)
  }

  function stop(end: CallEnd): void {
    stopped ??= end
    if (controller) controller.abort(new errors.RequestAbortedError())
    // Still connecting: no engine has anything of the request, so there is nothing to wait for.
    else finish(stopped)
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
    controller = undefined
    isWithEngine = false
    callStarts(address)
    address.pool.dispatch(
      {
        method: 'POST',
        path: pathAt(address, call.path),
        headers: { ...upstream.headers, ...bodyHeaders(call) },
        // undici asks an iterable for its next piece only after the socket has released the last one. Its
        // types omit iterables.
        body: Buffer.isBuffer(call.body) ? call.body : (call.body.open() as unknown as Readable),
      },
      attemptHandler(address),
    )
  }

  function attemptHandler(address: EngineAddress): Dispatcher.DispatchHandler {
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
      // undici calls this when it has a connection and is about to write the request.
      onRequestStart(it) {
        if (stopped) return it.abort(new errors.RequestAbortedError())
        controller = it
        if (isPaused) it.pause()
        isWithEngine = true
        sends++
      },
      onResponseStart(_controller, statusCode, answerHeaders) {
        if (statusCode < 200) return
        status = statusCode
        if (status >= 300) return
        started = true
        cancelDeadline()
        callSpeaks(address)
        call.receiver.start(answerHeaders)
      },
      onResponseData(_controller, chunk) {
        if (started) {
          callSpeaks(address)
          return call.receiver.data(chunk)
        }
        if (refusalBytes < MAX_REFUSAL_BYTES) refusal.push(chunk)
        refusalBytes += chunk.length
      },
      onResponseEnd() {
        callEnds(address, false)
        if (started) return finish({ kind: 'ended' })
        const body = Buffer.concat(refusal).toString('utf8', 0, MAX_REFUSAL_BYTES)
        refusal = []
        const { error, isWorthAnother } = refusalFrom(status, body, call.inputName)
        if (isWorthAnother) fail(error, `status ${status}`, false)
        else finish({ kind: 'failed', error, started })
      },
      onResponseError(_controller, cause) {
        callEnds(address, stopped?.kind !== 'aborted' && !(cause instanceof ApiError))
        if (stopped) return finish(stopped)
        if (isConnectionLost(cause)) upstream.balance.forget(address)
        fail(failureFrom(cause, started), cause.message, started || cause instanceof errors.BodyTimeoutError)
      },
    }
  }

  attempt()
  return {
    ended,
    isWithEngine: () => isWithEngine,
    learn: (cachedTokens) => chosen?.learn(cachedTokens),
    abort: () => stop({ kind: 'aborted' }),
    pause() {
      isPaused = true
      controller?.pause()
    },
    resume() {
      isPaused = false
      controller?.resume()
    },
  }
}

function bodyHeaders({ contentType, body }: EngineCall): Record<string, string> {
  if (Buffer.isBuffer(body)) return { 'content-type': contentType }
  return { 'content-type': contentType, 'content-length': String(body.length) }
}

/** Nobody listens any more, or the server has broken off: it may have been restarted. */
function isConnectionLost(cause: Error): boolean {
  return !(cause instanceof ApiError) && !(cause instanceof errors.BodyTimeoutError)
}

function noAddress(): ApiError {
  return new ApiError('model_unavailable', 'Every engine of this model is down. Try again later.', { param: 'model' })
}

function timedOut(cause?: Error): ApiError {
  return new ApiError('upstream_timeout', 'The engine did not answer in time.', { cause })
}

function failureFrom(cause: Error, started: boolean): ApiError {
  // Our own refusal: there was no room for the answer.
  if (cause instanceof ApiError) return cause
  if (cause instanceof errors.BodyTimeoutError) return timedOut(cause)
  const message = started ? 'The engine broke off in the middle of its answer.' : 'The engine could not be reached.'
  return new ApiError('upstream_error', message, { cause })
}
