import type { SqlDialect } from './fragments.ts'

/**
 * A database as queries see it. A query states what its transaction does, whether it writes, and what it locks; the
 * database decides how.
 */
export interface Database {
  readonly dialect: SqlDialect
  /**
   * Runs the statements in one transaction, in order. Resolves with the rows of each statement when it is durable.
   * Rejects when the transaction had no effect, or its effect is unknown. Rejects with a `RefusedWrite` when the values
   * were refused, so that it would fail again.
   */
  transact(transaction: Transaction): Promise<readonly (readonly Row[])[]>
  close(): Promise<void>
}

/** Events of an open database. Between `ended` and `replaced`, every transaction is rejected. */
export interface DatabaseEvents {
  ended(reason: Error): void
  replaced(): void
  /** The database cannot be recovered. */
  lost(reason: Error): void
}

export type Transaction =
  /** Neither waits for writers nor makes them wait. */
  | { readonly access: 'read'; readonly statements: readonly Statement[] }
  /** Takes its locks before the first statement and holds them until it ends. */
  | { readonly access: 'write'; readonly locks: readonly Lock[]; readonly statements: readonly Statement[] }

/**
 * What only one transaction may change at a time. SQLite has one writer, so every write holds all of them. A database
 * with several writers takes one lock for each name, in alphabetical order, so that there are no deadlocks.
 *
 * - `alerts`: the last event of an engine or a lane. Without the lock, two replicas could add the same change.
 * - `batches`: the files and the waiting lines of a workspace. Without the lock, two uploads could pass the quota together.
 * - `invoices`: the next number. Without the lock, two invoices could take the same number.
 * - `keys`: the number of the last change of a key. Without the lock, a change could become visible after a later one.
 * - `prices`: the latest version of each price. Without the lock, two replicas could add the same one.
 * - `refusals`: the counts and the newest of refused requests. Without the lock, two replicas could deadlock.
 * - `usage_sums`: the end of the ledger, the sums, and which months are closed. Every transaction that adds rows needs
 *   it: without it, rows could become visible after `usage_summed` has passed them, or slip into a month that is being invoiced.
 */
export type Lock = 'alerts' | 'batches' | 'invoices' | 'keys' | 'prices' | 'refusals' | 'usage_sums'

export interface Statement {
  /** With ? for each value. */
  readonly sql: string
  /** Runs once for each set of values. */
  readonly runs: readonly Values[]
  readonly returns: 'rows' | 'nothing'
  /** The sets of values are rows for `dialect.fromGiven`, so a database may insert all of them with one call. */
  readonly isForGiven?: true
}

export type Values = readonly (string | number | bigint | null)[]
/** Integers are bigint. */
export type Row = Readonly<Record<string, unknown>>

/** A statement that returns rows. */
export function query(sql: string, ...values: Values): Statement {
  return { sql, runs: [values], returns: 'rows' }
}

/** A statement that returns nothing. */
export function command(sql: string, ...values: Values): Statement {
  return { sql, runs: [values], returns: 'nothing' }
}

/** A statement that runs for each set of values, however many there are. */
export function commandForEach(sql: string, runs: readonly Values[]): Statement {
  return { sql, runs, returns: 'nothing' }
}

/** As `commandForGiven`, but returns rows. */
export function queryForGiven(sql: string, rows: readonly Values[]): Statement {
  return { sql, runs: rows, returns: 'rows', isForGiven: true }
}

/** A statement over the given rows. Its SQL reads them from `dialect.fromGiven`, and takes no other values. */
export function commandForGiven(sql: string, rows: readonly Values[]): Statement {
  return { sql, runs: rows, returns: 'nothing', isForGiven: true }
}

export async function readRows(database: Database, sql: string, ...values: Values): Promise<readonly Row[]> {
  const [rows] = await database.transact({ access: 'read', statements: [query(sql, ...values)] })
  return rows ?? []
}

/** A write of one statement, which needs no lock. */
export async function writeOne(database: Database, sql: string, ...values: Values): Promise<void> {
  await database.transact({ access: 'write', locks: [], statements: [command(sql, ...values)] })
}

/** One transaction. */
export function transacted(
  database: Database,
  ...statements: Parameters<Database['transact']>[0]['statements'][number][]
): Promise<readonly (readonly Row[])[]> {
  return database.transact({ access: 'write', locks: [], statements })
}
