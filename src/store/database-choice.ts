import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { withoutPassword } from '../shared/address-without-password.ts'
import type { Database, DatabaseEvents } from './database.ts'
import { refuseUnfinishedMove } from './postgres/moves.ts'
import { openSqlite, type SqliteDatabase } from './sqlite/client.ts'
import { openSqliteHere } from './sqlite/in-this-thread.ts'
import { lockForService, requireDatabase } from './sqlite/open-database.ts'

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

/** Whether a ledger exists. Opening the database would create one. PostgreSQL is assumed to have one. */
export function hasLedger({ dataDir, databaseUrl }: DatabaseChoice): boolean {
  return databaseUrl !== undefined || existsSync(join(dataDir, 'weir.db'))
}

/** For threads of a running service: throws if the data directory was moved away. Opening the database would create an empty one there. */
export function requireLedger({ dataDir, databaseUrl }: DatabaseChoice): void {
  if (databaseUrl === undefined) requireDatabase(dataDir)
}

export interface DatabaseOptions extends DatabaseChoice {
  /** true for the service: a data directory has one at a time. Commands and readers share the directory. */
  readonly exclusive: boolean
  /** The owner of the journal that this process writes; by default the data directory. */
  readonly owner?: string | undefined
  readonly events?: DatabaseEvents | undefined
}

/** For each store. A service has three: for accounts and documents, for reports, and for the projector. */
const CONNECTIONS_MAX = 4

/** An open database, and the owner of the journal that this process writes. */
export interface OwnedDatabase {
  readonly database: Database & { isUp(): boolean }
  readonly owner: string
}

/** Opens the database of a data directory. This is the only place that chooses which one. */
export async function openLedgerDatabase({ events, ...options }: DatabaseOptions): Promise<OwnedDatabase> {
  const { dataDir, databaseUrl, exclusive, owner } = options
  if (databaseUrl !== undefined) return openOnPostgres(databaseUrl, { ...options, events })
  return ownedBy(owner, await openSqlite({ dataDir, exclusive }, events))
}

/** For a thread that may block: with SQLite, every transaction is synchronous. */
export async function openLedgerDatabaseHere(options: Omit<DatabaseOptions, 'events'>): Promise<OwnedDatabase> {
  const { dataDir, databaseUrl, exclusive, owner } = options
  if (databaseUrl !== undefined) return openOnPostgres(databaseUrl, options)
  return ownedBy(owner, openSqliteHere({ dataDir, exclusive }))
}

function ownedBy(owner: string | undefined, database: SqliteDatabase): OwnedDatabase {
  return { database, owner: owner ?? database.directoryId }
}

/** The journal is in the data directory, so with PostgreSQL, too, only one service may use it. */
async function openOnPostgres(
  url: string,
  { dataDir, exclusive, owner, events }: Omit<DatabaseOptions, 'databaseUrl'>,
): Promise<OwnedDatabase> {
  const lock = exclusive ? lockForService(dataDir) : undefined
  try {
    if (exclusive) refuseSecondLedger(dataDir)
    const { openPostgres } = await postgresClient()
    const database = await openPostgres({ url, connectionsMax: CONNECTIONS_MAX, events })
    await refuseUnfinishedMove(database, withoutPassword(url)).catch(async (error: unknown) => {
      await database.close()
      throw error
    })
    const close = async (): Promise<void> => {
      await database.close()
      lock?.close()
    }
    return { database: { ...database, close }, owner: owner ?? '' }
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
