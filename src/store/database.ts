import type { Dialect } from './fragments.ts'

/**
 * A database as the queries see it. They never say how a transaction is carried out: only what it does, whether
 * it writes, and what nobody else may change meanwhile.
 */
export interface Database {
  readonly dialect: Dialect
  /**
   * Runs the statements in one transaction, in order, and resolves when it is durable: with the rows of each
   * statement, none for those that return nothing. Rejects when nothing of it took effect, or when that is unknown.
   */
  transact(transaction: Transaction): Promise<readonly (readonly Row[])[]>
  close(): Promise<void>
}

export type Transaction =
  /** Never waits for a writer, and no writer waits for it. */
  | { readonly access: 'read'; readonly statements: readonly Statement[] }
  /** Takes its locks before the first statement and keeps them to the end. */
  | { readonly access: 'write'; readonly locks: readonly Lock[]; readonly statements: readonly Statement[] }

/**
 * What a transaction may need to have for itself. SQLite has one writer at a time, so there every write has all
 * of them; a database with several writers takes one lock for each name, in alphabetical order.
 *
 * - `invoices`: the next number. Without it two invoices could take the same number, or leave a gap.
 * - `usage_sums`: the end of the ledger, its sums, and which months are closed. Whoever adds rows needs it: rows
 *   would otherwise appear out of order behind `usage_summed`, and a row could slip into a month while it is invoiced.
 */
export type Lock = 'invoices' | 'usage_sums'

export interface Statement {
  /** With ? for each value. */
  readonly sql: string
  /** Runs once for each set of values. A statement that returns rows has exactly one. */
  readonly runs: readonly Values[]
  readonly returns: 'rows' | 'nothing'
}

export type Values = readonly (string | number | bigint | null)[]
/** Whole numbers come as bigint. */
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

export async function readRows(database: Database, sql: string, ...values: Values): Promise<readonly Row[]> {
  const [rows] = await database.transact({ access: 'read', statements: [query(sql, ...values)] })
  return rows ?? []
}

/** A write that needs no lock, since one statement decides everything. */
export async function writeOne(database: Database, sql: string, ...values: Values): Promise<void> {
  await database.transact({ access: 'write', locks: [], statements: [command(sql, ...values)] })
}
