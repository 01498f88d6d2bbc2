import type { TestContext } from 'node:test'
import type { Store } from '../../src/ports/store.ts'
import { query, type Database, type Transaction } from '../../src/store/database.ts'
import { accountQueries } from '../../src/store/queries/accounts.ts'
import { adjustmentNoteQueries } from '../../src/store/queries/adjustment-notes.ts'
import { invoiceQueries } from '../../src/store/queries/invoices.ts'
import { keyQueries } from '../../src/store/queries/keys.ts'
import { linkSecretQueries } from '../../src/store/queries/link-secret.ts'
import { auditQueries } from '../../src/store/queries/audit.ts'
import { laneSettingsQueries } from '../../src/store/queries/lane-settings.ts'
import { refusalQueries } from '../../src/store/queries/refusals.ts'
import { reportQueries } from '../../src/store/queries/reports.ts'
import { ledgerQueries } from '../../src/store/queries/ledger.ts'
import { sessionQueries } from '../../src/store/queries/sessions.ts'
import { usageQueries } from '../../src/store/queries/usage.ts'
import { openSqlite } from '../../src/store/sqlite/client.ts'

/** What one transaction did. */
export interface WatchedTransaction {
  readonly access: Transaction['access']
  /** How many rows it returned. */
  readonly read: number
  /** How many rows it added to the ledger. */
  readonly added: number
}

export interface WatchedStore {
  readonly store: Omit<Store, 'arrivals' | 'newestArrivals' | 'isUp' | 'close'>
  readonly transactions: readonly WatchedTransaction[]
}

/** The books of a data directory through a connection of its own, which notes what each transaction did. */
export async function watchedStore(
  t: TestContext,
  dataDir: string,
  between: () => Promise<void> = async () => {},
): Promise<WatchedStore> {
  const sqlite = await openSqlite({ dataDir, exclusive: false })
  t.after(() => sqlite.close())
  const transactions: WatchedTransaction[] = []
  const end = query('SELECT coalesce(max(position), 0) AS position FROM ledger')
  const database: Database = {
    ...sqlite,
    async transact(transaction) {
      await between()
      const results = await sqlite.transact({ ...transaction, statements: [end, ...transaction.statements, end] })
      const [before, after] = [results[0], results.at(-1)].map((rows) => Number(rows?.[0]?.['position']))
      const own = results.slice(1, -1)
      const read = own.reduce((sum, rows) => sum + rows.length, 0)
      transactions.push({ access: transaction.access, read, added: after! - before! })
      return own
    },
  }
  const store = {
    ...accountQueries(database),
    ...keyQueries(database),
    ...ledgerQueries(database, sqlite.directoryId),
    ...usageQueries(database),
    ...invoiceQueries(database),
    ...adjustmentNoteQueries(database),
    ...linkSecretQueries(database),
    ...reportQueries(database),
    ...auditQueries(database),
    ...laneSettingsQueries(database),
    ...sessionQueries(database),
    ...refusalQueries(database),
  }
  return { store, transactions }
}
