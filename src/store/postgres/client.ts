import type { ClientBase } from 'pg'
import { withoutPassword } from '../../core/address-without-password.ts'
import type { Database, Lock, Row, Statement, Transaction } from '../database.ts'
import { postgresDialect } from '../fragments.ts'
import { openConnections, type ConnectionsOptions } from './connections.ts'
import { isAway } from './failures.ts'
import { lockCall } from './locks.ts'
import { migrate } from './migrate.ts'
import { callsOf } from './statements.ts'

/** A PostgreSQL that several replicas share. */
export interface PostgresDatabase extends Database {
  /** False while it does not answer. Every transaction is rejected then. */
  isUp(): boolean
}

/** Opens the database and brings its tables up to date. Rejects when it cannot be reached. */
export async function openPostgres(options: Omit<ConnectionsOptions, 'prepare'>): Promise<PostgresDatabase> {
  const prepare = (client: ClientBase): Promise<void> => migrate(client, withoutPassword(options.url))
  const connections = await openConnections({ ...options, prepare })
  return {
    dialect: postgresDialect,
    isUp: connections.isUp,
    transact: (transaction) => connections.use((client) => run(client, transaction)),
    close: connections.close,
  }
}

async function run(client: ClientBase, transaction: Transaction): Promise<readonly (readonly Row[])[]> {
  const { access, statements } = transaction
  // A statement alone is a transaction of its own.
  if (access === 'read' && statements.length === 1) return [await rowsOf(client, statements[0]!)]
  try {
    // A lock may not be had, which leaves a transaction behind, too.
    await client.query(access === 'read' ? BEGIN_READING : beginWriting(transaction.locks))
    const results: (readonly Row[])[] = []
    for (const statement of statements) results.push(await rowsOf(client, statement))
    await client.query('COMMIT')
    return results
  } catch (error) {
    // On a connection that is of no use any more, PostgreSQL does so by itself.
    if (!isAway(error)) await client.query('ROLLBACK')
    throw error
  }
}

/** Every statement sees the same moment. */
const BEGIN_READING = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'

/**
 * One round trip. Every statement sees what was committed before it, so whatever the locks protect is read under them.
 * A journal forgets what is committed, so the commit has to be durable whatever the server's default. And rows are
 * looked up by their indexes also while PostgreSQL knows nothing of the tables yet: a plan that reads the whole ledger for
 * each batch would be a disaster.
 */
function beginWriting(locks: readonly Lock[]): string {
  return [
    'BEGIN ISOLATION LEVEL READ COMMITTED',
    'SET LOCAL synchronous_commit = on',
    'SET LOCAL enable_seqscan = off',
    ...locks.toSorted().map(lockCall),
  ].join('; ')
}

async function rowsOf(client: ClientBase, statement: Statement): Promise<readonly Row[]> {
  let rows: readonly Row[] = []
  for (const { text, values } of callsOf(statement)) {
    const result = await client.query<Row>(text, [...values])
    if (statement.returns === 'rows') rows = result.rows
  }
  return rows
}
