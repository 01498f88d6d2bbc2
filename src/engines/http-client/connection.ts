import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { AnswerReader, type AnswerTaker } from './answer-reader.ts'
import { connectFailed, connects, isConnected } from './diagnostics.ts'
import type { AnswerHeaders } from './message-head.ts'
import { AnswerStalled, type RequestBody, type RequestTaker, type SentRequest, type ServerPlace } from './request.ts'

export interface ConnectionPool {
  /** The connection can carry another request. */
  free(connection: Connection): void
  /** The connection can no longer be used. May be called more than once. */
  gone(connection: Connection): void
}

const CONNECT_MS = 5000
const KEEP_ALIVE_PROBE_MS = 60_000
/** Up to this size, joining the head and the body costs less than two writes. */
const JOINED_BYTES = 16_384

/** Connections read one at a time and keep nothing of a read, so they share one buffer. */
const readBuffer = Buffer.allocUnsafeSlow(65_536)

/**
 * A connection to a server. It carries one request at a time. A server may close an idle connection just as a request
 * is on its way. So if a connection that has carried an answer before closes before the first byte of the next one, it
 * reconnects and sends the request once more.
 */
export class Connection implements AnswerTaker {
  readonly #place: ServerPlace
  readonly #idleTimeoutMs: number
  readonly #reader = new AnswerReader(this)
  readonly #owner: ConnectionPool
  #socket: Socket
  /** Kept until the first byte of its answer. */
  #request: SentRequest | undefined
  #handler: RequestTaker | undefined
  #isConnected = false
  /** It has carried an answer before. */
  #isUsed = false
  #isSending = false
  #isAnswering = false
  #isPaused = false
  /** While the connection is idle. */
  cancelIdle: (() => void) | undefined

  constructor(place: ServerPlace, idleTimeoutMs: number, owner: ConnectionPool) {
    this.#place = place
    this.#idleTimeoutMs = idleTimeoutMs
    this.#owner = owner
    this.#socket = this.#connect()
  }

  #connect(): Socket {
    const place = this.#place
    const socket = open(place, (bytes) => this.#read(bytes))
    connects(place)
    const timer = setTimeout(() => socket.destroy(new Error('no connection within 5 s')), CONNECT_MS).unref()
    socket
      .once(isSecure(place) ? 'secureConnect' : 'connect', () => {
        clearTimeout(timer)
        isConnected(place, socket)
        this.#isConnected = true
        socket.setTimeout(this.#idleTimeoutMs)
        this.#begin()
      })
      .on('timeout', () => this.#stalled())
      .on('end', () => this.#closed())
      .on('error', (error) => {
        if (!this.#isConnected) connectFailed(place, error)
        this.#lost(socket, error)
      })
      .once('close', () => this.#lost(socket, new Error('the connection was closed')))
    return socket
  }

  send(request: SentRequest, handler: RequestTaker): void {
    this.#request = request
    this.#handler = handler
    if (this.#isConnected) this.#begin()
  }

  /** Ends the request and the connection. */
  abort(cause: Error): void {
    this.#fail(cause)
  }

  pause(): void {
    this.#isPaused = true
    this.#socket.pause()
  }

  resume(): void {
    this.#isPaused = false
    // Time spent paused does not count towards the timeout.
    this.#socket.setTimeout(this.#socket.timeout ?? 0)
    this.#socket.resume()
  }

  close(): void {
    this.#fail(new Error('the connection was closed'))
  }

  #begin(): void {
    const request = this.#request
    if (!request) return
    this.#handler?.sending(this.#socket)
    if (!this.#handler) return
    this.#reader.expect()
    this.#write(request)
  }

  #write({ head, body }: SentRequest): void {
    const socket = this.#socket
    if (!body) socket.write(head, 'latin1')
    else if (!Buffer.isBuffer(body)) void this.#pour(head, body)
    else if (head.length + body.length <= JOINED_BYTES) {
      const joined = Buffer.allocUnsafe(head.length + body.length)
      body.copy(joined, joined.write(head, 'latin1'))
      socket.write(joined)
    } else {
      socket.cork()
      socket.write(head, 'latin1')
      socket.write(body)
      socket.uncork()
    }
  }

  /** A piece is valid only until the next one is requested, so each must be written before that. */
  async #pour(head: string, body: Exclude<RequestBody, Buffer>): Promise<void> {
    const socket = this.#socket
    const leave = (piece: string | Buffer): Promise<void> =>
      new Promise((resolve, reject) => {
        socket.write(piece, 'latin1', (error) => (error ? reject(error) : resolve()))
      })
    this.#isSending = true
    try {
      await leave(head)
      for await (const piece of body.open()) await leave(piece)
      if (socket === this.#socket) this.#isSending = false
    } catch (error) {
      // The socket's events have reported what happened to the connection.
      if (!socket.destroyed) this.#fail(error as Error)
    }
  }

  #read(bytes: number): boolean {
    this.#request = undefined
    try {
      this.#reader.read(readBuffer, bytes)
    } catch (error) {
      this.#fail(error as Error)
    }
    return !this.#isPaused
  }

  answerHead(status: number, headers: AnswerHeaders): void {
    this.#isAnswering = true
    this.#handler?.head(status, headers)
  }

  answerBody(bytes: Buffer): void {
    this.#handler?.data(bytes)
  }

  answerEnd(isReusable: boolean): void {
    const handler = this.#handler
    this.#handler = undefined
    this.#isAnswering = false
    if (this.#isPaused) this.resume()
    this.#isUsed = true
    // A server that answered before it had the whole request may take the rest of it for the next one.
    if (isReusable && !this.#isSending && this.#socket.writableLength === 0) this.#owner.free(this)
    else this.close()
    handler?.ended()
  }

  /** The server will send nothing more. */
  #closed(): void {
    try {
      this.#reader.close()
      this.close()
    } catch (error) {
      this.#lost(this.#socket, error as Error)
    }
  }

  /** Events of a socket that was replaced are ignored. */
  #lost(socket: Socket, cause: Error): void {
    if (socket !== this.#socket) return
    if (this.#isUsed && this.#request) this.#sendAgain()
    else this.#fail(cause)
  }

  #sendAgain(): void {
    this.#socket.destroy()
    this.#isUsed = false
    this.#isConnected = false
    this.#socket = this.#connect()
    if (this.#isPaused) this.#socket.pause()
    this.#handler?.resending()
  }

  #stalled(): void {
    if (this.#isAnswering && !this.#isPaused) this.#fail(new AnswerStalled('the server fell silent'))
  }

  #fail(cause: Error): void {
    const handler = this.#handler
    this.#handler = undefined
    this.#request = undefined
    this.#reader.stop()
    const isWithServer = handler !== undefined && this.#isConnected && !this.#socket.destroyed
    if (isWithServer && canReset(this.#place)) this.#socket.resetAndDestroy()
    else this.#socket.destroy()
    this.#owner.gone(this)
    // The server has to see the reset before another request takes the place of this one.
    if (isWithServer) this.#socket.once('close', () => setImmediate(() => handler.failed(cause)))
    else handler?.failed(cause)
  }
}

const isSecure = ({ origin }: ServerPlace): boolean => origin.startsWith('https:')

/**
 * An aborted request resets its connection. A proxy in between may take an orderly close for a client that has only
 * finished sending, and let the server work on.
 */
const canReset = (place: ServerPlace): boolean => !isSecure(place) && place.socketPath === undefined

function open(place: ServerPlace, read: (bytes: number) => boolean): Socket {
  const options = {
    onread: { buffer: readBuffer, callback: read },
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS,
  }
  if (place.socketPath !== undefined) return connectPlain({ path: place.socketPath, ...options })
  const { hostname, port } = new URL(place.origin)
  // The brackets around an IPv6 address belong to the URL.
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  if (!isSecure(place)) return connectPlain({ host, port: Number(port) || 80, ...options })
  const name = isIP(host) === 0 ? { servername: host } : {}
  return connectSecurely({ host, port: Number(port) || 443, ...name, ALPNProtocols: ['http/1.1'], ...options })
}
