import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { withoutPassword } from '../core/address-without-password.ts'
import type { Store } from '../ports/store.ts'
import type { Database, DatabaseEvents } from './database.ts'
import { openPostgres } from './postgres/client.ts'
import { refuseUnfinishedMove } from './postgres/moves.ts'
import { accountQueries } from './queries/accounts.ts'
import { adjustmentNoteQueries } from './queries/adjustment-notes.ts'
import { arrivalQueries } from './queries/arrivals.ts'
import { auditQueries } from './queries/audit.ts'
import { invoiceQueries } from './queries/invoices.ts'
import { keyQueries } from './queries/keys.ts'
import { laneSettingsQueries } from './queries/lane-settings.ts'
import { linkSecretQueries } from './queries/link-secret.ts'
import { ledgerQueries } from './queries/ledger.ts'
import { refusalQueries } from './queries/refusals.ts'
import { reportQueries } from './queries/reports.ts'
import { sessionQueries } from './queries/sessions.ts'
import { usageQueries } from './queries/usage.ts'
import { openSqlite } from './sqlite/client.ts'
import { openSqliteHere } from './sqlite/in-this-thread.ts'
import { lockForService, requireDatabase } from './sqlite/open-database.ts'

export type { DatabaseEvents }

/** Which database is behind a store: PostgreSQL at an address, or SQLite in the data directory. */
export interface DatabaseChoice {
  readonly dataDir: string
  /** undefined: SQLite. It may contain a password. */
  readonly databaseUrl?: string | undefined
}

export { requireAnswer } from './postgres/client.ts'

/** Whether there are books already. Opening the store creates what is missing. PostgreSQL is always taken to have them. */
export function hasLedger({ dataDir, databaseUrl }: DatabaseChoice): boolean {
  return databaseUrl !== undefined || existsSync(join(dataDir, 'weir.db'))
}

/** For threads of a running service: throws if the data directory was moved away. Opening would create an empty store there. */
export function requireStore({ dataDir, databaseUrl }: DatabaseChoice): void {
  if (databaseUrl === undefined) requireDatabase(dataDir)
}

export interface StoreOptions extends DatabaseChoice {
  /** true for the service, of which a data directory has one at a time. Commands and readers share the directory. */
  readonly exclusive: boolean
  /** Whose journal this process writes; by default the data directory's. */
  readonly owner?: string | undefined
  readonly events?: DatabaseEvents | undefined
}

/** Of one store. A service has three: for accounts and documents, for reports, and for the projector. */
const CONNECTIONS_MAX = 4

/** Opens a store. This is the only place that chooses the database behind it. */
export async function openStore({ dataDir, databaseUrl, exclusive, owner, events }: StoreOptions): Promise<Store> {
  if (databaseUrl !== undefined) return openOnPostgres(databaseUrl, { dataDir, exclusive, owner, events })
  const database = await openSqlite({ dataDir, exclusive }, events)
  return storeOn(database, owner ?? database.directoryId)
}

/** A store for a thread that has nothing else to do: with SQLite, it waits for every transaction. */
export async function openStoreHere({ dataDir, databaseUrl, exclusive, owner }: StoreOptions): Promise<Store> {
  if (databaseUrl !== undefined) return openOnPostgres(databaseUrl, { dataDir, exclusive, owner })
  const database = openSqliteHere({ dataDir, exclusive })
  return storeOn(database, owner ?? database.directoryId)
}

/** The data directory still has the journal, so it belongs to one service here, too. */
async function openOnPostgres(
  url: string,
  { dataDir, exclusive, owner, events }: Omit<StoreOptions, 'databaseUrl'>,
): Promise<Store> {
  const lock = exclusive ? lockForService(dataDir) : undefined
  try {
    if (exclusive) refuseOtherBooks(dataDir)
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

/** Its rows would silently be in no report and no invoice. */
function refuseOtherBooks(dataDir: string): void {
  if (!existsSync(join(dataDir, 'weir.db'))) return
  throw Object.assign(
    new Error(
      `${dataDir} has a ledger of its own (weir.db): move it with weir migrate --to postgres://…, or choose another data_dir`,
    ),
    { code: 'ERR_DATA_DIR_LEDGER' },
  )
}

/** The store on a database that is open. */
export function storeOn(database: Database & { isUp(): boolean }, owner: string): Store {
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
    ...sessionQueries(database),
    ...refusalQueries(database),
    isUp: () => database.isUp(),
    close: () => database.close(),
  }
}
