/**
 * What every connection asks PostgreSQL for when it starts, in milliseconds. A pooler in front of PostgreSQL may throw
 * these away.
 */
export const timeLimits = {
  statement_timeout: 60_000,
  /** How long a write waits for another replica. */
  lock_timeout: 4000,
  /** A replica that stands still in the middle of a transaction must not keep its locks. */
  idle_in_transaction_session_timeout: 10_000,
} as const

export const timeLimitNames = Object.keys(timeLimits)
