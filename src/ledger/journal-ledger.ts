import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError } from '../core/errors.ts'
import type { JournalPosition } from '../core/journal/positions.ts'
import type { Ledger } from '../ports/ledger.ts'
import type { Journal } from './journal.ts'
import type { Projector } from './projector.ts'

export interface LedgerLimits {
  /** Of the rows that the store has not taken yet. */
  readonly maxJournalBytes: number
  /** What a caller's last byte waits for. */
  readonly waitFor: 'journal' | 'database'
}

/** How long a caller's last byte waits for the database. After that the journal has to do: the row is durable there. */
const DATABASE_PATIENCE_MS = 5000
const RETRY_MS = 100

/**
 * The ledger of a service: rows are durable once they are in the journal, and the projector brings them into the store.
 * The store may be slow, locked or away for a while. Only a journal that has grown too long refuses new requests; or a
 * store that takes no rows, if callers are to wait for it.
 */
export function journalLedger(
  journal: Journal,
  projector: Projector,
  { maxJournalBytes, waitFor }: LedgerLimits,
): Ledger {
  const isFull = (): boolean => projector.status().bytes > maxJournalBytes
  /** What is settled now would rest on the journal alone. */
  const isAlone = (): boolean => waitFor === 'database' && projector.status().isFailing

  async function inDatabase(): Promise<void> {
    const waiting = new AbortController()
    const { signal } = waiting
    try {
      await Promise.race([taken(journal.end(), signal), sleep(DATABASE_PATIENCE_MS, undefined, { signal })])
    } finally {
      waiting.abort()
    }
  }

  async function taken(end: JournalPosition, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        return await projector.through(end)
      } catch {
        await sleep(RETRY_MS)
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
