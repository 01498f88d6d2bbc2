import { command, query, readRows, type Database } from '../database.ts'
import { databaseFailure } from './failures.ts'

/** The state of a migration from a data directory, as PostgreSQL records it. */

/** 'other': the database already contains a ledger. */
export type MoveState = 'new' | 'begun' | 'finished' | 'other'

export async function stateOfMove(database: Database, directory: string): Promise<MoveState> {
  const [row] = await readRows(database, 'SELECT finished_at FROM moved_from WHERE directory = ?', directory)
  if (row) return row['finished_at'] === null ? 'begun' : 'finished'
  const [found] = await readRows(
    database,
    `SELECT (SELECT count(*) FROM (SELECT 1 FROM workspaces LIMIT 1) AS one)
      + (SELECT count(*) FROM (SELECT 1 FROM ledger LIMIT 1) AS one)
      + (SELECT count(*) FROM moved_from) AS used`,
  )
  return found?.['used'] === 0n ? 'new' : 'other'
}

export async function beginMove(database: Database, directory: string): Promise<void> {
  const sql = 'INSERT INTO moved_from (directory) VALUES (?) ON CONFLICT DO NOTHING'
  await database.transact({ access: 'write', locks: [], statements: [command(sql, directory)] })
}

/** Sets the sequences, so that new rows get positions and ids after the copied ones. */
export async function finishMove(database: Database, directory: string, at: number): Promise<void> {
  const counters = [
    ['ledger', 'position'],
    ['price_versions', 'id'],
    ['audit_log', 'id'],
  ] as const
  await database.transact({
    access: 'write',
    locks: [],
    statements: [
      command('UPDATE usage_summed SET position = (SELECT coalesce(max(position), 0) FROM ledger)'),
      ...counters.map(([table, column]) =>
        query(
          `SELECT setval(pg_get_serial_sequence('${table}', '${column}'),
            (SELECT greatest(coalesce(max(${column}), 0), 1) FROM ${table}), EXISTS (SELECT 1 FROM ${table})) AS last`,
        ),
      ),
      command('UPDATE moved_from SET finished_at = ? WHERE directory = ?', at, directory),
    ],
  })
}

/** Refuses to start on a partly migrated database. */
export async function refuseUnfinishedMove(database: Database, address: string): Promise<void> {
  const unfinished = await readRows(database, 'SELECT directory FROM moved_from WHERE finished_at IS NULL')
  if (unfinished.length === 0) return
  throw databaseFailure(
    'ERR_DATABASE_UNFINISHED',
    `${address}: a migration to this database is running or was interrupted: run weir migrate --to again`,
  )
}
