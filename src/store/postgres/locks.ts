import type { Lock } from '../database.ts'

/** Named locks are advisory locks of PostgreSQL, which end with their transaction. The class separates them from those of other programs. */
const CLASS = 0x57_45_49_52
const NUMBERS: Readonly<Record<Lock | 'migration', number>> = {
  migration: 0,
  invoices: 1,
  keys: 2,
  prices: 3,
  usage_sums: 4,
  refusals: 5,
  alerts: 6,
  batches: 7,
}

/** Waits for the lock. */
export const lockCall = (lock: Lock | 'migration'): string => `SELECT pg_advisory_xact_lock(${CLASS}, ${NUMBERS[lock]})`
