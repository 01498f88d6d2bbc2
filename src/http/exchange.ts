import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { ApiError } from '../core/errors.ts'
import type { Caller } from '../ports/accounts.ts'
import type { OpenedFile } from '../ports/files.ts'
import type { RateView } from '../ports/rate-limit.ts'
import type { Reply } from '../ports/reply.ts'
import { readTarget } from './request-target.ts'

/** A caller that reads nothing for this long is treated as gone, even if its socket is still open. */
const STALL_MS = 60_000

/** One request and its response. Every response is sent through `#head`. */
export class Exchange implements Reply {
  readonly requestId = newRequestId()
  readonly method: string
  readonly path: string
  readonly query: string
  readonly request: IncomingMessage
  readonly #response: ServerResponse
  readonly #listener: ExchangeListener
  readonly #goneListeners = new Set<() => void>()
  #drained: (() => void) | undefined
  #stall: NodeJS.Timeout | undefined
  isGone = false
  isCut = false
  isOver = false
  status = 0
  /** Set once the key has been accepted. */
  caller: Caller | undefined
  /** The rate limiter's decision, which the headers are made from. Set before anything is sent. */
  rate: RateView | undefined
  /** Further fields for the log line. Never prompts, never keys. */
  readonly notes: Record<string, unknown> = {}

  constructor(request: IncomingMessage, response: ServerResponse, listener: ExchangeListener) {
    this.request = request
    this.#response = response
    this.#listener = listener
    this.method = request.method ?? 'GET'
    const { path, query } = readTarget(request.url ?? '/')
    this.path = path
    this.query = query
  }

  get address(): string {
    return this.request.socket.remoteAddress ?? ''
  }

  get hasReplied(): boolean {
    return this.#response.headersSent
  }

  onGone(listener: () => void): () => void {
    if (this.isGone) listener()
    else this.#goneListeners.add(listener)
    return () => this.#goneListeners.delete(listener)
  }

  /** The connection closed under the exchange. */
  leave(): void {
    if (this.isGone || this.isOver) return
    this.isGone = true
    for (const listener of this.#goneListeners) listener()
    this.#goneListeners.clear()
    this.#finish()
  }

  sendJson(body: string, status = 200): void {
    this.send(status, 'application/json', body)
  }

  sendAnswer(contentType: string, body: string | Buffer | readonly Buffer[], headers: Record<string, string>): void {
    if (this.isGone || this.isOver) return
    if (this.hasReplied) return this.#endWith(body)
    if (typeof body === 'string' || Buffer.isBuffer(body)) return this.send(200, contentType, body, headers)
    const length = body.reduce((sum, piece) => sum + piece.length, 0)
    this.#head(200, { 'Content-Type': contentType, 'Content-Length': String(length), ...headers })
    // Corked, the pieces leave in one write.
    this.#response.cork()
    this.#endWith(body)
  }

  #endWith(body: string | Buffer | readonly Buffer[]): void {
    if (typeof body === 'string' || Buffer.isBuffer(body)) this.#response.end(body)
    else {
      for (const piece of body) this.#response.write(piece)
      this.#response.end()
    }
    this.#finish()
  }

  send(status: number, contentType: string, body: string | Buffer, headers: Record<string, string> = {}): void {
    if (this.isGone || this.isOver) return
    const bytes = Buffer.byteLength(body)
    this.#head(status, { 'Content-Type': contentType, 'Content-Length': String(bytes), ...headers })
    this.#response.end(this.method === 'HEAD' ? undefined : body)
    this.#finish()
  }

  /** Sends something too large to hold in memory, as fast as the caller reads. Resolves when it ends, even if it fails. */
  async sendStream(stream: OpenedFile['stream'], headers: Record<string, string>): Promise<void> {
    if (this.isGone || this.isOver) return void stream.destroy()
    this.#head(200, headers)
    if (this.method === 'HEAD') {
      stream.destroy()
      this.#response.end()
    } else {
      // Without a listener for the timeout, Node closes the connection.
      this.#response.setTimeout(STALL_MS)
      await pipeline(stream, this.#response).catch(() => this.request.socket.destroy())
    }
    if (!this.isGone) this.#finish()
  }

  sendError(error: ApiError, headers: Record<string, string> = {}, body: object = error.body()): void {
    this.notes['code'] = error.code
    const extra: Record<string, string> = { ...headers }
    if (error.retryAfter !== null) extra['Retry-After'] = String(error.retryAfter)
    if (error.status === 401) extra['WWW-Authenticate'] = 'Bearer'
    this.send(error.status, 'application/json', JSON.stringify(body), extra)
  }

  openStream(headers: Record<string, string>): void {
    this.openAnswer('text/event-stream; charset=utf-8', {
      'Cache-Control': 'no-cache',
      'X-Accel-Buffering': 'no',
      ...headers,
    })
  }

  openAnswer(contentType: string, headers: Record<string, string>): void {
    if (this.isGone || this.isOver) return
    this.#head(200, { 'Content-Type': contentType, ...headers })
    this.#response.on('drain', () => this.#resume())
  }

  write(piece: string | Buffer): boolean {
    if (this.isGone || this.isOver) return true
    const flowing = this.#response.write(piece, 'latin1')
    if (!flowing) this.#stall ??= setTimeout(() => this.request.socket.destroy(), STALL_MS).unref()
    return flowing
  }

  onDrain(callback: () => void): void {
    this.#drained = callback
  }

  end(text: string): void {
    if (this.isGone || this.isOver) return
    this.#response.end(text, 'latin1')
    this.#finish()
  }

  #resume(): void {
    clearTimeout(this.#stall)
    this.#stall = undefined
    this.#drained?.()
  }

  #head(status: number, headers: Record<string, string>): void {
    this.status = status
    // node:http writes a flat list without checking each name again.
    const flat = ['X-Request-Id', this.requestId]
    for (const name in headers) flat.push(name, headers[name] ?? '')
    const common = this.#listener.commonHeaders(this)
    for (const name in common) flat.push(name, common[name] ?? '')
    this.#response.writeHead(status, flat)
  }

  #finish(): void {
    this.isOver = true
    clearTimeout(this.#stall)
    this.#listener.exchangeOver(this)
  }
}

/** What the common headers of a response are made from. */
export type ResponseContext = Pick<Exchange, 'rate' | 'caller'>

export interface ExchangeListener {
  /** The headers that every response of the listener carries, computed now. */
  commonHeaders(exchange: Exchange): Record<string, string>
  exchangeOver(exchange: Exchange): void
}

/** Ids sort by time, so that new ledger rows are added at the end of the index. */
export function newRequestId(): string {
  return Date.now().toString(36).padStart(9, '0') + randomUUID().replaceAll('-', '').slice(0, 23)
}
