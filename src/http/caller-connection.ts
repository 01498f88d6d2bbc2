import type { Socket } from 'node:net'
import { ApiError } from '../core/errors.ts'
import { afterBlankLines, BLANK_LINE, BrokenMessage, mayBecomeHead } from '../core/http1/header-lines.ts'
import type { ConnectionLimits } from './connection-limits.ts'
import type { Exchange, ExchangePlace } from './exchange.ts'
import { IncomingRequest } from './wire/incoming-request.ts'
import { OutgoingResponse } from './wire/outgoing-response.ts'
import { readInPlace } from './wire/read-in-place.ts'
import { readRequestHead, type RequestHead } from './wire/request-head.ts'

/** What a connection needs of the listener that it belongs to. */
export interface ConnectionOwner {
  /** Counts the looks at all connections. */
  readonly look: number
  readonly limits: ConnectionLimits
  /** Connections are to close when they are answered. */
  readonly isDraining: boolean
  open(request: IncomingRequest, response: OutgoingResponse, connection: CallerConnection): Exchange
  serve(exchange: Exchange): void
  /** Answers what could not be read, with `CallerConnection.close` or by the exchange that waits for it. */
  refuse(error: ApiError, connection: CallerConnection): void
  closed(connection: CallerConnection): void
}

const MAX_HEAD_BYTES = 16_384
/** Of a body that nobody takes yet, or of requests before their turn. */
const MAX_WAITING_BYTES = 65_536

/**
 * The connection of a caller. Its requests are answered one after the other: one that was sent before the answer to the
 * last one waits until that has left.
 */
export class CallerConnection implements ExchangePlace {
  readonly #socket: Socket
  readonly #owner: ConnectionOwner
  readonly address: string
  /** What was read and not used, from `#at`. */
  #bytes: Buffer | undefined
  #at = 0
  #request: IncomingRequest | undefined
  #response: OutgoingResponse | undefined
  exchange: Exchange | undefined
  #isAdvancing = false
  #isResting = false
  readonly #flow = (): void => this.#advance()
  /** The look at which the request began to arrive, or the connection became idle. */
  #since: number
  /** Nothing more is read of it. */
  #isClosing = false

  constructor(accepted: Socket, owner: ConnectionOwner) {
    this.#socket = readInPlace(accepted, (bytes) => this.#take(bytes))
    this.#owner = owner
    this.#since = owner.look
    this.address = this.#socket.remoteAddress ?? ''
    this.#socket
      .on('drain', () => this.#response?.onTaken?.())
      .on('end', () => this.#ended())
      // What matters is that it closes.
      .on('error', () => {})
      .once('close', () => this.#closed())
  }

  /** Nothing of a request has come since the last answer. */
  get isQuiet(): boolean {
    return this.#request === undefined && this.#bytes === undefined
  }

  /** It has not been used yet. */
  get isUnused(): boolean {
    return this.#socket.bytesRead === 0
  }

  /** Closes our side. What comes is discarded until the caller closes its own: one that still sends would lose the answer. */
  close(lastBytes = ''): void {
    this.#isClosing = true
    this.#since = this.#owner.look
    this.#socket.end(lastBytes, 'latin1')
    this.#socket.resume()
  }

  /** Closes it when what was written has left, whether the caller has closed its side or not. */
  closeSoon(): void {
    this.#isClosing = true
    this.#socket.destroySoon()
  }

  cut(): void {
    this.#socket.destroy()
  }

  /** The answer has left. */
  answered(exchange: Exchange): void {
    if (exchange !== this.exchange) return
    this.exchange = undefined
    if (this.#isClosing) return
    const isLast = !this.#response?.keepsAlive || (this.#owner.isDraining && !this.#bytes)
    if (isLast) return this.#request?.isComplete ? this.closeSoon() : this.close()
    this.#request?.discard()
    this.#next()
    this.#advance()
  }

  /** Looks whether something takes too long. */
  look(): void {
    const age = this.#owner.look - this.#since
    const { head, request, idle } = this.#owner.limits
    if (this.#isClosing) {
      if (age > head) this.cut()
    } else if (this.#request) {
      // The caller is not to blame for a body that nobody takes.
      if (!this.#request.isComplete && this.#request.isFlowing && age > request) this.#tooLate()
    } else if (this.#bytes || this.isUnused) {
      if (age > head) this.#tooLate()
    } else if (age > idle) this.closeSoon()
  }

  #tooLate(): void {
    this.#refuse(new ApiError('request_timeout', 'The request took too long to arrive.'))
  }

  #refuse(error: ApiError): void {
    // It is the rest of a request that has been answered. Another answer would be taken for that to the next one.
    if (this.#request && !this.exchange) return this.close()
    this.#isClosing = true
    this.#since = this.#owner.look
    this.#owner.refuse(error, this)
  }

  #take(bytes: Buffer): void {
    if (this.#isClosing) return
    if (this.isQuiet) {
      if (afterBlankLines(bytes, 0) === bytes.length) return
      this.#since = this.#owner.look
    }
    this.#bytes = this.#bytes ? Buffer.concat([this.#bytes.subarray(this.#at), bytes]) : bytes
    this.#at = 0
    this.#advance()
    // Their place is needed for the next read.
    if (this.#bytes === bytes) {
      this.#bytes = Buffer.from(bytes.subarray(this.#at))
      this.#at = 0
    }
  }

  /** Uses what was read as far as it can be used now. */
  #advance(): void {
    if (this.#isAdvancing) return
    this.#isAdvancing = true
    try {
      while (this.#bytes && !this.#isClosing && !this.#isResting && this.#step(this.#bytes));
    } catch (error) {
      if (error instanceof ApiError) this.#refuse(error)
      else if (!(error instanceof BrokenMessage)) throw error
      else this.#refuse(new ApiError('invalid_value', 'The request is not valid HTTP/1.1.'))
    } finally {
      this.#isAdvancing = false
    }
    const isFull = (this.#bytes?.length ?? 0) - this.#at > MAX_WAITING_BYTES && !this.#isClosing
    if (isFull) this.#socket.pause()
    else if (this.#socket.isPaused()) this.#socket.resume()
  }

  /** Returns whether more of it may be used. */
  #step(bytes: Buffer): boolean {
    const request = this.#request
    if (!request) return this.#readHead(bytes)
    if (request.isComplete || !request.isFlowing) return false
    this.#use(bytes, request.read(bytes, this.#at))
    this.#next()
    return true
  }

  #readHead(bytes: Buffer): boolean {
    const from = afterBlankLines(bytes, this.#at)
    const end = bytes.indexOf(BLANK_LINE, from, 'latin1')
    if ((end < 0 ? bytes.length : end) - from > MAX_HEAD_BYTES) {
      throw new ApiError('request_too_large', 'The request headers are too large.')
    }
    if (end < 0) {
      if (!mayBecomeHead(bytes.toString('latin1', from))) throw new BrokenMessage('this is no head')
      this.#use(bytes, from)
      return false
    }
    const head = readRequestHead(bytes.toString('latin1', from, end))
    this.#use(bytes, end + BLANK_LINE.length)
    this.#begin(head)
    return true
  }

  #begin(head: RequestHead): void {
    const request = new IncomingRequest(head, this.address, this.#flow)
    const response = new OutgoingResponse(this.#socket, head)
    this.#request = request
    this.#response = response
    if (head.isNew && !request.isComplete && !this.#bytes && head.headers['expect']?.toLowerCase() === '100-continue') {
      this.#socket.write('HTTP/1.1 100 Continue\r\n\r\n')
    }
    this.exchange = this.#owner.open(request, response, this)
    this.#owner.serve(this.exchange)
  }

  /** Everything before `end` has been used. */
  #use(bytes: Buffer, end: number): void {
    this.#at = end
    if (end < bytes.length) return
    this.#bytes = undefined
    this.#at = 0
  }

  /** The next request may begin if the last one was read and answered. */
  #next(): void {
    if (this.exchange || !this.#request?.isComplete) return
    this.#request = undefined
    this.#response = undefined
    this.#since = this.#owner.look
    // While draining, there is only one more, and the listener waits for nothing that has not begun.
    if (this.#bytes && !this.#owner.isDraining) this.#rest()
  }

  /** Other callers get their turn before the next request that has already come. */
  #rest(): void {
    this.#isResting = true
    setImmediate(() => {
      this.#isResting = false
      this.#advance()
    })
  }

  /** The caller sends nothing more, which is how it says that it has gone. */
  #ended(): void {
    if (this.exchange && !this.exchange.isOver) this.cut()
    // It would not get the answers.
    else this.#bytes = undefined
  }

  #closed(): void {
    this.#owner.closed(this)
    this.#isClosing = true
    this.#request?.cut()
    this.exchange?.leave()
  }
}
