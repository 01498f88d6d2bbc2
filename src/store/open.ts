import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { withoutPassword } from '../shared/address-without-password.ts'
import type { Store } from './store.ts'
import type { Database, DatabaseEvents } from './database.ts'
import { refuseUnfinishedMove } from './postgres/moves.ts'
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
import { openSqlite } from './sqlite/client.ts'
import { openSqliteHere } from './sqlite/in-this-thread.ts'
import { lockForService, requireDatabase } from './sqlite/open-database.ts'

export type { DatabaseEvents }

/** The database of a store: PostgreSQL at an address, or SQLite in the data directory. */
export interface DatabaseChoice {
  readonly dataDir: string
  /** undefined: SQLite. It may contain a password. */
  readonly databaseUrl?: string | undefined
}

/** PostgreSQL's client is loaded on demand: with SQLite, no thread and no command needs it. */
const postgresClient = () => import('./postgres/client.ts')

/** Throws unless PostgreSQL answers, and is one that Weir can use. */
export async function requirePostgres(url: string): Promise<void> {
  await (await postgresClient()).requireAnswer(url)
}

/** Whether a ledger exists. Opening the store would create one. PostgreSQL is assumed to have one. */
export function hasLedger({ dataDir, databaseUrl }: DatabaseChoice): boolean {
  return databaseUrl !== undefined || existsSync(join(dataDir, 'weir.db'))
}

/** For threads of a running service: throws if the data directory was moved away. Opening the store would create an empty one there. */
export function requireStore({ dataDir, databaseUrl }: DatabaseChoice): void {
  if (databaseUrl === undefined) requireDatabase(dataDir)
}

export interface StoreOptions extends DatabaseChoice {
  /** true for the service: a data directory has one at a time. Commands and readers share the directory. */
  readonly exclusive: boolean
  /** The owner of the journal that this process writes; by default the data directory. */
  readonly owner?: string | undefined
  readonly events?: DatabaseEvents | undefined
}

/** For each store. A service has three: for accounts and documents, for reports, and for the projector. */
const CONNECTIONS_MAX = 4

/** Opens a store. This is the only place that chooses the database behind it. */
export async function openStore({ dataDir, databaseUrl, exclusive, owner, events }: StoreOptions): Promise<Store> {
  if (databaseUrl !== undefined) return openOnPostgres(databaseUrl, { dataDir, exclusive, owner, events })
  const database = await openSqlite({ dataDir, exclusive }, events)
  return storeOn(database, owner ?? database.directoryId)
}

/** A store for a thread that may block: with SQLite, every transaction is synchronous. */
export async function openStoreHere({ dataDir, databaseUrl, exclusive, owner }: StoreOptions): Promise<Store> {
  if (databaseUrl !== undefined) return openOnPostgres(databaseUrl, { dataDir, exclusive, owner })
  const database = openSqliteHere({ dataDir, exclusive })
  return storeOn(database, owner ?? database.directoryId)
}

/** The journal is in the data directory, so with PostgreSQL, too, only one service may use it. */
async function openOnPostgres(
  url: string,
  { dataDir, exclusive, owner, events }: Omit<StoreOptions, 'databaseUrl'>,
): Promise<Store> {
  const lock = exclusive ? lockForService(dataDir) : undefined
  try {
    if (exclusive) refuseSecondLedger(dataDir)
    const { openPostgres } = await postgresClient()
    const database = await openPostgres({ url, connectionsMax: CONNECTIONS_MAX, events })
    await refuseUnfinishedMove(database, withoutPassword(url)).catch(async (error: unknown) => {
      await database.close()
      throw error
    })
    const store = storeOn(database, owner ?? '')
    return {
      ...store,
      async close() {
        await store.close()
        lock?.close()
      },
    }
  } catch (error) {
    lock?.close()
    throw error
  }
}

/** Rows in weir.db would be missing from all reports and invoices. */
function refuseSecondLedger(dataDir: string): void {
  if (!existsSync(join(dataDir, 'weir.db'))) return
  throw Object.assign(
    new Error(
      `${dataDir} has a ledger of its own (weir.db): move it with weir migrate --to postgres://…, or choose another data_dir`,
    ),
    { code: 'ERR_DATA_DIR_LEDGER' },
  )
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
