import type { RecentPage, RecentQuery, RowPlace } from '../report-store.ts'
import { query, readRows, type Database, type Row, type Statement, type Values } from '../../../store/database.ts'
import { ROW_COLUMNS, toLedgerRow } from '../../../ledger/queries/ledger-rows.ts'
import { IS_REQUEST, IS_VISIBLE, usageFilter } from '../../../ledger/queries/usage-sums.ts'

/** Requests, the newest first, a page at a time, read from an index in its order. */

/** How many rows a page may read before it is sent, even if few of them match its filters. */
const ROWS_READ_MAX = 5000
/** Failures are far apart in the table, so each may have to be read from the disk. */
const FAILURES_READ_MAX = 500
const HOUR_MS = 3_600_000
const NEWEST_FIRST = 'ORDER BY settled_at DESC, request_id DESC'

/** There are far fewer of them than requests, and they have indexes of their own. */
const FAILED = "outcome <> 'completed'"

export async function recentRequests(database: Database, selection: RecentQuery): Promise<RecentPage> {
  const { workspaceId, model, keyId } = selection
  const isFiltered = model !== undefined || keyId !== undefined
  if (workspaceId === undefined || isAboutFailures(selection) || !isFiltered) {
    return newestOfAll(database, selection)
  }
  const hours = await hoursOf(database, workspaceId, selection)
  const [first] = hours
  if (first === undefined) return { rows: [], next: undefined }
  return first.rows > ROWS_READ_MAX
    ? newestOfAll(database, { ...selection, to: Math.min(selection.to, first.start + HOUR_MS) })
    : newestIn(database, selection, hours)
}

/** A stream that broke had begun with 200. */
const isAboutFailures = ({ outcome = 'completed', httpStatus = 200, errorCode }: RecentQuery): boolean =>
  outcome !== 'completed' || httpStatus !== 200 || errorCode !== undefined

/** Reads the newest rows, or the newest that failed, and then applies the other filters to them. */
async function newestOfAll(database: Database, selection: RecentQuery): Promise<RecentPage> {
  const all = rowsBefore(selection)
  const most = isAboutFailures(selection) ? FAILURES_READ_MAX : ROWS_READ_MAX
  const [last] = await readRows(
    database,
    `SELECT settled_at, request_id FROM ledger WHERE ${all.where} ${NEWEST_FIRST} LIMIT 1 OFFSET ${most - 1}`,
    ...all.values,
  )
  const end = last && { settledAt: Number(last['settled_at']), requestId: String(last['request_id']) }
  const [found = []] = await database.transact({ access: 'read', statements: [newest(selection, end)] })
  return pageOf(found, selection.limit, end)
}

/** Reads only these hours, or as many of them as the limit of rows allows. */
async function newestIn(database: Database, selection: RecentQuery, hours: readonly Hour[]): Promise<RecentPage> {
  let rows = 0
  const enough = hours.filter((hour) => (rows += hour.rows) <= ROWS_READ_MAX)
  const found = await database.transact({
    access: 'read',
    statements: enough.map(({ start }) =>
      newest({ ...selection, from: Math.max(selection.from, start), to: Math.min(selection.to, start + HOUR_MS) }),
    ),
  })
  const isAll = enough.length === hours.length && hours.length <= selection.limit
  return pageOf(
    found.flat(),
    selection.limit,
    isAll ? undefined : { settledAt: enough.at(-1)?.start ?? 0, requestId: '' },
  )
}

/** An hour, and how many rows the workspace has in it. */
interface Hour {
  readonly start: number
  readonly rows: number
}

/**
 * The newest hours in which the model or the key has requests, as many as a page can need. There may be few requests
 * among millions, and the sums show where they are.
 */
async function hoursOf(database: Database, workspaceId: string, selection: RecentQuery): Promise<readonly Hour[]> {
  const { from, to, before, limit } = selection
  const filter = usageFilter(selection)
  const conditions = ['workspace_id = ?', 'hour >= ?', 'hour < ?', 'requests > 0', ...filter.conditions]
  // No id sorts before the empty one, so an hour that begins there is finished.
  const end = before && before.settledAt + (before.requestId === '' ? 0 : 1)
  const rows = await readRows(
    database,
    `SELECT hour, sum(row_count) AS row_count FROM usage_hours WHERE workspace_id = ? AND hour IN (
       SELECT hour FROM usage_hours WHERE ${conditions.join(' AND ')} GROUP BY hour ORDER BY hour DESC LIMIT ?)
     GROUP BY hour ORDER BY hour DESC`,
    workspaceId,
    workspaceId,
    from - (from % HOUR_MS),
    Math.min(to, end ?? to),
    ...filter.values,
    limit + 1,
  )
  return rows.map((row) => ({ start: Number(row['hour']), rows: Number(row['row_count']) }))
}

/** One page plus one row. `end`: the last row that it may read. */
function newest(selection: RecentQuery, end?: RowPlace): Statement {
  // The index uses a single lower bound. Any other bound would make it scan to the very first row.
  const { where, values } = rowsBefore(end ? { ...selection, from: end.settledAt } : selection)
  const { model, keyId, httpStatus, outcome } = selection
  // Not the bare columns: they would make a database choose another index, which has the rows in another order.
  const given = Object.entries({
    "coalesce(model, '')": model,
    key_id: keyId,
    'coalesce(http_status, 0)': httpStatus,
    "coalesce(outcome, '')": outcome === 'failed' ? undefined : outcome,
  }).filter((it): it is [string, string | number] => it[1] !== undefined)
  const conditions = [
    where,
    IS_VISIBLE,
    IS_REQUEST,
    ...(end === undefined ? [] : ['(settled_at, request_id) >= (?, ?)']),
    ...given.map(([column]) => `${column} = ?`),
  ]
  return query(
    `SELECT ${ROW_COLUMNS.join(', ')} FROM ledger WHERE ${conditions.join(' AND ')} ${NEWEST_FIRST} LIMIT ?`,
    ...values,
    ...(end === undefined ? [] : [end.settledAt, end.requestId]),
    ...given.map(([, value]) => value),
    selection.limit + 1,
  )
}

/**
 * Every row that a page may read, by the index alone. PostgreSQL cannot estimate a comparison of rows: without the plain upper
 * bound it expects half of the table, and reads all of it for a key with few requests.
 */
function rowsBefore(selection: RecentQuery): { where: string; values: Values } {
  const { from, to, before } = selection
  const isBefore = before && before.settledAt < to
  const { where, values } = rowsOf(selection)
  const bounds = isBefore
    ? ['settled_at >= ?', 'settled_at <= ?', '(settled_at, request_id) < (?, ?)']
    : ['settled_at >= ?', 'settled_at < ?']
  return {
    where: [...(where === '' ? [] : [where]), ...bounds].join(' AND '),
    values: [...values, from, ...(isBefore ? [before.settledAt, before.settledAt, before.requestId] : [to])],
  }
}

/** The rows of one index. Each condition fits only that index. */
function rowsOf(selection: RecentQuery): { where: string; values: Values } {
  const { workspaceId, model, httpStatus, errorCode } = selection
  const ofWorkspace = workspaceId === undefined ? [] : [['workspace_id = ?', workspaceId] as const]
  if (errorCode !== undefined) return conditionsOf([...ofWorkspace, ['error_code = ?', errorCode]])
  if (isAboutFailures(selection)) {
    const withStatus = workspaceId === undefined && httpStatus !== undefined
    return conditionsOf([...ofWorkspace, ...(withStatus ? [['http_status = ?', httpStatus] as const] : [])], FAILED)
  }
  return conditionsOf(workspaceId === undefined && model !== undefined ? [['model = ?', model]] : ofWorkspace)
}

function conditionsOf(
  given: readonly (readonly [condition: string, value: string | number])[],
  ...others: readonly string[]
): { where: string; values: Values } {
  return {
    where: [...given.map(([condition]) => condition), ...others].join(' AND '),
    values: given.map(([, it]) => it),
  }
}

/** `end`: where to continue if this was not enough for a page. */
function pageOf(found: readonly Row[], limit: number, end: RowPlace | undefined): RecentPage {
  const rows = found.slice(0, limit).map(toLedgerRow)
  return { rows, next: found.length > limit ? rows.at(-1) : end }
}
