import { ChunkedBody } from '../../core/http1/chunked-body.ts'
import type { RequestHead, RequestHeaders } from './request-head.ts'

/** Takes the body of a request. */
export interface BodyTaker {
  /** The chunk is valid until this returns. */
  data(chunk: Buffer): void
  end(): void
  /** The connection closed before the end. */
  cut(): void
}

const nobody: BodyTaker = { data() {}, end() {}, cut() {} }

/** A request, whose body may still be on its way. */
export class IncomingRequest {
  readonly method: string
  readonly target: string
  readonly headers: RequestHeaders
  readonly address: string
  readonly #flow: () => void
  readonly #chunks: ChunkedBody | undefined
  /** Bytes that a body of known length still has. */
  #left: number
  #taker: BodyTaker | undefined
  #isPaused = false
  /** Everything has been read. */
  isComplete: boolean
  #isCut = false

  /** `flow`: the next bytes may come. */
  constructor({ method, target, headers, body }: RequestHead, address: string, flow: () => void) {
    this.method = method
    this.target = target
    this.headers = headers
    this.address = address
    this.#flow = flow
    this.#chunks = body.kind === 'chunked' ? new ChunkedBody() : undefined
    this.#left = body.kind === 'length' ? body.length : 0
    this.isComplete = this.#left === 0 && this.#chunks === undefined
  }

  /** Whether somebody takes more of the body now. */
  get isFlowing(): boolean {
    return this.#taker !== undefined && !this.#isPaused
  }

  /** Hands the body over, as it comes. It has one taker in its life, or is discarded. */
  take(taker: BodyTaker): void {
    this.#taker = taker
    if (this.#isCut) taker.cut()
    else if (this.isComplete) taker.end()
    else this.#flow()
  }

  discard(): void {
    this.#isPaused = false
    this.take(nobody)
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    if (!this.isComplete) this.#flow()
  }

  /** Takes bytes of the body, from `start`. Returns where it stopped, which may be at the end of the body. */
  read(bytes: Buffer, start: number): number {
    let from = start
    let to = Math.min(bytes.length, start + this.#left)
    let stop = to
    if (this.#chunks) {
      stop = this.#chunks.read(bytes, start, bytes.length)
      from = this.#chunks.from
      to = this.#chunks.to
      this.isComplete = this.#chunks.isOver
    } else {
      this.#left -= stop - start
      this.isComplete = this.#left === 0
    }
    if (to > from) this.#taker?.data(bytes.subarray(from, to))
    // It may be another one now, who discards the rest.
    if (this.isComplete) this.#taker?.end()
    return stop
  }

  /** The connection has closed. */
  cut(): void {
    if (this.isComplete || this.#isCut) return
    this.#isCut = true
    this.#taker?.cut()
  }
}
