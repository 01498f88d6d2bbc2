import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { ApiError } from '../shared/errors.ts'
import type { Exchange, ExchangePlace } from './exchange.ts'
import { IncomingRequest } from './incoming-request.ts'

/** What a connection needs from its listener. */
export interface ListenerHooks {
  /** Connections are to close once they are answered. */
  readonly isDraining: boolean
  open(request: IncomingRequest, response: ServerResponse, connection: CallerConnection): Exchange
  serve(exchange: Exchange): void
  /** Answers a request that could not be read, with `CallerConnection.close` or by the exchange that waits for it. */
  refuse(error: ApiError, connection: CallerConnection): void
  closed(connection: CallerConnection): void
}

/**
 * Pipelined requests that may wait on one connection. Hardly any client pipelines. A connection with more is closed: if
 * reading were paused instead, a disconnect would go unnoticed.
 */
const MAX_AHEAD = 100
/** How long a refused caller has to read the reason and close its side. */
const LINGER_MS = 10_000

/**
 * The connection of a caller. Its requests are answered one after the other: a pipelined request waits until the answer
 * to the previous one has been sent.
 */
export class CallerConnection implements ExchangePlace {
  readonly address: string
  readonly socket: Socket
  readonly #owner: ListenerHooks
  readonly #ahead: [IncomingMessage, ServerResponse][] = []
  exchange: Exchange | undefined
  /** An unreadable request is answered after the requests that are waiting. */
  #refusal: ApiError | undefined
  /** No further requests are served. */
  #isClosing = false
  #linger: NodeJS.Timeout | undefined
  /** Bytes that had been read when the last answer was fully sent. */
  #bytesServed = 0

  constructor(socket: Socket, owner: ListenerHooks) {
    this.socket = socket
    this.#owner = owner
    this.address = socket.remoteAddress ?? ''
    // Unlike the events of a request or a response, it is emitted whatever the connection was doing.
    socket.on('close', () => this.#closed())
  }

  /** Nothing of a request has arrived since the last answer. */
  get isQuiet(): boolean {
    return !this.exchange && this.#ahead.length === 0 && this.socket.bytesRead === this.#bytesServed
  }

  /** It has not been used yet. */
  get isUnused(): boolean {
    return this.socket.bytesRead === 0
  }

  /** A request has arrived, perhaps before its turn. */
  receive(message: IncomingMessage, response: ServerResponse): void {
    if (this.#isOver || this.#refusal) return
    if (!this.exchange && this.#ahead.length === 0) this.#begin(message, response)
    else if (this.#ahead.push([message, response]) > MAX_AHEAD) this.cut()
  }

  /** The incoming data cannot be parsed, takes too long, or was cut off. */
  fail(error: NodeJS.ErrnoException): void {
    // The parser reports an error again for all that follows.
    if (this.#isClosing || this.#refusal) return
    if (error.code === 'HPE_INVALID_EOF_STATE') return this.#endedInARequest()
    if (error.code === 'ECONNRESET' || !this.socket.writable) return this.cut()
    this.#refusal = refusalOf(error)
    if (this.#ahead.length === 0 && !this.exchange?.request.isComplete) this.#refuse(this.#refusal)
  }

  /**
   * Closes our side. Discards what arrives until the caller closes its own: if we closed fully, a caller that is still
   * sending would lose the answer.
   */
  close(lastBytes = ''): void {
    this.#isClosing = true
    this.socket.end(lastBytes, 'latin1')
    this.#linger ??= setTimeout(() => this.cut(), LINGER_MS).unref()
  }

  /** Closes the connection once everything written has been sent, whether or not the caller has closed its side. */
  closeSoon(): void {
    this.#isClosing = true
    this.socket.destroySoon()
  }

  cut(): void {
    this.#isClosing = true
    this.socket.destroy()
  }

  #begin(message: IncomingMessage, response: ServerResponse): void {
    const request = new IncomingRequest(message, this.address)
    const exchange = this.#owner.open(request, response, this)
    this.exchange = exchange
    this.#owner.serve(exchange)
    if (this.#refusal && !request.isComplete) this.#refuse(this.#refusal)
  }

  answered(exchange: Exchange): void {
    exchange.sent()
    this.exchange = undefined
    this.#bytesServed = this.socket.bytesRead
    const isMore = this.#ahead.length > 0 || this.#refusal !== undefined
    if (!this.#owner.isDraining) {
      // Let other callers have a turn before the next request, which has already arrived.
      if (isMore) setImmediate(() => this.#next())
    } else if (isMore) this.#next()
    else this.closeSoon()
  }

  /** No further requests are served: the connection is closing, or Node has ended it after `Connection: close`. */
  get #isOver(): boolean {
    return this.#isClosing || !this.socket.writable
  }

  #next(): void {
    if (this.#isOver) return
    const next = this.#ahead.shift()
    if (next) this.#begin(...next)
    else if (this.#refusal) this.#refuse(this.#refusal)
  }

  #refuse(error: ApiError): void {
    this.#isClosing = true
    this.#owner.refuse(error, this)
  }

  /** The caller has closed its side in the middle of a request, which means that it has disconnected. */
  #endedInARequest(): void {
    if (this.exchange && !this.exchange.isOver) this.cut()
    else this.closeSoon()
  }

  #closed(): void {
    clearTimeout(this.#linger)
    this.#isClosing = true
    this.#ahead.length = 0
    this.#owner.closed(this)
    this.exchange?.request.cut()
    this.exchange?.leave()
  }
}

/** The error for a request that could not be read. */
function refusalOf(error: NodeJS.ErrnoException): ApiError {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ApiError('request_timeout', 'The request took too long to arrive.')
    case 'HPE_HEADER_OVERFLOW':
      return new ApiError('headers_too_large', 'The request headers are too large: at most 16 KiB are allowed.')
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new ApiError(
        'request_too_large',
        'The extensions of the chunks are too large: at most 16 KiB are allowed.',
      )
    default:
      return new ApiError('invalid_value', 'The request is not valid HTTP/1.1.')
  }
}
