import type { ServerResponse } from 'node:http'
import type { ByteBudget, HeldBytes } from '../shared/byte-budget.ts'
import { ApiError } from '../shared/errors.ts'
import type { RequestTrace } from '../shared/request-trace.ts'
import type { Caller } from '../workspaces/workspace.ts'
import type { OpenedFile } from './files/files.ts'
import type { RateView } from '../workspaces/rate-limits/rate-limit.ts'
import type { Reply } from './reply.ts'
import type { RequestNotes } from './request-line.ts'
import { type IncomingRequest, newRequestId, readTarget, untraced } from './incoming-request.ts'

/** Answers are sent in pieces of this size, so that a stalled caller is noticed. */
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
  /** Set no longer than needed: nearly all requests have one, and many wait. */
  #goneListeners: readonly (() => void)[] = []
  #drained: (() => void) | undefined
  /** Runs while the caller reads nothing. */
  #stall: NodeJS.Timeout | undefined
  /** Something was written that the caller has not received yet. */
  #isUnsent = false
  #body: HeldBytes | undefined
  #answer: HeldBytes | undefined
  #rest: Rest | undefined
  #trace: RequestTrace | undefined
  isGone = false
  isCut = false
  isOver = false
  isOnRecord = false
  status = 0
  /** The error that was sent, if one was. */
  refusal: ApiError | undefined
  /** Set once the key has been accepted. */
  caller: Caller | undefined
  /** The rate limiter's decision, for the headers. Set before anything is sent. */
  rate: RateView | undefined
  /** Additional headers of the response, whatever it will be. */
  readonly headers: Record<string, string> = {}
  /** Additional fields for the log line. Never prompts, never keys. */
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

  /** The owner whose memory and turn the request uses: its workspace. */
  get owner(): string {
    return this.caller?.workspace.id ?? STRANGERS
  }

  get trace(): RequestTrace {
    return (this.#trace ??= untraced(this.requestId, this.request.headers))
  }

  set trace(trace: RequestTrace) {
    this.#trace = trace
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
    // A listener may remove another one.
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

  /** A caller waits until it disconnects. */
  setWaiting(): void {}

  countTokens(tokens: number): void {
    if (tokens > 0) void this.rate?.tokens?.spend(tokens)
  }

  /** Counts the memory that the request uses until it ends. Throws if there is no room for it. */
  holdRequest(bytes: number): void {
    this.#body ??= this.#listener.memory.open(this.owner)
    requireRoom(this.#body.hold(bytes))
  }

  holdAnswer(bytes: number): void {
    this.#answer ??= this.#listener.memory.open(this.owner)
    requireRoom(this.#answer.hold(bytes))
  }

  /** The request is finished. Only the part of its answer that the caller has not received yet is left. */
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
  send(
    status: number,
    contentType: string,
    body: string | Buffer,
    headers: Record<string, string | string[]> = {},
  ): void {
    if (this.isGone || this.isOver) return
    this.#head(status, { 'Content-Type': contentType, 'Content-Length': String(lengthOf(body)), ...headers })
    this.#endWith(body)
  }

  /** Sends something too large for memory, as fast as the caller reads. Resolves when it ends, even if it fails. */
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
    // The caller would wait for the missing bytes, or take extra bytes for the next answer.
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

  /** Sends the end of the response: immediately if it is small, else as fast as the caller reads. */
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

  /** Resolves when the caller has received what was written, or has disconnected. */
  #drain(): Promise<void> {
    return new Promise((resolve) => {
      const stopWatching = this.onGone(resolve)
      this.#drained = () => {
        stopWatching()
        resolve()
      }
    })
  }

  /**
   * The caller has not received everything yet, so this many bytes stay in memory. It has a while to read some of them.
   */
  #awaitReader(bytes: number): void {
    if (!this.#isUnsent) this.#response.on('drain', () => this.#taken())
    this.#isUnsent = true
    this.#answer ??= this.#listener.memory.open(this.owner)
    this.#answer.keep(bytes)
    this.#stall ??= setTimeout(() => this.cut(), this.#listener.stallMs).unref()
  }

  /** The caller has received what was written. */
  #taken(): void {
    clearTimeout(this.#stall)
    this.#stall = undefined
    if (this.#rest) return this.#pour(this.#rest)
    this.#answer?.release()
    if (!this.isOver) this.#drained?.()
  }

  /** Everything has been received, or the caller has disconnected. */
  sent(): void {
    clearTimeout(this.#stall)
    this.#isUnsent = false
    this.#rest = undefined
    this.#answer?.release()
  }

  #head(status: number, headers: Record<string, string | string[]>): void {
    this.status = status
    this.#response.writeHead(status, {
      'X-Request-Id': this.requestId,
      ...headers,
      ...this.headers,
      ...this.#listener.commonHeaders(this),
    })
  }

  /** Sends the last part of the answer. */
  #finish(last: string | Buffer): void {
    this.isOver = true
    this.#response.once('finish', () => this.#place.answered(this))
    if (this.request.isComplete) {
      this.#response.end(last, 'latin1')
      if (this.#response.writableLength > 0) this.#awaitReader(this.#response.writableLength)
      return
    }
    // The answer ends once its request has been read: if the connection closed before, a caller that is still sending
    // would lose the answer.
    if (!this.#response.write(last, 'latin1')) this.#awaitReader(this.#response.writableLength)
    this.request.whenRead(() => this.#response.end())
  }
}

/** The input of the common response headers. */
export type ResponseContext = Pick<Exchange, 'rate' | 'caller'>

export interface ExchangeListener {
  /** What all requests together may hold in memory. */
  readonly memory: ByteBudget
  /**
   * A caller that reads nothing of its answer for this long counts as disconnected, even if its socket is still open.
   */
  readonly stallMs: number
  /** The headers that every response of the listener carries, computed now. */
  commonHeaders(exchange: Exchange): Record<string, string>
}

/** The connection, as an exchange sees it. */
export interface ExchangePlace {
  /** The request has been read, and its answer has been sent. */
  answered(exchange: Exchange): void
  /** Closes the connection at once. */
  cut(): void
}

type Body = string | Buffer | readonly Buffer[]

/** The rest of a large answer, and its total length. */
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

/** Strings that the response writes have one character per byte. */
function inOnePiece(body: Body, bytes: number): string | Buffer {
  if (typeof body === 'string') return body.length === bytes ? body : Buffer.from(body)
  return Buffer.isBuffer(body) ? body : Buffer.concat(body)
}

function* piecesOf(body: Buffer | readonly Buffer[]): Generator<Buffer, void> {
  for (const bytes of Buffer.isBuffer(body) ? [body] : body) {
    for (let from = 0; from < bytes.length; from += PIECE_BYTES) yield bytes.subarray(from, from + PIECE_BYTES)
  }
}
