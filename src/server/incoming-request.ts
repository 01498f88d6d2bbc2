import { randomFillSync } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { TLSSocket } from 'node:tls'
import { ApiError } from '../shared/errors.ts'
import type { RequestTrace } from '../shared/request-trace.ts'

const RANDOM_BYTES = 12

/** Random bytes for many ids: fetching a few at a time takes longer than the rest of the id. */
const pool = Buffer.alloc(256 * RANDOM_BYTES)
let used = pool.length

let timeMs = 0
let timeText = ''

/** Ids sort by time, so that new ledger rows are added at the end of the index. 32 letters and digits. */
export function newRequestId(): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += RANDOM_BYTES
  return startOfId(Date.now()) + pool.toString('hex', used - RANDOM_BYTES, used).slice(1)
}

function startOfId(now: number): string {
  if (now !== timeMs) {
    timeMs = now
    timeText = now.toString(36).padStart(9, '0')
  }
  return timeText
}

/** By lower-case name. (Node makes a list only of Set-Cookie, which is not a request header.) */
export type RequestHeaders = Readonly<Record<string, string | undefined>>

/** Receives the body of a request. */
export interface BodyTaker {
  data(chunk: Buffer): void
  end(): void
  /** The connection closed before the end. */
  cut(): void
}

const ignored: BodyTaker = { data() {}, end() {}, cut() {} }

/** A request whose body may still be arriving. */
export class IncomingRequest {
  readonly address: string
  readonly #message: IncomingMessage
  #taker: BodyTaker | undefined
  #isCut = false

  constructor(message: IncomingMessage, address: string) {
    this.#message = message
    this.address = address
  }

  get method(): string {
    return this.#message.method ?? ''
  }

  get target(): string {
    return this.#message.url ?? ''
  }

  get version(): string {
    return this.#message.httpVersion
  }

  get headers(): RequestHeaders {
    return this.#message.headers as RequestHeaders
  }

  /** Everything has arrived. */
  get isComplete(): boolean {
    const { headers } = this
    return this.#message.complete || !('content-length' in headers || 'transfer-encoding' in headers)
  }

  /** Whether the caller used HTTPS. A proxy that terminates TLS sets X-Forwarded-Proto. */
  get isEncrypted(): boolean {
    return this.#message.socket instanceof TLSSocket || this.headers['x-forwarded-proto'] === 'https'
  }

  /** The names and values of all header lines, one after the other. */
  get headerLines(): readonly string[] {
    return this.#message.rawHeaders
  }

  /** Passes the body on as it arrives. It has a single receiver, or is discarded. */
  take(taker: BodyTaker): void {
    const isFirst = this.#taker === undefined
    this.#taker = taker
    if (this.#isCut) taker.cut()
    else if (isFirst) this.#listen()
    else if (this.#message.readableEnded) taker.end()
    else this.#message.resume()
  }

  #listen(): void {
    const data = (chunk: Buffer): void => this.#taker?.data(chunk)
    const end = (): void => {
      const taker = this.#taker
      // The request may wait for minutes from now on, so keep nothing that was only needed for reading.
      this.#message.off('data', data).off('end', end)
      this.#taker = ignored
      taker?.end()
    }
    this.#message.on('data', data).on('end', end)
  }

  /** Reads the rest and discards it. */
  discard(): void {
    this.take(ignored)
  }

  /** Lets the rest arrive, and calls back when all of it has been read. */
  whenRead(callback: () => void): void {
    this.#message.once('end', callback).resume()
  }

  pause(): void {
    this.#message.pause()
  }

  resume(): void {
    this.#message.resume()
  }

  /** The rest will not arrive, or is not needed. */
  cut(): void {
    if (this.#isCut || this.#message.readableEnded) return
    this.#isCut = true
    this.#taker?.cut()
    this.discard()
    // While nothing is read from a connection, a disconnect goes unnoticed.
    this.#message.resume()
  }
}

/** More than real clients and proxies together send. Node ignores those above its own limit. */
export const MAX_HEADERS = 200

/** A name or an address, and perhaps a port. */
const HOST = /^(?:[\w.~%!$&'()*+;=-]*|\[[\w.:%-]+\])(?::\d*)?$/

/** Why a head is refused although Node accepts it: another server on the way may interpret it differently. */
export function refusalOfHead({ version, headerLines, headers }: IncomingRequest): ApiError | undefined {
  const { host, 'transfer-encoding': coding } = headers
  if (headerLines.length > 2 * MAX_HEADERS) {
    return new ApiError('headers_too_large', `The request has too many headers: at most ${MAX_HEADERS} are allowed.`)
  }
  if (version !== '1.1' && version !== '1.0') return invalid('The request is not HTTP/1.1 or HTTP/1.0.')
  if (coding !== undefined && (version === '1.0' || coding.toLowerCase() !== 'chunked')) {
    return invalid('The only Transfer-Encoding that a request may have is chunked, in HTTP/1.1.')
  }
  if (host === undefined) return version === '1.0' ? undefined : invalid('The request has no Host header.')
  if (HOST.test(host) && !hasSecondHost(headerLines)) return undefined
  return invalid('The request must have one Host header, with a name or an address.')
}

function invalid(message: string): ApiError {
  return new ApiError('invalid_value', message)
}

function hasSecondHost(lines: readonly string[]): boolean {
  let count = 0
  for (let at = 0; at < lines.length; at += 2) {
    if (lines[at]?.length === 4 && lines[at]?.toLowerCase() === 'host') count++
  }
  return count > 1
}

/** The scheme and authority of a target in absolute form, as clients send it to proxies: `GET http://host/path`. */
const ORIGIN = /^https?:\/\/[^/?]*/i

/** The path and the query of a request. HTTP requires servers to accept both the origin form and the absolute form. */
export function readTarget(target: string): { readonly path: string; readonly query: string } {
  const local = target.startsWith('/') ? target : target.replace(ORIGIN, '')
  const mark = local.indexOf('?')
  const path = mark < 0 ? local : local.slice(0, mark)
  return { path: path || '/', query: mark < 0 ? '' : local.slice(mark + 1) }
}

/** A header that is passed on as it is. The limit is that of tracestate, the longer one. */
const PASSED_ON = /^[\x21-\x7e][\x20-\x7e]{0,511}$/

/** For a request that is not recorded: the engine gets the trace of the caller, if there is one. */
export function untraced(requestId: string, headers: RequestHeaders): RequestTrace {
  const passedOn = ['traceparent', 'tracestate'].map((name) => {
    const value = headers[name]
    return value !== undefined && PASSED_ON.test(value) ? `${name}: ${value}\r\n` : ''
  })
  const call = { lines: passedOn.join(''), ended() {}, failed() {} }
  return { requestId, engineCall: () => call }
}
