import { channel } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { type AnswerHeaders, headerLines } from './message-head.ts'
import type { AnswerHandler, RequestTaker, ServerPlace } from './request.ts'

/**
 * Tracing tools subscribe to undici's channels by name, so these events have the same names and shape. Without a
 * subscriber, a request costs five reads of `hasSubscribers`.
 */
const beforeConnect = channel('undici:client:beforeConnect')
const connected = channel('undici:client:connected')
const connectError = channel('undici:client:connectError')
const create = channel('undici:request:create')
const sendHeaders = channel('undici:client:sendHeaders')
const answerHeaders = channel('undici:request:headers')
const trailers = channel('undici:request:trailers')
const failure = channel('undici:request:error')

export function isTraced(): boolean {
  return (
    create.hasSubscribers ||
    sendHeaders.hasSubscribers ||
    answerHeaders.hasSubscribers ||
    trailers.hasSubscribers ||
    failure.hasSubscribers
  )
}

export function connects(place: ServerPlace): void {
  if (beforeConnect.hasSubscribers) beforeConnect.publish({ connectParams: connectParams(place) })
}

export function isConnected(place: ServerPlace, socket: Socket): void {
  if (connected.hasSubscribers) connected.publish({ connectParams: connectParams(place), socket })
}

export function connectFailed(place: ServerPlace, error: Error): void {
  if (connectError.hasSubscribers) connectError.publish({ connectParams: connectParams(place), error })
}

function connectParams({ origin }: ServerPlace): object {
  const { host, hostname, protocol, port } = new URL(origin)
  return { host, hostname, protocol, port, version: 'h1', servername: hostname, localAddress: null }
}

/** These decide where a message ends, or who it is for. */
const OWN_HEADERS = new Set(['host', 'connection', 'content-length', 'transfer-encoding'])

/** A request as tracing tools see it. It has the fields of undici's request that they use. */
export class TracedRequest implements RequestTaker {
  readonly origin: string
  readonly method: string
  readonly path: string
  /** Names and values, alternating. */
  readonly headers: string[]
  readonly idempotent: boolean
  completed = false
  aborted = false
  /** Headers that tools have added, as lines. */
  addedLines = ''
  readonly #handler: AnswerHandler
  #isWritten = false

  constructor(origin: string, method: string, path: string, lines: string, handler: AnswerHandler) {
    this.origin = origin
    this.method = method
    this.path = path
    this.idempotent = method === 'GET'
    this.headers = lines
      .split('\r\n')
      .slice(0, -1)
      .flatMap((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)])
    this.#handler = handler
    create.publish({ request: this })
    this.#isWritten = true
  }

  /** For the subscribers of `undici:request:create`. Throws later on, because the head has been written by then. */
  addHeader(name: string, value: string): this {
    if (this.#isWritten || OWN_HEADERS.has(name.toLowerCase())) {
      throw new TypeError(`${name} cannot be added to this request`)
    }
    this.addedLines += headerLines({ [name]: value })
    this.headers.push(name, value)
    return this
  }

  sending(socket: Socket): void {
    sendHeaders.publish({ request: this, socket, headers: this.#head() })
    this.#handler.sending()
  }

  #head(): string {
    const lines = this.headers.map((part, index) => (index % 2 === 0 ? `${part}: ` : `${part}\r\n`))
    return `${this.method} ${this.path} HTTP/1.1\r\n${lines.join('')}`
  }

  resending(): void {
    this.#handler.resending()
  }

  head(status: number, headers: AnswerHeaders): void {
    const flat = Object.entries(headers).flatMap(([name, values]) =>
      [values ?? []].flat().flatMap((value) => [Buffer.from(name, 'latin1'), Buffer.from(value, 'latin1')]),
    )
    answerHeaders.publish({ request: this, response: { statusCode: status, headers: flat, statusText: '' } })
    this.#handler.head(status, headers)
  }

  data(bytes: Buffer): void {
    this.#handler.data(bytes)
  }

  ended(): void {
    this.completed = true
    trailers.publish({ request: this, trailers: [] })
    this.#handler.ended()
  }

  failed(cause: Error): void {
    this.aborted = true
    failure.publish({ request: this, error: cause })
    this.#handler.failed(cause)
  }
}
