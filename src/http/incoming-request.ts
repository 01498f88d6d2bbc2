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
  readonly address: string
  readonly #message: IncomingMessage
  #taker: BodyTaker | undefined
  #isCut = false

  constructor(message: IncomingMessage, address: string) {
    this.#message = message
    this.address = address
  }

  get method(): string {
    return this.#message.method ?? ''
  }

  get target(): string {
    return this.#message.url ?? ''
  }

  get version(): string {
    return this.#message.httpVersion
  }

  get headers(): RequestHeaders {
    return this.#message.headers as RequestHeaders
  }

  /** Everything has arrived. */
  get isComplete(): boolean {
    const { headers } = this
    return this.#message.complete || !('content-length' in headers || 'transfer-encoding' in headers)
  }

  /** Whether the caller used HTTPS. A proxy that terminates TLS sets X-Forwarded-Proto. */
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
    const data = (chunk: Buffer): void => this.#taker?.data(chunk)
    const end = (): void => {
      const taker = this.#taker
      // The request may wait for minutes from now on, so nothing is kept of the reading.
      this.#message.off('data', data).off('end', end)
      this.#taker = ignored
      taker?.end()
    }
    this.#message.on('data', data).on('end', end)
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
