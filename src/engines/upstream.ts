import type { Readable } from 'node:stream'
import { errors, type Dispatcher } from 'undici'
import type { EngineDescription } from '../core/catalog.ts'
import { ApiError } from '../core/errors.ts'
import type { CallEnd, Engine, EngineCall, RunningCall } from '../ports/engine.ts'
import { openAddress, type EngineAddress } from './address.ts'
import { watchHealth } from './health.ts'
import { refusalFrom, worthAnotherAddress } from './refusal.ts'

const MAX_REFUSAL_BYTES = 65_536

export interface UpstreamEvents {
  /** An address went down or came back. */
  healthChanged(url: string, healthy: boolean): void
  /** An address failed a call. The reason is for the log, never for the caller. */
  callFailed(url: string, reason: string): void
}

/** The OpenAI-compatible servers behind one deployment, called over HTTP(S) or a unix socket. */
export function openUpstream(
  description: EngineDescription,
  events: UpstreamEvents,
  /** Whether to probe the addresses. Not for a host that only starts with its first call. */
  options = { watch: true },
): Engine {
  const timeouts = { firstByteMs: description.firstByteTimeoutMs, idleMs: description.idleTimeoutMs }
  const addresses = description.urls.map((url) => openAddress(url, timeouts))
  const headers: Record<string, string> = {}
  if (description.apiKey !== undefined) headers['authorization'] = `Bearer ${description.apiKey}`
  const unwatch = (options.watch ? addresses : []).map((address) =>
    watchHealth(address, headers, (healthy) => events.healthChanged(address.url, healthy)),
  )
  let retainers = 0
  let onReleased: (() => void) | undefined
  return {
    usable: () => addresses.some((address) => address.healthy),
    retain() {
      retainers++
      return () => {
        retainers--
        if (retainers === 0) onReleased?.()
      }
    },
    run: (call) => runCall(call, addresses, headers, events),
    async close() {
      for (const stop of unwatch) stop()
      if (retainers > 0) await new Promise<void>((resolve) => (onReleased = resolve))
      await Promise.all(addresses.map((address) => address.pool.close()))
    },
  }
}

function runCall(
  call: EngineCall,
  addresses: readonly EngineAddress[],
  headers: Record<string, string>,
  events: UpstreamEvents,
): RunningCall {
  const tried = new Set<EngineAddress>()
  let controller: Dispatcher.DispatchController | undefined
  let aborted = false
  let isWithEngine = false
  let finish: (end: CallEnd) => void
  const ended = new Promise<CallEnd>((resolve) => (finish = resolve))

  /** Tries the next address. When none is left, the call fails with the error of the previous one. */
  function attempt(previousError?: ApiError): void {
    if (aborted) return finish({ kind: 'aborted' })
    const address = leastBusy(addresses, tried)
    if (!address) return finish({ kind: 'failed', error: previousError ?? noAddress(), started: false })
    tried.add(address)
    isWithEngine = false
    address.inFlight++
    address.pool.dispatch(
      {
        method: 'POST',
        path: pathAt(address, call.path),
        headers: { ...headers, ...bodyHeaders(call) },
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
    return {
      onRequestStart(it) {
        controller = it
        isWithEngine = true
        if (aborted) it.abort(new errors.RequestAbortedError())
      },
      onResponseStart(_controller, statusCode, answerHeaders) {
        if (statusCode < 200) return
        status = statusCode
        if (status >= 300) return
        started = true
        call.receiver.start(answerHeaders)
      },
      onResponseData(_controller, chunk) {
        if (started) return call.receiver.data(chunk)
        if (refusalBytes < MAX_REFUSAL_BYTES) refusal.push(chunk)
        refusalBytes += chunk.length
      },
      onResponseEnd() {
        address.inFlight--
        if (started) return finish({ kind: 'ended' })
        const body = Buffer.concat(refusal).toString('utf8', 0, MAX_REFUSAL_BYTES)
        refusal = []
        const error = refusalFrom(status, body, call.inputName)
        if (!worthAnotherAddress(status)) return finish({ kind: 'failed', error, started })
        events.callFailed(address.url, `status ${status}`)
        attempt(error)
      },
      onResponseError(_controller, cause) {
        address.inFlight--
        if (aborted) return finish({ kind: 'aborted' })
        events.callFailed(address.url, cause.message)
        const error = failureFrom(cause, started)
        if (started) return finish({ kind: 'failed', error, started })
        attempt(error)
      },
    }
  }

  attempt()
  return {
    ended,
    isWithEngine: () => isWithEngine,
    abort() {
      aborted = true
      controller?.abort(new errors.RequestAbortedError())
    },
    pause: () => controller?.pause(),
    resume: () => controller?.resume(),
  }
}

/** Some servers have operations outside their OpenAI-compatible path. Two slashes mean the root. */
function pathAt(address: EngineAddress, path: string): string {
  return path.startsWith('//') ? path.slice(1) : address.prefix + path
}

function bodyHeaders({ contentType, body }: EngineCall): Record<string, string> {
  if (Buffer.isBuffer(body)) return { 'content-type': contentType }
  return { 'content-type': contentType, 'content-length': String(body.length) }
}

/** The healthy address with the fewest calls; if none is healthy, one that may have come back. */
function leastBusy(addresses: readonly EngineAddress[], except: ReadonlySet<EngineAddress>): EngineAddress | undefined {
  let best: EngineAddress | undefined
  for (const address of addresses) {
    if (except.has(address)) continue
    if (!best || rank(address) < rank(best)) best = address
  }
  return best
}

function rank(address: EngineAddress): number {
  return address.inFlight + (address.healthy ? 0 : 1e9)
}

function noAddress(): ApiError {
  return new ApiError('model_not_configured', 'The model has no engine.', { param: 'model' })
}

function failureFrom(cause: Error, started: boolean): ApiError {
  if (cause instanceof errors.HeadersTimeoutError || cause instanceof errors.BodyTimeoutError) {
    return new ApiError('upstream_timeout', 'The engine did not answer in time.', { cause })
  }
  const message = started ? 'The engine broke off in the middle of its answer.' : 'The engine could not be reached.'
  return new ApiError('upstream_error', message, { cause })
}
