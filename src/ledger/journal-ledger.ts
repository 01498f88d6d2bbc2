import { ApiError } from '../core/errors.ts'
import type { Ledger } from '../ports/ledger.ts'
import type { Journal } from './journal.ts'
import type { Projector } from './projector.ts'

/**
 * The ledger of a service: rows are durable once they are in the journal, and the projector brings them into the store.
 * The store may be slow, locked or away for a while. Only a journal that has grown too long refuses new requests.
 */
export function journalLedger(journal: Journal, projector: Projector, maxJournalBytes: number): Ledger {
  const isFull = (): boolean => projector.status().bytes > maxJournalBytes
  return {
    note(intent) {
      if (isFull()) throw new Error('the journal is full, because the database takes no rows')
      journal.note(intent)
    },
    settle: (row, late) => journal.settle(row, late),
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
      const { bytes, lagMs: journalLagMs } = projector.status()
      return { healthy: !failure && !isFull(), waiting, lagMs, journalBytes: bytes, journalLagMs }
    },
    async flush() {
      await journal.flush()
      await projector.through(journal.end())
    },
  }
}
