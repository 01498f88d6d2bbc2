import type { Socket } from 'node:net'
import type { AnswerHeaders } from './message-head.ts'

/** Where a server listens. */
export interface ServerPlace {
  /** `http://host:port` or `https://host:port`. */
  readonly origin: string
  /** A unix socket, which is used instead of the host and the port. */
  readonly socketPath?: string | undefined
}

/** Bytes, or a source that is opened each time it is sent. A piece is valid until the next one is requested. */
export type RequestBody = Buffer | { readonly length: number; open(): AsyncIterable<Buffer> }

export interface ClientRequest {
  readonly method: 'GET' | 'POST'
  /** With the query. */
  readonly path: string
  /** Headers, as `headerLines` writes them. Host, Connection and Content-Length are added. */
  readonly lines: string
  readonly body?: RequestBody | undefined
}

/** A request as it is sent over a connection. */
export interface SentRequest {
  /** The request line and the headers, including the blank line. */
  readonly head: string
  readonly body: RequestBody | undefined
}

/** Receives the result of a request: exactly one of `ended` or `failed` is called at the end. */
export interface AnswerHandler {
  /** There is a connection, and the request is about to be written to it. Called again after `resending`. */
  sending(): void
  /** A reused connection closed before a byte of the answer. The request is sent once more, on a new connection. */
  resending(): void
  head(status: number, headers: AnswerHeaders): void
  /** The bytes are valid until this returns. If it throws, the request fails with that error. */
  data(bytes: Buffer): void
  ended(): void
  failed(cause: Error): void
}

/** Tracing needs the socket, too. */
export interface RequestTaker extends Omit<AnswerHandler, 'sending'> {
  sending(socket: Socket): void
}

/** The server stalled in the middle of its answer. */
export class AnswerStalled extends Error {
  override readonly name = 'AnswerStalled'
}

/** For `abort`, when the answer is no longer needed. Tracing tools know the name and do not count it as an error. */
export class RequestAborted extends Error {
  override readonly name = 'AbortError'
}
