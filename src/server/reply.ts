import type { RequestTrace } from '../shared/request-trace.ts'

/** How an answer is sent to the caller. Anything sent after the caller has disconnected is dropped. */
export interface Reply {
  readonly requestId: string
  /** The caller has disconnected. */
  readonly isGone: boolean
  /** The service itself cut the connection, because its time to stop had run out. */
  readonly isCut: boolean
  readonly trace: RequestTrace
  /** Set when the intent is recorded: from then on a ledger row records how the request ended. */
  isOnRecord: boolean
  /** False once an engine may work on the request; true again if it was preempted and waits for another place. */
  setWaiting(isWaiting: boolean): void
  /** Counts the tokens that the request took, if its caller has a limit of tokens per minute. */
  countTokens(tokens: number): void
  /**
   * Calls the listener once when the caller disconnects: immediately if that has already happened. There may be several
   * listeners. Returns a function that removes this one.
   */
  onGone(listener: () => void): () => void
  /**
   * Counts the bytes of an answer that is being collected. Throws if the requests in flight hold too much memory: then
   * the answer cannot be delivered.
   */
  holdAnswer(bytes: number): void
  /** Opens an answer that is sent in pieces, with status 200. */
  openAnswer(contentType: string, headers: Record<string, string>): void
  /** Sends a whole answer with status 200, or the rest of one that was opened. */
  sendAnswer(contentType: string, body: string | Buffer | readonly Buffer[], headers: Record<string, string>): void
  /** Opens an event stream. Nothing reaches the caller before this. */
  openStream(headers: Record<string, string>): void
  /** Sends bytes, or latin1 text. False: send no more until `onDrain` calls back. */
  write(piece: string | Buffer): boolean
  onDrain(callback: () => void): void
  end(text: string): void
}
