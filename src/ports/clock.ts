/** Time from outside, so that the core and the tests can do without it. */
export interface Clock {
  /** Unix time in milliseconds: for windows, stamps and invoices. */
  now(): number
  /** Milliseconds that never jump: for waits and durations. */
  monotonic(): number
}
