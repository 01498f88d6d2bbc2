import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import type { EngineHeaders, EngineRequest } from '../core/job.ts'
import { AnswerReader, type AnswerTaker } from './answer-reader.ts'

/** Where a server listens. */
export interface ServerPlace {
  readonly host: string
  readonly port: number
  readonly isSecure: boolean
  readonly socketPath?: string | undefined
}

/** One request of an engine. */
export interface SentRequest {
  /** The request line and the headers, up to the blank line. */
  readonly head: string
  readonly body: EngineRequest['body'] | undefined
}

/** Takes what becomes of a request. It ends with `ended` or `failed`, once. */
export interface AnswerHandler {
  /** There is a connection, and the request is about to be written to it. */
  sending(): void
  head(status: number, headers: EngineHeaders): void
  /** The bytes may be used until this returns. Whatever it throws is what the request fails with. */
  data(bytes: Buffer): void
  ended(): void
  failed(cause: Error): void
}

export interface ConnectionOwner {
  /** The connection can carry another request. */
  free(connection: Connection): void
  /** It cannot be used any more. May be said several times. */
  gone(connection: Connection): void
}

/** The engine fell silent in the middle of its answer. */
export class AnswerStalled extends Error {}

const CONNECT_MS = 5000
const KEEP_ALIVE_PROBE_MS = 60_000
/** Up to this size, joining the head and the body costs less than writing two pieces. */
const JOINED_BYTES = 16_384

/** Connections read one after the other, and nothing is kept of what they have read, so they share the place for it. */
const readBuffer = Buffer.allocUnsafeSlow(65_536)

/** A connection to an engine. It carries one request at a time. */
export class Connection implements AnswerTaker {
  readonly #socket: Socket
  readonly #reader = new AnswerReader(this)
  readonly #owner: ConnectionOwner
  /**
   * A request that is given up resets its connection. A proxy in between may take an orderly end for a client that has only
   * sent all it has to say, and let the engine work on.
   */
  readonly #canReset: boolean
  #request: SentRequest | undefined
  #handler: AnswerHandler | undefined
  #isConnected = false
  #isSending = false
  #isAnswering = false
  #isPaused = false
  /** While the connection is idle. */
  cancelIdle: (() => void) | undefined

  constructor(place: ServerPlace, idleTimeoutMs: number, owner: ConnectionOwner) {
    this.#owner = owner
    this.#canReset = !place.isSecure && place.socketPath === undefined
    const socket = open(place, (bytes) => this.#read(bytes))
    this.#socket = socket
    const timer = setTimeout(() => socket.destroy(new Error('no connection within 5 s')), CONNECT_MS).unref()
    socket
      .once(place.isSecure ? 'secureConnect' : 'connect', () => {
        clearTimeout(timer)
        this.#isConnected = true
        socket.setTimeout(idleTimeoutMs)
        this.#begin()
      })
      .on('timeout', () => this.#stalled())
      .on('end', () => this.#closed())
      .on('error', (error) => this.#fail(error))
      .once('close', () => {
        clearTimeout(timer)
        this.#fail(new Error('the connection was closed'))
      })
  }

  send(request: SentRequest, handler: AnswerHandler): void {
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
    // The time in which nobody listened does not count.
    this.#socket.setTimeout(this.#socket.timeout ?? 0)
    this.#socket.resume()
  }

  close(): void {
    this.#fail(new Error('the connection was closed'))
  }

  #begin(): void {
    const request = this.#request
    if (!request) return
    this.#request = undefined
    this.#handler?.sending()
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

  /** A piece is valid until the next one is asked for, so each has to leave before. */
  async #pour(head: string, body: { open(): AsyncIterable<Buffer> }): Promise<void> {
    const socket = this.#socket
    const leave = (piece: string | Buffer): Promise<void> =>
      new Promise((resolve, reject) => {
        socket.write(piece, 'latin1', (error) => (error ? reject(error) : resolve()))
      })
    this.#isSending = true
    try {
      await leave(head)
      for await (const piece of body.open()) {
        if (socket.destroyed) return
        await leave(piece)
      }
      this.#isSending = false
    } catch (error) {
      this.#fail(error as Error)
    }
  }

  #read(bytes: number): boolean {
    try {
      this.#reader.read(readBuffer, bytes)
    } catch (error) {
      this.#fail(error as Error)
    }
    return !this.#isPaused
  }

  answerHead(status: number, headers: EngineHeaders): void {
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
    // An engine that answered before it had the whole request may take the rest of it for the next one.
    if (isReusable && !this.#isSending && this.#socket.writableLength === 0) this.#owner.free(this)
    else this.close()
    handler?.ended()
  }

  /** The engine sends nothing more. */
  #closed(): void {
    try {
      this.#reader.close()
      this.close()
    } catch (error) {
      this.#fail(error as Error)
    }
  }

  #stalled(): void {
    if (this.#isAnswering && !this.#isPaused) this.#fail(new AnswerStalled('the engine fell silent'))
  }

  #fail(cause: Error): void {
    const handler = this.#handler
    this.#handler = undefined
    this.#request = undefined
    this.#reader.stop()
    const isWithEngine = handler !== undefined && this.#isConnected && !this.#socket.destroyed
    if (isWithEngine && this.#canReset) this.#socket.resetAndDestroy()
    else this.#socket.destroy()
    this.#owner.gone(this)
    // The engine has to hear of it before anybody else gets the place of this request.
    if (isWithEngine) this.#socket.once('close', () => setImmediate(() => handler.failed(cause)))
    else handler?.failed(cause)
  }
}

function open({ host, port, isSecure, socketPath }: ServerPlace, read: (bytes: number) => boolean): Socket {
  const options = {
    onread: { buffer: readBuffer, callback: read },
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS,
  }
  if (socketPath !== undefined) return connectPlain({ path: socketPath, ...options })
  if (!isSecure) return connectPlain({ host, port, ...options })
  const name = isIP(host) === 0 ? { servername: host } : {}
  return connectSecurely({ host, port, ...name, ALPNProtocols: ['http/1.1'], ...options })
}
