import type { SqlDialect } from './fragments.ts'

/**
 * A database as the queries see it. A query says what its transaction does, whether it writes, and what nobody else may
 * change meanwhile; the database decides how.
 */
export interface Database {
  readonly dialect: SqlDialect
  /**
   * Runs the statements in one transaction, in order. Resolves with the rows of each statement when it is durable.
   * Rejects when it had no effect, or when its effect is unknown; with a `RefusedWrite` when it had none and never
   * will, because of its values.
   */
  transact(transaction: Transaction): Promise<readonly (readonly Row[])[]>
  close(): Promise<void>
}

/** What may happen to an open database. Until it is back, every transaction is rejected. */
export interface DatabaseEvents {
  ended(reason: Error): void
  replaced(): void
  /** It will not come back. */
  lost(reason: Error): void
}

export type Transaction =
  /** Neither waits for writers nor makes them wait. */
  | { readonly access: 'read'; readonly statements: readonly Statement[] }
  /** Takes its locks before the first statement and holds them to the end. */
  | { readonly access: 'write'; readonly locks: readonly Lock[]; readonly statements: readonly Statement[] }

/**
 * What only one transaction may change at a time. SQLite has one writer, so every write holds all of them. A database
 * with several writers takes one lock for each name, in alphabetical order, so that nobody waits in a circle.
 *
 * - `invoices`: the next number. Without the lock, two invoices could take the same number.
 * - `keys`: the number of the last change of a key. Without the lock, a change could become visible after a later one.
 * - `prices`: the latest version of each price. Without the lock, two replicas could add the same one.
 * - `refusals`: the counts and the newest of refused requests. Without the lock, two replicas could wait for each other.
 * - `usage_sums`: the end of the ledger, the sums, and which months are closed. Every transaction that adds rows needs
 *   it: without it, rows could become visible after `usage_summed` has passed them, or slip into a month that is being invoiced.
 */
export type Lock = 'invoices' | 'keys' | 'prices' | 'refusals' | 'usage_sums'

export interface Statement {
  /** With ? for each value. */
  readonly sql: string
  /** Runs once for each set of values. A statement that returns rows has exactly one. */
  readonly runs: readonly Values[]
  readonly returns: 'rows' | 'nothing'
  /** The sets of values are rows for `dialect.fromGiven`, so a database may take all of them in one run. */
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

/** A statement over the rows that are given to it. Its SQL has them from `dialect.fromGiven`, and no other values. */
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
