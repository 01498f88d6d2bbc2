import { readFileSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { isServiceRunning } from './service-lock.ts'

/**
 * The migrations from an empty database to the current schema; `user_version` counts those that were applied. Never change
 * a released step, because existing databases have applied it: add a new one at the end.
 */
export const sqliteSteps = [
  '0001-first-tables.sql',
  '0002-intents-with-owner.sql',
  '0003-unfinished-notes.sql',
  '0004-refused-rows.sql',
  '0005-key-names.sql',
  '0006-credits-and-reissues.sql',
  '0007-audit-log.sql',
  '0008-journal.sql',
  '0009-keys-by-lookup.sql',
  '0010-lane-settings.sql',
  '0011-invoices-by-time.sql',
  '0012-failures.sql',
  '0013-console-sessions.sql',
  '0014-key-endings.sql',
  '0015-failed-requests.sql',
  '0016-payments.sql',
  '0017-key-limits.sql',
  '0018-invoice-emails.sql',
  '0019-requests-per-workspace.sql',
  '0020-key-spend.sql',
  '0021-people.sql',
  '0022-managing-keys.sql',
  '0023-alerts.sql',
  '0024-keys-with-spend-limit.sql',
  '0025-tokens-per-minute.sql',
  '0026-job-leases.sql',
  '0027-find-requests.sql',
  '0028-stored-files.sql',
  '0029-batches.sql',
  '0030-service-tier.sql',
  '0031-batch-progress.sql',
] as const

export const readSqliteStep = (step: string): string =>
  readFileSync(new URL(`../migrations/sqlite/${step}`, import.meta.url), 'utf8')

/** An error that an operator can fix. It has a code, so it is shown without a stack. */
export function refusal(code: string, message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { code })
}

/**
 * Applies the missing steps in one transaction. If several processes try at once, the first does the work and the others
 * find it done.
 */
export function migrateSqlite(database: DatabaseSync, dataDir: string, { exclusive }: { exclusive: boolean }): void {
  if (versionOf(database, dataDir) === sqliteSteps.length) return
  database.exec('BEGIN IMMEDIATE')
  const version = versionOf(database, dataDir)
  // A running service of an older version does not know the new tables. It took its lock before it read the version, so
  // either its lock is seen here, or it will see the new version and refuse to start.
  if (version > 0 && version < sqliteSteps.length && !exclusive && isServiceRunning(dataDir)) {
    throw refusal(
      'ERR_DATA_DIR_OLDER',
      `an older version of Weir is running on ${dataDir}: restart the service before you use this version's commands`,
    )
  }
  // A step may have to change a constraint of a table in place, which needs write access to the schema.
  database.enableDefensive(false)
  try {
    for (const step of sqliteSteps.slice(version)) database.exec(readSqliteStep(step))
  } finally {
    database.enableDefensive(true)
  }
  database.exec(`PRAGMA user_version = ${sqliteSteps.length}; COMMIT`)
}

/** How many steps were applied. Throws when a newer version of Weir applied more. */
export function versionOf(database: DatabaseSync, dataDir: string): number {
  const version = Number(database.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0)
  if (version <= sqliteSteps.length) return version
  throw refusal(
    'ERR_DATA_DIR_NEWER',
    `${dataDir} was written by a newer version of Weir (schema ${version}; this version knows ${sqliteSteps.length})`,
  )
}
