import { readFileSync } from 'node:fs'
import type { ClientBase } from 'pg'
import { databaseFailure } from './failures.ts'
import { requireFit } from './fit.ts'
import { lockCall } from './locks.ts'

/**
 * The migrations from an empty database to the current schema; `schema_steps` records those that were applied. Never change
 * a released step, because existing databases have applied it: add a new one at the end.
 */
export const postgresSteps = [
  '0001-first-tables.sql',
  '0002-moved-from.sql',
  '0003-invoices-by-time.sql',
  '0004-failures.sql',
  '0005-console-sessions.sql',
  '0006-key-endings.sql',
  '0007-failed-requests.sql',
  '0008-payments.sql',
  '0009-key-limits.sql',
  '0010-invoice-emails.sql',
  '0011-requests-per-workspace.sql',
  '0012-key-spend.sql',
  '0013-people.sql',
  '0014-managing-keys.sql',
  '0015-alerts.sql',
  '0016-keys-with-spend-limit.sql',
  '0017-tokens-per-minute.sql',
  '0018-job-leases.sql',
  '0019-find-requests.sql',
  '0020-stored-files.sql',
  '0021-batches.sql',
  '0022-service-tier.sql',
  '0023-batch-progress.sql',
] as const

/** How long to wait for the migration of another replica, and how long a step may take on a large database. */
const STEP_MS = 24 * 3600_000

/** Other statements end after a minute. The client has its own limit, which the types of pg know only for a whole connection. */
const patient = (text: string) => ({ text, query_timeout: STEP_MS })

export const readPostgresStep = (step: string): string =>
  readFileSync(new URL(`../migrations/postgres/${step}`, import.meta.url), 'utf8')

/** Applies the missing steps in one transaction. Replicas that start at the same time wait for each other. */
export async function migratePostgres(client: ClientBase, address: string): Promise<void> {
  await requireFit(client, address)
  if ((await takenSteps(client, address)) === postgresSteps.length) return
  await client.query('BEGIN; SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0')
  try {
    await client.query(patient(lockCall('migration')))
    const taken = await takenSteps(client, address)
    if (taken === 0) await client.query('CREATE TABLE IF NOT EXISTS schema_steps (step BIGINT PRIMARY KEY)')
    for (const [index, step] of postgresSteps.slice(taken).entries()) {
      await client.query(patient(readPostgresStep(step)))
      await client.query('INSERT INTO schema_steps VALUES ($1)', [taken + index + 1])
    }
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    throw error
  }
}

/** How many steps were applied. Throws when a newer version of Weir applied more. */
async function takenSteps(client: ClientBase, address: string): Promise<number> {
  // Not to_regclass: it may have cached, before the lock was taken, that the table does not exist.
  const { rows: found } = await client.query(
    "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'schema_steps'",
  )
  if (found.length === 0) return 0
  const { rows } = await client.query<{ taken: bigint }>('SELECT count(*) AS taken FROM schema_steps')
  const taken = Number(rows[0]?.taken)
  if (taken <= postgresSteps.length) return taken
  throw databaseFailure(
    'ERR_DATABASE_NEWER',
    `${address} was written by a newer version of Weir (schema ${taken}; this version knows ${postgresSteps.length})`,
  )
}
