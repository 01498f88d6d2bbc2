/**
 * Time limits that every connection sets when it starts, in milliseconds. A pooler in front of PostgreSQL may drop them.
 */
export const timeLimits = {
  statement_timeout: 60_000,
  /** How long a write waits for another replica. */
  lock_timeout: 4000,
  /** A replica that stalls in a transaction must not keep its locks. */
  idle_in_transaction_session_timeout: 10_000,
} as const

export const timeLimitNames = Object.keys(timeLimits)
