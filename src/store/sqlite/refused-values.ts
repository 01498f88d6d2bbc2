import { sqliteCode } from './failures.ts'

/** SQLite's primary result codes for values that it would refuse again. */
const TOO_BIG = 18
const CONSTRAINT = 19
const MISMATCH = 20
const OUT_OF_RANGE = 25
const ABOUT_VALUES = new Set<number | undefined>([TOO_BIG, CONSTRAINT, MISMATCH, OUT_OF_RANGE])

/**
 * Whether an error is about the values of a statement, which would fail again. All other errors, such as a full disk,
 * a lock or a missing table, are about the database, and may be temporary.
 */
export function refusesValues(error: unknown): boolean {
  const { code, message } = error as NodeJS.ErrnoException
  // Thrown by node:sqlite before SQLite sees the value, such as an integer of more than 64 bits.
  if (code?.startsWith('ERR_INVALID_ARG')) return true
  // A sum does not fit into 64 bits. SQLite has no code for this.
  if (message === 'integer overflow') return true
  return ABOUT_VALUES.has(sqliteCode(error))
}
