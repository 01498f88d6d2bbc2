/** Time is passed in, so that the core needs no clock and tests can set it. */
export interface Clock {
  /** Unix time in milliseconds: for windows, timestamps and invoices. */
  now(): number
  /** Milliseconds that never jump: for waits and durations. */
  monotonic(): number
}

/** A clock that also calls back. */
export interface AlarmClock extends Clock {
  /** Calls back once, unless the returned function is called first. A pending call does not keep the process alive. */
  after(ms: number, callback: () => void): () => void
}
