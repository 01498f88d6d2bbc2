import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../ports/store.ts'
import type { DatabaseEvents } from './database.ts'
import { accountQueries } from './queries/accounts.ts'
import { adjustmentNoteQueries } from './queries/adjustment-notes.ts'
import { arrivalQueries } from './queries/arrivals.ts'
import { auditQueries } from './queries/audit.ts'
import { invoiceQueries } from './queries/invoices.ts'
import { linkSecretQueries } from './queries/link-secret.ts'
import { ledgerQueries } from './queries/ledger.ts'
import { reportQueries } from './queries/reports.ts'
import { usageQueries } from './queries/usage.ts'
import { openSqlite } from './sqlite/client.ts'

export type { DatabaseEvents }

/** Whether the directory has been opened before. Opening it creates what is missing. */
export function hasLedger(dataDir: string): boolean {
  return existsSync(join(dataDir, 'weir.db'))
}

export interface StoreOptions {
  readonly dataDir: string
  /** true for the service, of which a data directory has one at a time. Commands and readers share the directory. */
  readonly exclusive: boolean
  /** Whose intents this process writes and recovers; by default the data directory's. */
  readonly owner?: string
  readonly events?: DatabaseEvents
}

/** Opens a store. This is the only place that chooses the database behind it. */
export async function openStore({ dataDir, exclusive, owner, events }: StoreOptions): Promise<Store> {
  const database = await openSqlite({ dataDir, exclusive }, events)
  return {
    ...accountQueries(database),
    ...ledgerQueries(database, { owner: owner ?? database.directoryId, incarnation: randomUUID() }),
    ...usageQueries(database),
    ...invoiceQueries(database),
    ...adjustmentNoteQueries(database),
    ...linkSecretQueries(database),
    ...arrivalQueries(database),
    ...reportQueries(database),
    ...auditQueries(database),
    isUp: () => database.isUp(),
    close: () => database.close(),
  }
}
