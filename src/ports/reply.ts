/** The way back to the caller. */
export interface Reply {
  readonly requestId: string
  /** The caller has gone away. */
  readonly isGone: boolean
  /** It was the service that cut the connection, at the end of its time to stop. */
  readonly isCut: boolean
  /** Called when the caller goes away, at once if that has happened. The last one set counts. */
  onGone(callback: () => void): void
  /** Opens an answer that is sent while it comes, with status 200. */
  openAnswer(contentType: string, headers: Record<string, string>): void
  /** A whole answer, with status 200; of one that was opened, what is left of it. */
  sendAnswer(contentType: string, body: string | Buffer | readonly Buffer[], headers: Record<string, string>): void
  /** Opens an event stream; nothing reaches the caller before. */
  openStream(headers: Record<string, string>): void
  /** Bytes, or latin1 text. False: wait for `onDrain`. */
  write(piece: string | Buffer): boolean
  onDrain(callback: () => void): void
  end(text: string): void
}
