import type { ServerResponse } from 'node:http'
import type { ByteBudget, HeldBytes } from '../core/byte-budget.ts'
import { ApiError } from '../core/errors.ts'
import type { Caller } from '../ports/accounts.ts'
import type { OpenedFile } from '../ports/files.ts'
import type { RateView } from '../ports/rate-limit.ts'
import type { Reply } from '../ports/reply.ts'
import type { RequestNotes } from '../core/request-line.ts'
import type { IncomingRequest } from './incoming-request.ts'
import { newRequestId } from './request-id.ts'
import { readTarget } from './request-target.ts'

/** Answers leave in pieces of this size, so that it can be seen whether the caller takes them. */
const PIECE_BYTES = 65_536
/** Callers without a valid key share the memory of one owner. */
const STRANGERS = ''

const NO_NOTES: RequestNotes = {}

/** One request and its response. Every response is sent through `#head`. */
export class Exchange implements Reply {
  readonly requestId = newRequestId()
  readonly method: string
  readonly path: string
  readonly query: string
  readonly request: IncomingRequest
  readonly #response: ServerResponse
  readonly #place: ExchangePlace
  readonly #listener: ExchangeListener
  /** No longer than needed: nearly all have one, and many requests wait. */
  #goneListeners: readonly (() => void)[] = []
  #drained: (() => void) | undefined
  /** Runs while the caller takes nothing. */
  #stall: NodeJS.Timeout | undefined
  /** Something was written that the caller has not taken yet. */
  #isUnsent = false
  #body: HeldBytes | undefined
  #answer: HeldBytes | undefined
  #rest: Rest | undefined
  isGone = false
  isCut = false
  isOver = false
  isOnRecord = false
  status = 0
  /** The error that was sent, if one was. */
  refusal: ApiError | undefined
  /** Set once the key has been accepted. */
  caller: Caller | undefined
  /** The rate limiter's decision, which the headers are made from. Set before anything is sent. */
  rate: RateView | undefined
  /** Further headers of the response, whatever it will be. */
  readonly headers: Record<string, string> = {}
  /** Further fields for the log line. Never prompts, never keys. */
  notes: RequestNotes = NO_NOTES

  constructor(request: IncomingRequest, response: ServerResponse, place: ExchangePlace, listener: ExchangeListener) {
    this.request = request
    this.#place = place
    this.#response = response
    this.#listener = listener
    this.method = request.method
    const { path, query } = readTarget(request.target)
    this.path = path
    this.query = query
  }

  get address(): string {
    return this.request.address
  }

  /** Whose memory the request uses, and whose turn it takes: its workspace. */
  get owner(): string {
    return this.caller?.workspace.id ?? STRANGERS
  }

  get hasReplied(): boolean {
    return this.#response.headersSent
  }

  onGone(listener: () => void): () => void {
    if (this.isGone) listener()
    else this.#goneListeners = [...this.#goneListeners, listener]
    return () => {
      this.#goneListeners = this.#goneListeners.filter((it) => it !== listener)
    }
  }

  /** The connection closed under the exchange. */
  leave(): void {
    if (this.isOver) return this.sent()
    this.isGone = true
    // One of them may take back another.
    for (let [next] = this.#goneListeners; next; [next] = this.#goneListeners) {
      this.#goneListeners = this.#goneListeners.slice(1)
      next()
    }
    this.isOver = true
    this.sent()
  }

  /** Closes the connection at once. */
  cut(): void {
    this.#place.cut()
  }

  /** Counts the memory that the request takes until it is over. Throws if there is no room for it. */
  holdRequest(bytes: number): void {
    this.#body ??= this.#listener.memory.open(this.owner)
    requireRoom(this.#body.hold(bytes))
  }

  holdAnswer(bytes: number): void {
    this.#answer ??= this.#listener.memory.open(this.owner)
    requireRoom(this.#answer.hold(bytes))
  }

  /** Nothing works on the request any more. Only the part of its answer that the caller has not taken yet is left. */
  release(): void {
    this.#body?.release()
    if (!this.#isUnsent) this.#answer?.release()
  }

  sendJson(body: string, status = 200): void {
    this.send(status, 'application/json', body)
  }

  sendAnswer(contentType: string, body: Body, headers: Record<string, string>): void {
    if (this.isGone || this.isOver) return
    if (!this.hasReplied) {
      this.#head(200, { 'Content-Type': contentType, 'Content-Length': String(lengthOf(body)), ...headers })
    }
    this.#endWith(body)
  }

  /** A reply to HEAD has the length of the body, without the body itself. */
  send(status: number, contentType: string, body: string | Buffer, headers: Record<string, string> = {}): void {
    if (this.isGone || this.isOver) return
    this.#head(status, { 'Content-Type': contentType, 'Content-Length': String(lengthOf(body)), ...headers })
    this.#endWith(body)
  }

  /** Sends something too large to hold in memory, as fast as the caller reads. Resolves when it ends, even if it fails. */
  async sendStream(stream: OpenedFile['stream'], headers: Record<string, string>): Promise<void> {
    if (this.isGone || this.isOver) return void stream.destroy()
    this.#head(200, headers)
    if (this.method === 'HEAD') {
      stream.destroy()
      return this.end('')
    }
    const length = headers['Content-Length']
    let sent = 0
    try {
      for await (const chunk of stream) {
        for (const piece of piecesOf(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)) {
          sent += piece.length
          if (!this.write(piece)) await this.#drain()
        }
        if (this.isGone) break
      }
    } catch {
      return this.cut()
    }
    // The caller would wait for the rest, or take what is too much for the next answer.
    if (length !== undefined && sent !== Number(length)) this.cut()
    else this.end('')
  }

  sendError(error: ApiError, headers: Record<string, string> = {}, body: object = error.body()): void {
    this.refusal = error
    const extra: Record<string, string> = { ...headers, ...error.retryHeaders() }
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
  }

  write(piece: string | Buffer): boolean {
    if (this.isGone || this.isOver) return true
    const flowing = this.#response.write(piece, 'latin1')
    if (!flowing) this.#awaitReader(this.#response.writableLength)
    return flowing
  }

  onDrain(callback: () => void): void {
    this.#drained = callback
  }

  end(text: string): void {
    if (this.isGone || this.isOver) return
    this.#finish(text)
  }

  /** Sends the last of the response: at once if it is small, else as fast as the caller takes it. */
  #endWith(body: Body): void {
    const length = lengthOf(body)
    if (length <= PIECE_BYTES) return this.#finish(inOnePiece(body, length))
    this.#rest = { pieces: piecesOf(typeof body === 'string' ? Buffer.from(body) : body), length }
    this.#pour(this.#rest)
  }

  #pour({ pieces, length }: Rest): void {
    for (let piece = pieces.next(); !piece.done; piece = pieces.next()) {
      if (!this.#response.write(piece.value)) return this.#awaitReader(length)
    }
    this.#rest = undefined
    this.#finish('')
  }

  /** Resolves when the caller has taken what was written, or has gone. */
  #drain(): Promise<void> {
    return new Promise((resolve) => {
      const stopWatching = this.onGone(resolve)
      this.#drained = () => {
        stopWatching()
        resolve()
      }
    })
  }

  /** The caller has not taken everything yet, so that many bytes stay in memory. It gets a while to take some of them. */
  #awaitReader(bytes: number): void {
    if (!this.#isUnsent) this.#response.on('drain', () => this.#taken())
    this.#isUnsent = true
    this.#answer ??= this.#listener.memory.open(this.owner)
    this.#answer.keep(bytes)
    this.#stall ??= setTimeout(() => this.cut(), this.#listener.stallMs).unref()
  }

  /** The caller has taken what was written. */
  #taken(): void {
    clearTimeout(this.#stall)
    this.#stall = undefined
    if (this.#rest) return this.#pour(this.#rest)
    this.#answer?.release()
    if (!this.isOver) this.#drained?.()
  }

  /** Nothing is left to take, or there is nobody to take it. */
  sent(): void {
    clearTimeout(this.#stall)
    this.#isUnsent = false
    this.#rest = undefined
    this.#answer?.release()
  }

  #head(status: number, headers: Record<string, string>): void {
    this.status = status
    this.#response.writeHead(status, {
      'X-Request-Id': this.requestId,
      ...headers,
      ...this.headers,
      ...this.#listener.commonHeaders(this),
    })
  }

  /** Nothing is left to say but this. */
  #finish(last: string | Buffer): void {
    this.isOver = true
    this.#response.once('finish', () => this.#place.answered(this))
    if (this.request.isComplete) {
      this.#response.end(last, 'latin1')
      if (this.#response.writableLength > 0) this.#awaitReader(this.#response.writableLength)
      return
    }
    // The answer ends when its request has been read: a caller that still sends would lose the answer if the connection
    // closed before.
    if (!this.#response.write(last, 'latin1')) this.#awaitReader(this.#response.writableLength)
    this.request.whenRead(() => this.#response.end())
  }
}

/** What the common headers of a response are made from. */
export type ResponseContext = Pick<Exchange, 'rate' | 'caller'>

export interface ExchangeListener {
  /** What all requests together may hold in memory. */
  readonly memory: ByteBudget
  /** A caller that takes nothing of its answer for this long is treated as gone, even if its socket is still open. */
  readonly stallMs: number
  /** The headers that every response of the listener carries, computed now. */
  commonHeaders(exchange: Exchange): Record<string, string>
}

/** Where an exchange takes place. */
export interface ExchangePlace {
  /** The request has been read, and its answer has left. */
  answered(exchange: Exchange): void
  /** Closes the connection at once. */
  cut(): void
}

type Body = string | Buffer | readonly Buffer[]

/** What is left of a large answer, and how long all of it is. */
interface Rest {
  readonly pieces: Iterator<Buffer, void>
  readonly length: number
}

function requireRoom(full: ReturnType<HeldBytes['hold']>): void {
  if (full === undefined) return
  throw new ApiError(
    'service_unavailable',
    full === 'share'
      ? 'This workspace has too much data in flight: requests that wait or run, and answers that were not read. Try again when some of them have finished, or send smaller requests.'
      : 'The service has too much data in flight. Try again shortly, or send smaller requests.',
  )
}

function lengthOf(body: Body): number {
  if (typeof body === 'string') return Buffer.byteLength(body)
  return Buffer.isBuffer(body) ? body.length : body.reduce((sum, { length }) => sum + length, 0)
}

/** Strings that the response writes have one character for each byte. */
function inOnePiece(body: Body, bytes: number): string | Buffer {
  if (typeof body === 'string') return body.length === bytes ? body : Buffer.from(body)
  return Buffer.isBuffer(body) ? body : Buffer.concat(body)
}

function* piecesOf(body: Buffer | readonly Buffer[]): Generator<Buffer, void> {
  for (const bytes of Buffer.isBuffer(body) ? [body] : body) {
    for (let from = 0; from < bytes.length; from += PIECE_BYTES) yield bytes.subarray(from, from + PIECE_BYTES)
  }
}
