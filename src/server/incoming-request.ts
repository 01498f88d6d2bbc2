import type { IncomingMessage } from 'node:http'
import { TLSSocket } from 'node:tls'

/** By lower-case name. (Node makes a list only of Set-Cookie, which is not a request header.) */
export type RequestHeaders = Readonly<Record<string, string | undefined>>

/** Receives the body of a request. */
export interface BodyTaker {
  data(chunk: Buffer): void
  end(): void
  /** The connection closed before the end. */
  cut(): void
}

const ignored: BodyTaker = { data() {}, end() {}, cut() {} }

/** A request whose body may still be arriving. */
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

  /** Passes the body on as it arrives. It has a single receiver, or is discarded. */
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
      // The request may wait for minutes from now on, so keep nothing that was only needed for reading.
      this.#message.off('data', data).off('end', end)
      this.#taker = ignored
      taker?.end()
    }
    this.#message.on('data', data).on('end', end)
  }

  /** Reads the rest and discards it. */
  discard(): void {
    this.take(ignored)
  }

  /** Lets the rest arrive, and calls back when all of it has been read. */
  whenRead(callback: () => void): void {
    this.#message.once('end', callback).resume()
  }

  pause(): void {
    this.#message.pause()
  }

  resume(): void {
    this.#message.resume()
  }

  /** The rest will not arrive, or is not needed. */
  cut(): void {
    if (this.#isCut || this.#message.readableEnded) return
    this.#isCut = true
    this.#taker?.cut()
    this.discard()
    // While nothing is read from a connection, a disconnect goes unnoticed.
    this.#message.resume()
  }
}
