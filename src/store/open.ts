import type { Store } from './store.ts'
import type { Database } from './database.ts'
import { openLedgerDatabase, openLedgerDatabaseHere, type DatabaseOptions } from './database-choice.ts'
import { alertQueries } from '../alerts/queries/alerts.ts'
import { accountQueries } from '../workspaces/account-queries.ts'
import { adjustmentNoteQueries } from '../billing/invoices/queries/adjustment-notes.ts'
import { arrivalQueries } from '../billing/usage/queries/arrivals.ts'
import { auditQueries } from '../operate/audit/audit-queries.ts'
import { batchQueries } from '../batches/queries/batches.ts'
import { storedFileQueries } from '../batches/queries/stored-files.ts'
import { invoiceQueries, linkSecretQueries } from '../billing/invoices/queries/invoices.ts'
import { emailQueries } from '../billing/invoices/queries/emails.ts'
import { paymentQueries } from '../billing/invoices/queries/payments.ts'
import { keyQueries } from '../workspaces/keys/key-queries.ts'
import { laneSettingsQueries } from '../catalog/lane-settings-queries.ts'
import { ledgerQueries } from '../ledger/queries/ledger.ts'
import { refusalQueries } from '../billing/refused-requests/refusal-queries.ts'
import { reportQueries } from '../billing/usage/queries/reports.ts'
import { sessionQueries } from '../workspaces/sessions/session-queries.ts'
import { usageQueries } from '../billing/usage/queries/usage.ts'

/** For the main thread, which must never block. */
export async function openStore(options: DatabaseOptions): Promise<Store> {
  const { database, owner } = await openLedgerDatabase(options)
  return storeOn(database, owner)
}

/** For a command or a thread that may block. */
export async function openStoreHere(options: Omit<DatabaseOptions, 'events'>): Promise<Store> {
  const { database, owner } = await openLedgerDatabaseHere(options)
  return storeOn(database, owner)
}

/** The store on an open database. */
export function storeOn(database: Database & { isUp(): boolean }, owner: string): Store {
  return {
    ...accountQueries(database),
    ...alertQueries(database),
    ...keyQueries(database),
    ...ledgerQueries(database, owner),
    ...usageQueries(database),
    ...invoiceQueries(database),
    ...adjustmentNoteQueries(database),
    ...linkSecretQueries(database),
    ...paymentQueries(database),
    ...emailQueries(database),
    ...arrivalQueries(database),
    ...reportQueries(database),
    ...auditQueries(database),
    ...laneSettingsQueries(database),
    ...sessionQueries(database),
    ...refusalQueries(database),
    ...storedFileQueries(database),
    ...batchQueries(database),
    isUp: () => database.isUp(),
    close: () => database.close(),
  }
}
