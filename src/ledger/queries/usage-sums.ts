import { freeVersions } from '../../billing/rating/rating.ts'
import type { UsageFilter } from '../rows.ts'
import { command, type Lock, type Statement, type Transaction, type Values } from '../../store/database.ts'

/** The sums by hour and by day that are kept next to the ledger, and how new rows are added to them. */

/** The figures that are summed up, besides the counts. */
export const FIGURES = [
  'input_tokens',
  'cached_input_tokens',
  'output_tokens',
  'images',
  'audio_ms',
  'capacity_ms',
  'amount_pico_aud',
] as const

export const COUNTS = ['row_count', 'requests', 'estimated_requests'] as const

/** There is one sum for each combination of these and each hour or day. */
export const SUM_KEYS = ['workspace_id', 'model', 'key_id', 'price_version', 'credit_note'] as const

const atPriceOf = (tier: 'flex' | 'batch'): string =>
  `price_version = ${freeVersions[tier]} OR price_version IN
    (SELECT id FROM price_versions WHERE model LIKE '%#${tier}' AND model NOT LIKE '%@%')`

/**
 * The tier of a sum, and of a row in it. Tiers have price versions of their own, so the sums need no other key, and
 * replicas of a version without tiers may add to them. Reserved capacity has an "@" in the name of its price.
 */
export const TIER = `CASE WHEN ${atPriceOf('flex')} THEN 'flex' WHEN ${atPriceOf('batch')} THEN 'batch' ELSE 'default' END`

/** Neither a correction, nor reserved capacity, nor a credit is a request. */
export const IS_REQUEST = "corrects IS NULL AND capacity_ms = 0 AND endpoint <> 'credit'"

/** Excludes the rows of an unfinished adjustment note, which are not visible yet. */
export const IS_VISIBLE = `(credit_note = '' OR NOT EXISTS
  (SELECT 1 FROM unfinished_notes WHERE unfinished_notes.number = credit_note))`

/** A table of sums, its column of time, and the time of a row in the ledger. */
export interface SumsTable {
  readonly table: 'usage_hours' | 'usage_days'
  readonly time: 'hour' | 'day'
  readonly timeOfRow: string
}

export const HOURS: SumsTable = {
  table: 'usage_hours',
  time: 'hour',
  timeOfRow: 'settled_at - settled_at % 3600000',
}
export const DAYS: SumsTable = { table: 'usage_days', time: 'day', timeOfRow: 'settled_day' }

function addUp({ table, time, timeOfRow }: SumsTable): string {
  const added = [...COUNTS, ...FIGURES]
  return `INSERT INTO ${table} (${[...SUM_KEYS, time, ...added].join(', ')})
    SELECT ${SUM_KEYS.join(', ')}, ${timeOfRow} AS at, count(*), count(*) FILTER (WHERE ${IS_REQUEST}),
      count(*) FILTER (WHERE ${IS_REQUEST} AND estimated = 1), ${FIGURES.map((column) => `sum(${column})`).join(', ')}
    FROM ledger WHERE position > (SELECT position FROM usage_summed) GROUP BY ${SUM_KEYS.join(', ')}, at
    ON CONFLICT (workspace_id, ${time}, model, key_id, price_version, credit_note)
    DO UPDATE SET ${added.map((column) => `${column} = ${table}.${column} + excluded.${column}`).join(', ')}`
}

/** Adds the rows beyond the last one that was summed up, each exactly once. */
export const addUpRows: readonly Statement[] = [
  command(addUp(HOURS)),
  command(addUp(DAYS)),
  command('UPDATE usage_summed SET position = (SELECT coalesce(max(position), 0) FROM ledger)'),
]

/** A transaction whose statements may add rows to the ledger. It ends with adding them to the sums. */
export function addingRows(statements: readonly Statement[], locks: readonly Lock[] = []): Transaction {
  return { access: 'write', locks: [...locks, 'usage_sums'], statements: [...statements, ...addUpRows] }
}

/**
 * The sums of all workspaces in a period. The tables are ordered by workspace, then by time: naming every workspace
 * lets the index find the period in each, and nothing else is read.
 */
export const OF_ANY_WORKSPACE = 'workspace_id IN (SELECT id FROM workspaces)'

/** Of a row, and of the sum that includes it. */
export function usageFilter({ model, keyId }: UsageFilter): { conditions: readonly string[]; values: Values } {
  return {
    conditions: [...(model === undefined ? [] : ['model = ?']), ...(keyId === undefined ? [] : ['key_id = ?'])],
    values: [model, keyId].filter((value) => value !== undefined),
  }
}
