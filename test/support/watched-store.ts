import type { TestContext } from 'node:test'
import type { Store } from '../../src/store/store.ts'
import { query, type Database, type Transaction } from '../../src/store/database.ts'
import { alertQueries } from '../../src/alerts/queries/alerts.ts'
import { accountQueries } from '../../src/workspaces/account-queries.ts'
import { adjustmentNoteQueries } from '../../src/billing/invoices/queries/adjustment-notes.ts'
import { invoiceQueries, linkSecretQueries } from '../../src/billing/invoices/queries/invoices.ts'
import { emailQueries } from '../../src/billing/invoices/queries/emails.ts'
import { paymentQueries } from '../../src/billing/invoices/queries/payments.ts'
import { keyQueries } from '../../src/workspaces/keys/key-queries.ts'
import { auditQueries } from '../../src/operate/audit/audit-queries.ts'
import { laneSettingsQueries } from '../../src/catalog/lane-settings-queries.ts'
import { batchQueries } from '../../src/batches/queries/batches.ts'
import { storedFileQueries } from '../../src/batches/queries/stored-files.ts'
import { refusalQueries } from '../../src/billing/refused-requests/refusal-queries.ts'
import { reportQueries } from '../../src/billing/usage/queries/reports.ts'
import { ledgerQueries } from '../../src/ledger/queries/ledger.ts'
import { sessionQueries } from '../../src/workspaces/sessions/session-queries.ts'
import { usageQueries } from '../../src/billing/usage/queries/usage.ts'
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
    ...alertQueries(database),
    ...keyQueries(database),
    ...ledgerQueries(database, sqlite.directoryId),
    ...usageQueries(database),
    ...invoiceQueries(database),
    ...adjustmentNoteQueries(database),
    ...linkSecretQueries(database),
    ...paymentQueries(database),
    ...emailQueries(database),
    ...reportQueries(database),
    ...auditQueries(database),
    ...laneSettingsQueries(database),
    ...sessionQueries(database),
    ...refusalQueries(database),
    ...storedFileQueries(database),
    ...batchQueries(database),
  }
  return { store, transactions }
}
