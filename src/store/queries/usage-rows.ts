import type { LedgerRow } from '../../core/money/ledger.ts'
import type { UsageQuery } from '../../ports/usage.ts'
import { readRows, type Database, type Values } from '../database.ts'
import { ROW_COLUMNS, toLedgerRow } from './ledger-rows.ts'
import { IS_VISIBLE, usageFilter } from './usage-sums.ts'

/** Rows of a workspace in the order of time, a page at a time. */
export async function usageRows(database: Database, asked: UsageQuery): Promise<readonly LedgerRow[]> {
  const isOfSome = asked.model !== undefined || asked.keyId !== undefined
  const found = await (isOfSome ? rowsInHours(database, asked) : rowsIn(database, asked))
  return found.map(toLedgerRow)
}

const HOUR_MS = 3_600_000
const IN_ORDER = 'ORDER BY settled_at, request_id LIMIT ?'

function rowsIn(database: Database, asked: UsageQuery) {
  const place = startOf(asked, 'settled_at')
  const filters = filtersOf(asked)
  const conditions = ['workspace_id = ?', 'settled_at < ?', place.condition, IS_VISIBLE, ...filters.conditions]
  return readRows(
    database,
    `SELECT ${ROW_COLUMNS.join(', ')} FROM ledger WHERE ${conditions.join(' AND ')} ${IN_ORDER}`,
    asked.workspaceId,
    asked.to,
    ...place.values,
    ...filters.values,
    asked.limit,
  )
}

/**
 * A model or a key may have few rows among millions. The sums say in which hours it has any, and only those are searched:
 * as many as a page needs.
 */
async function rowsInHours(database: Database, asked: UsageQuery) {
  const { workspaceId, to, after, from, limit } = asked
  const filters = filtersOf(asked)
  const summed = ['workspace_id = ?', 'hour >= ?', 'hour < ?', IS_VISIBLE, ...filters.conditions].join(' AND ')
  const start = Math.max(from, after?.settledAt ?? 0)
  const firstHour = start - (start % HOUR_MS)
  const inHours = (end: number): Values => [workspaceId, firstHour, end, ...filters.values]
  const hours = await readRows(
    database,
    `SELECT hour, sum(row_count) AS row_count FROM usage_hours WHERE ${summed}
     GROUP BY hour ORDER BY hour LIMIT ?`,
    ...inHours(to),
    limit + 1,
  )
  let counted = 0
  const last = hours.find(({ hour, row_count: rows }) => {
    // Some rows of the first hour may be before the page.
    if (Number(hour) > firstHour) counted += Number(rows)
    return counted >= limit
  })
  const lastHour = Number((last ?? hours.at(-1))?.['hour'] ?? -1)
  if (lastHour < 0) return []
  // The index takes one lower bound alone. The plus keeps it from taking another than the hour.
  const place = startOf(asked, '+settled_at')
  const conditions = [
    'ledger.workspace_id = ?',
    'settled_at >= hours.hour',
    `settled_at < hours.hour + ${HOUR_MS}`,
    '+settled_at < ?',
    place.condition,
    IS_VISIBLE,
    ...filters.conditions,
  ]
  return readRows(
    database,
    `SELECT ${ROW_COLUMNS.join(', ')}
     FROM (SELECT DISTINCT hour FROM usage_hours WHERE ${summed}) AS hours CROSS JOIN ledger
     WHERE ${conditions.join(' AND ')} ${IN_ORDER}`,
    ...inHours(lastHour + 1),
    workspaceId,
    to,
    ...place.values,
    ...filters.values,
    limit,
  )
}

/** Where a page begins: behind a row, or at a time. */
function startOf({ from, after }: UsageQuery, settledAt: string): { condition: string; values: Values } {
  return after && after.settledAt >= from
    ? { condition: `(${settledAt}, request_id) > (?, ?)`, values: [after.settledAt, after.requestId] }
    : { condition: `${settledAt} >= ?`, values: [from] }
}

/** Of a row, and of the sum that it is in. */
function filtersOf(asked: UsageQuery): { conditions: readonly string[]; values: Values } {
  const { priceVersions, creditNote } = asked
  const filter = usageFilter(asked)
  return {
    conditions: [
      ...filter.conditions,
      ...(priceVersions === undefined ? [] : [`price_version IN (${priceVersions.map(() => '?').join(', ')})`]),
      ...(creditNote === undefined ? [] : ['credit_note = ?']),
    ],
    values: [...filter.values, ...(priceVersions ?? []), ...(creditNote === undefined ? [] : [creditNote])],
  }
}
