import type { LedgerRow } from '../../../ledger/rows.ts'
import type { UsageQuery } from '../usage-store.ts'
import { query, readRows, type Database, type Row, type Statement, type Values } from '../../../store/database.ts'
import { ROW_COLUMNS, toLedgerRow } from '../../../ledger/queries/ledger-rows.ts'
import { IS_VISIBLE, TIER, usageFilter } from '../../../ledger/queries/usage-sums.ts'

/** Rows of a workspace in chronological order, a page at a time. */
export async function usageRows(database: Database, selection: UsageQuery): Promise<readonly LedgerRow[]> {
  const isOfSome = [selection.model, selection.keyId, selection.tier].some((it) => it !== undefined)
  const periods = isOfSome ? await usedPeriods(database, selection) : [selection]
  const found = await database.transact({
    access: 'read',
    statements: periods.map((it) => rowsIn({ ...selection, ...it })),
  })
  return found.flat().slice(0, selection.limit).map(toLedgerRow)
}

const HOUR_MS = 3_600_000

function rowsIn(selection: UsageQuery): Statement {
  const place = startOf(selection)
  const filters = filtersOf(selection)
  const conditions = ['workspace_id = ?', 'settled_at < ?', place.condition, IS_VISIBLE, ...filters.conditions]
  return query(
    `SELECT ${ROW_COLUMNS.join(', ')} FROM ledger WHERE ${conditions.join(' AND ')}
     ORDER BY settled_at, request_id LIMIT ?`,
    selection.workspaceId,
    selection.to,
    ...place.values,
    ...filters.values,
    selection.limit,
  )
}

interface Period {
  readonly from: number
  readonly to: number
}

/**
 * A model, a key or a tier may have few rows among millions. The sums show in which hours it has any, and only those are
 * searched: as many as a page needs. Each hour is named, since a join with the sums may make a database read every row.
 */
async function usedPeriods(database: Database, selection: UsageQuery): Promise<readonly Period[]> {
  const { workspaceId, to, after, from, limit } = selection
  const filters = filtersOf(selection)
  const conditions = ['workspace_id = ?', 'hour >= ?', 'hour < ?', IS_VISIBLE, ...filters.conditions]
  const start = Math.max(from, after?.settledAt ?? 0)
  const firstHour = start - (start % HOUR_MS)
  const hours = await readRows(
    database,
    `SELECT hour, sum(row_count) AS row_count FROM usage_hours WHERE ${conditions.join(' AND ')}
     GROUP BY hour ORDER BY hour LIMIT ?`,
    workspaceId,
    firstHour,
    to,
    ...filters.values,
    limit + 1,
  )
  let counted = 0
  const last = hours.findIndex(({ hour, row_count: rows }) => {
    // Some rows of the first hour may be before the page.
    if (Number(hour) > firstHour) counted += Number(rows)
    return counted >= limit
  })
  return joined(last < 0 ? hours : hours.slice(0, last + 1)).map((period) => ({
    from: Math.max(from, period.from),
    to: Math.min(to, period.to),
  }))
}

/** Merges consecutive hours into one period. */
function joined(hours: readonly Row[]): readonly Period[] {
  const periods: Period[] = []
  for (const row of hours) {
    const hour = Number(row['hour'])
    const before = periods.at(-1)
    const from = before?.to === hour ? (periods.pop()?.from ?? hour) : hour
    periods.push({ from, to: hour + HOUR_MS })
  }
  return periods
}

/** Where a page begins: after a row, or at a time. */
function startOf({ from, after }: UsageQuery): { condition: string; values: Values } {
  return after && after.settledAt >= from
    ? { condition: '(settled_at, request_id) > (?, ?)', values: [after.settledAt, after.requestId] }
    : { condition: 'settled_at >= ?', values: [from] }
}

/** Of a row, and of the sum that includes it. */
function filtersOf(selection: UsageQuery): { conditions: readonly string[]; values: Values } {
  const { tier, priceVersions, creditNote } = selection
  const filter = usageFilter(selection)
  return {
    conditions: [
      ...filter.conditions,
      ...(tier === undefined ? [] : [`${TIER} = ?`]),
      ...(priceVersions === undefined ? [] : [`price_version IN (${priceVersions.map(() => '?').join(', ')})`]),
      ...(creditNote === undefined ? [] : ['credit_note = ?']),
    ],
    values: [
      ...filter.values,
      ...(tier === undefined ? [] : [tier]),
      ...(priceVersions ?? []),
      ...(creditNote === undefined ? [] : [creditNote]),
    ],
  }
}
