import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../ports/store.ts'
import type { DatabaseEvents } from './database.ts'
import { accountQueries } from './queries/accounts.ts'
import { adjustmentNoteQueries } from './queries/adjustment-notes.ts'
import { arrivalQueries } from './queries/arrivals.ts'
import { auditQueries } from './queries/audit.ts'
import { invoiceQueries } from './queries/invoices.ts'
import { keyQueries } from './queries/keys.ts'
import { laneSettingsQueries } from './queries/lane-settings.ts'
import { linkSecretQueries } from './queries/link-secret.ts'
import { ledgerQueries } from './queries/ledger.ts'
import { reportQueries } from './queries/reports.ts'
import { usageQueries } from './queries/usage.ts'
import { openSqlite, type SqliteDatabase } from './sqlite/client.ts'
import { openSqliteHere } from './sqlite/in-this-thread.ts'

export type { DatabaseEvents }

/** Whether the directory has been opened before. Opening it creates what is missing. */
export function hasLedger(dataDir: string): boolean {
  return existsSync(join(dataDir, 'weir.db'))
}

export interface StoreOptions {
  readonly dataDir: string
  /** true for the service, of which a data directory has one at a time. Commands and readers share the directory. */
  readonly exclusive: boolean
  /** Whose journal this process writes; by default the data directory's. */
  readonly owner?: string
  readonly events?: DatabaseEvents
}

/** Opens a store. This is the only place that chooses the database behind it. */
export async function openStore({ dataDir, exclusive, owner, events }: StoreOptions): Promise<Store> {
  return storeOn(await openSqlite({ dataDir, exclusive }, events), owner)
}

/** A store for a thread that has nothing else to do: it waits for every transaction. */
export function openStoreHere({ dataDir, exclusive, owner }: StoreOptions): Store {
  return storeOn(openSqliteHere({ dataDir, exclusive }), owner)
}

function storeOn(database: SqliteDatabase, owner = database.directoryId): Store {
  return {
    ...accountQueries(database),
    ...keyQueries(database),
    ...ledgerQueries(database, owner),
    ...usageQueries(database),
    ...invoiceQueries(database),
    ...adjustmentNoteQueries(database),
    ...linkSecretQueries(database),
    ...arrivalQueries(database),
    ...reportQueries(database),
    ...auditQueries(database),
    ...laneSettingsQueries(database),
    isUp: () => database.isUp(),
    close: () => database.close(),
  }
}
