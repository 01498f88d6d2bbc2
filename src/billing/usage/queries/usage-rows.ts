import type { LedgerRow } from '../../../ledger/rows.ts'
import type { UsageQuery } from '../usage-store.ts'
import { query, readRows, type Database, type Row, type Statement, type Values } from '../../../store/database.ts'
import { ROW_COLUMNS, toLedgerRow } from '../../../ledger/queries/ledger-rows.ts'
import { IS_VISIBLE, usageFilter } from '../../../ledger/queries/usage-sums.ts'

/** Rows of a workspace in chronological order, a page at a time. */
export async function usageRows(database: Database, asked: UsageQuery): Promise<readonly LedgerRow[]> {
  const isOfSome = asked.model !== undefined || asked.keyId !== undefined
  const periods = isOfSome ? await usedPeriods(database, asked) : [asked]
  const found = await database.transact({
    access: 'read',
    statements: periods.map((it) => rowsIn({ ...asked, ...it })),
  })
  return found.flat().slice(0, asked.limit).map(toLedgerRow)
}

const HOUR_MS = 3_600_000

function rowsIn(asked: UsageQuery): Statement {
  const place = startOf(asked)
  const filters = filtersOf(asked)
  const conditions = ['workspace_id = ?', 'settled_at < ?', place.condition, IS_VISIBLE, ...filters.conditions]
  return query(
    `SELECT ${ROW_COLUMNS.join(', ')} FROM ledger WHERE ${conditions.join(' AND ')}
     ORDER BY settled_at, request_id LIMIT ?`,
    asked.workspaceId,
    asked.to,
    ...place.values,
    ...filters.values,
    asked.limit,
  )
}

interface Period {
  readonly from: number
  readonly to: number
}

/**
 * A model or a key may have few rows among millions. The sums show in which hours it has any, and only those are
 * searched: as many as a page needs. Each hour is named, since a join with the sums may make a database read every row.
 */
async function usedPeriods(database: Database, asked: UsageQuery): Promise<readonly Period[]> {
  const { workspaceId, to, after, from, limit } = asked
  const filters = filtersOf(asked)
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
