import type { Client } from 'pg'
import { withoutPassword } from '../../shared/address-without-password.ts'
import type { Database, Lock, Row, Statement, Transaction } from '../database.ts'
import { postgresDialect } from '../fragments.ts'
import { openConnections, type ConnectionsOptions } from './connections.ts'
import { isAway } from './failures.ts'
import { requireFit } from './fit.ts'
import { lockCall } from './locks.ts'
import { migratePostgres } from './migrate.ts'
import { callsOf, type PostgresCall } from './statements.ts'

/** A PostgreSQL that several replicas share. */
export interface PostgresDatabase extends Database {
  /** False while it does not answer. Every transaction is rejected then. */
  isUp(): boolean
}

/** Opens the database and brings its tables up to date. Rejects when it cannot be reached. */
export async function openPostgres(options: Omit<ConnectionsOptions, 'prepare'>): Promise<PostgresDatabase> {
  const prepare = (client: Client): Promise<void> => migratePostgres(client, withoutPassword(options.url))
  const connections = await openConnections({ ...options, prepare })
  return {
    dialect: postgresDialect,
    isUp: connections.isUp,
    transact: (transaction) => connections.use((client) => run(client, transaction)),
    close: connections.close,
  }
}

/** Rejects when PostgreSQL cannot be reached or is unsuitable. Changes nothing in it. */
export async function requireAnswer(url: string): Promise<void> {
  const prepare = (client: Client): Promise<void> => requireFit(client, withoutPassword(url))
  const connections = await openConnections({ url, connectionsMax: 1, prepare })
  await connections.close()
}

async function run(client: Client, transaction: Transaction): Promise<readonly (readonly Row[])[]> {
  const { access, statements } = transaction
  // A single statement is its own transaction.
  if (access === 'read' && statements.length === 1) return [await query(client, callsOf(statements[0]!)[0]!)]
  const calls = statements.map(callsOf)
  try {
    // Inside the try block: a lock timeout leaves a transaction open, too.
    await client.query(access === 'read' ? BEGIN_READING : beginWriting(transaction.locks))
    return await finish(client, statements, calls)
  } catch (error) {
    // PostgreSQL rolls back by itself when the connection is lost.
    if (!isAway(error)) await client.query('ROLLBACK')
    throw error
  }
}

/** Every statement sees the same snapshot. */
const BEGIN_READING = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'

/**
 * One round trip. Every statement sees what was committed before it, so it reads what the locks protect while it holds
 * them. The journal drops committed rows, so the commit must be durable whatever the server's default. Sequential scans are
 * off, because PostgreSQL may have no statistics yet, and a plan that reads the whole ledger for each batch would be far
 * too slow.
 */
function beginWriting(locks: readonly Lock[]): string {
  return [
    'BEGIN ISOLATION LEVEL READ COMMITTED',
    'SET LOCAL synchronous_commit = on',
    'SET LOCAL enable_seqscan = off',
    ...locks.toSorted().map(lockCall),
  ].join('; ')
}

/**
 * Sends everything at once, and waits once. If a statement fails, PostgreSQL refuses those after it and treats the commit as
 * a rollback, so the first failure is the cause.
 */
async function finish(
  client: Client,
  statements: readonly Statement[],
  calls: readonly (readonly PostgresCall[])[],
): Promise<readonly (readonly Row[])[]> {
  const { stream } = client.connection
  stream.cork()
  const sent = calls.map((ofStatement) => Promise.all(ofStatement.map((call) => query(client, call))))
  const committed = client.query('COMMIT')
  stream.uncork()
  const answers = await Promise.allSettled([...sent, committed])
  const failed = answers.find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
  const results = await Promise.all(sent)
  return statements.map(({ returns }, index) => (returns === 'rows' ? (results[index] ?? []).flat() : []))
}

async function query(client: Client, { text, values }: PostgresCall): Promise<readonly Row[]> {
  return (await client.query<Row>(text, [...values])).rows
}
