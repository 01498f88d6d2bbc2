import type { IncomingMessage } from 'node:http'
import { TLSSocket } from 'node:tls'

/** By their names in small letters. (Node makes a list of Set-Cookie alone, which is no header of a request.) */
export type RequestHeaders = Readonly<Record<string, string | undefined>>

/** Takes the body of a request. */
export interface BodyTaker {
  data(chunk: Buffer): void
  end(): void
  /** The connection closed before the end. */
  cut(): void
}

const ignored: BodyTaker = { data() {}, end() {}, cut() {} }

/** A request, whose body may still be on its way. */
export class IncomingRequest {
  readonly method: string
  readonly target: string
  readonly version: string
  readonly headers: RequestHeaders
  readonly address: string
  readonly #message: IncomingMessage
  readonly #hasBody: boolean
  #taker: BodyTaker | undefined
  #isCut = false

  constructor(message: IncomingMessage, address: string) {
    this.#message = message
    this.method = message.method ?? ''
    this.target = message.url ?? ''
    this.version = message.httpVersion
    this.headers = message.headers as RequestHeaders
    this.address = address
    this.#hasBody = 'content-length' in this.headers || 'transfer-encoding' in this.headers
  }

  /** Everything has arrived. */
  get isComplete(): boolean {
    return this.#message.complete || !this.#hasBody
  }

  /** Whether the caller used HTTPS. A proxy that ends TLS says so in X-Forwarded-Proto. */
  get isEncrypted(): boolean {
    return this.#message.socket instanceof TLSSocket || this.headers['x-forwarded-proto'] === 'https'
  }

  /** The names and values of all header lines, one after the other. */
  get headerLines(): readonly string[] {
    return this.#message.rawHeaders
  }

  /** Hands the body over, as it comes. It has one taker in its life, or is discarded. */
  take(taker: BodyTaker): void {
    const isFirst = this.#taker === undefined
    this.#taker = taker
    if (this.#isCut) taker.cut()
    else if (isFirst) this.#listen()
    else if (this.#message.readableEnded) taker.end()
    else this.#message.resume()
  }

  #listen(): void {
    this.#message
      .on('data', (chunk: Buffer) => this.#taker?.data(chunk))
      .once('end', () => this.#taker?.end())
      .once('close', () => this.cut())
  }

  /** Reads the rest, and keeps nothing of it. */
  discard(): void {
    this.take(ignored)
  }

  /** Lets the rest come, and calls back when all of it has been read. */
  whenRead(callback: () => void): void {
    this.#message.once('end', callback).resume()
  }

  pause(): void {
    this.#message.pause()
  }

  resume(): void {
    this.#message.resume()
  }

  /** The rest will not come, or is not wanted. */
  cut(): void {
    if (this.#isCut || this.#message.readableEnded) return
    this.#isCut = true
    this.#taker?.cut()
    this.discard()
    // A connection that nothing is read from would not show that its caller closes it.
    this.#message.resume()
  }
}
