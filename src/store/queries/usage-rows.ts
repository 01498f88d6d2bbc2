import type { LedgerRow } from '../../core/money/ledger.ts'
import type { UsageQuery } from '../../ports/usage.ts'
import { readRows, type Database, type Values } from '../database.ts'
import { ROW_COLUMNS, toLedgerRow } from './ledger-rows.ts'
import { IS_VISIBLE } from './usage-sums.ts'

/** Rows of a workspace in the order of time, a page at a time. */
export async function usageRows(database: Database, asked: UsageQuery): Promise<readonly LedgerRow[]> {
  const { model } = asked
  const found = await (model === undefined ? rowsIn(database, asked) : rowsOfModel(database, { ...asked, model }))
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
 * A model may have few rows among millions. The sums say in which hours it has any, and only those are searched: as many
 * as a page needs.
 */
async function rowsOfModel(database: Database, asked: UsageQuery & { readonly model: string }) {
  const { workspaceId, to, after, from, model, limit } = asked
  const filters = filtersOf(asked)
  const ofModel = ['workspace_id = ?', 'hour >= ?', 'hour < ?', 'model = ?', IS_VISIBLE, ...filters.conditions]
  const start = Math.max(from, after?.settledAt ?? 0)
  const firstHour = start - (start % HOUR_MS)
  const inHours = (end: number): Values => [workspaceId, firstHour, end, model, ...filters.values]
  const hours = await readRows(
    database,
    `SELECT hour, sum(row_count) AS row_count FROM usage_hours WHERE ${ofModel.join(' AND ')}
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
    'model = ?',
    IS_VISIBLE,
    ...filters.conditions,
  ]
  return readRows(
    database,
    `SELECT ${ROW_COLUMNS.join(', ')}
     FROM (SELECT DISTINCT hour FROM usage_hours WHERE ${ofModel.join(' AND ')}) AS hours CROSS JOIN ledger
     WHERE ${conditions.join(' AND ')} ${IN_ORDER}`,
    ...inHours(lastHour + 1),
    workspaceId,
    to,
    ...place.values,
    model,
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
function filtersOf({ priceVersions, creditNote }: UsageQuery): { conditions: readonly string[]; values: Values } {
  return {
    conditions: [
      ...(priceVersions === undefined ? [] : [`price_version IN (${priceVersions.map(() => '?').join(', ')})`]),
      ...(creditNote === undefined ? [] : ['credit_note = ?']),
    ],
    values: [...(priceVersions ?? []), ...(creditNote === undefined ? [] : [creditNote])],
  }
}
