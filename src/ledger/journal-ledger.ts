import timers from 'node:timers/promises'
import { ApiError } from '../shared/errors.ts'
import type { JournalPosition } from './journal/positions.ts'
import type { Ledger } from './ledger.ts'
import type { Journal } from './journal/journal.ts'
import type { Projector } from './projector.ts'

export interface LedgerLimits {
  /** Of the rows that are not in the store yet. */
  readonly maxJournalBytes: number
  /** What has to happen before a caller gets the last byte. */
  readonly waitFor: 'journal' | 'database'
}

/** How long a caller's last byte waits for the database. After that the journal is enough: the row is durable there. */
const DATABASE_PATIENCE_MS = 5000
const RETRY_MS = 100

/**
 * The ledger of a service: a row is durable once it is in the journal, and the projector copies it to the store. The
 * store may be slow, locked or unreachable for a while. New requests are refused only if the journal has grown too
 * long; or, if callers are to wait for the store, while the store accepts no rows.
 */
export function journalLedger(
  journal: Journal,
  projector: Projector,
  { maxJournalBytes, waitFor }: LedgerLimits,
): Ledger {
  const isFull = (): boolean => projector.status().bytes > maxJournalBytes
  /** Rows that are settled now would be in the journal only. */
  const isAlone = (): boolean => waitFor === 'database' && projector.status().isFailing

  async function inDatabase(): Promise<void> {
    const waiting = new AbortController()
    const { signal } = waiting
    try {
      await Promise.race([taken(journal.end(), signal), timers.setTimeout(DATABASE_PATIENCE_MS, undefined, { signal })])
    } finally {
      waiting.abort()
    }
  }

  async function taken(end: JournalPosition, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        return await projector.through(end)
      } catch {
        await timers.setTimeout(RETRY_MS)
      }
    }
  }

  return {
    note(intent) {
      if (isFull()) throw new Error('the journal is full, because the database takes no rows')
      if (isAlone()) throw new Error('the database takes no rows')
      journal.note(intent)
    },
    async settle(row, late) {
      await journal.settle(row, late)
      if (waitFor === 'database') await inDatabase()
    },
    async readable() {
      try {
        await projector.through(journal.end())
      } catch (cause) {
        throw new ApiError('service_unavailable', 'The database does not take the latest usage now. Try again.', {
          cause,
        })
      }
    },
    status() {
      const { failure, waiting, lagMs } = journal.status()
      const { bytes: journalBytes, lagMs: journalLagMs, isFailing: isStoreFailing } = projector.status()
      const healthy = !failure && !isFull() && !isAlone()
      return { healthy, waiting, lagMs, journalBytes, journalLagMs, isStoreFailing }
    },
    async flush() {
      await journal.flush()
      await projector.through(journal.end())
    },
  }
}
