import type { LedgerRow } from '../../../ledger/rows.ts'
import type { NewestQuery, RecentPage, RecentQuery, RowPlace } from '../report-store.ts'
import { query, readRows, type Database, type Row, type Statement, type Values } from '../../../store/database.ts'
import { ROW_COLUMNS, toLedgerRow } from '../../../ledger/queries/ledger-rows.ts'
import { IS_REQUEST, IS_VISIBLE, usageFilter } from '../../../ledger/queries/usage-sums.ts'

/** Requests, the newest first, a page at a time, read from an index in its order; and those of all that were written last. */

/** How many rows a page may read before it is sent, even if few of them match its filters. */
const ROWS_READ_MAX = 5000
const HOUR_MS = 3_600_000
const NEWEST_FIRST = 'ORDER BY settled_at DESC, request_id DESC'

/** There are far fewer of them than requests, and they have indexes of their own. */
const FAILED = "outcome <> 'completed'"

export async function recentRequests(database: Database, selection: RecentQuery): Promise<RecentPage> {
  const { workspaceId, model, keyId, errorCode } = selection
  const isFiltered = model !== undefined || keyId !== undefined
  if (workspaceId === undefined || errorCode !== undefined || isAboutFailures(selection) || !isFiltered) {
    return newestOfAll(database, selection)
  }
  const hours = await hoursOf(database, workspaceId, selection)
  const [first] = hours
  if (first === undefined) return { rows: [], next: undefined }
  return first.rows > ROWS_READ_MAX
    ? newestOfAll(database, { ...selection, to: Math.min(selection.to, first.start + HOUR_MS) })
    : newestIn(database, selection, hours)
}

/** Among the rows that were written last, because no index has the requests of all workspaces in the order of time. */
export async function newestRequests(
  database: Database,
  { workspaceId, model, onlyFailed = false, limit }: NewestQuery,
): Promise<readonly LedgerRow[]> {
  const conditions = [
    IS_VISIBLE,
    IS_REQUEST,
    ...(workspaceId === undefined ? [] : ['workspace_id = ?']),
    ...(model === undefined ? [] : ['model = ?']),
    ...(onlyFailed ? [FAILED] : []),
  ]
  const rows = await readRows(
    database,
    `SELECT ${ROW_COLUMNS.join(', ')} FROM (SELECT * FROM ledger ORDER BY position DESC LIMIT ${ROWS_READ_MAX}) AS newest
     WHERE ${conditions.join(' AND ')} ORDER BY position DESC LIMIT ?`,
    ...[workspaceId, model].filter((it) => it !== undefined),
    limit,
  )
  return rows.map(toLedgerRow)
}

/** A stream that broke had begun with 200. */
const isAboutFailures = ({ onlyFailed, httpStatus = 200 }: RecentQuery): boolean =>
  onlyFailed === true || httpStatus !== 200

/** Reads the newest rows, or the newest that failed, and then applies the other filters to them. */
async function newestOfAll(database: Database, selection: RecentQuery): Promise<RecentPage> {
  const all = rowsBefore(selection)
  const [last] = await readRows(
    database,
    `SELECT settled_at, request_id FROM ledger WHERE ${all.where} ${NEWEST_FIRST} LIMIT 1 OFFSET ${ROWS_READ_MAX - 1}`,
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
  const { model, keyId, httpStatus, errorCode } = selection
  // Not the bare error_code: its index has the rows of one workspace after those of another.
  const filters = { model, key_id: keyId, http_status: httpStatus, "coalesce(error_code, '')": errorCode }
  const given = Object.entries(filters).flatMap(([column, value]) =>
    value === undefined ? [] : [[column, value] as const],
  )
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

/** Every row that a page may read, by the index alone. */
function rowsBefore(selection: RecentQuery): { where: string; values: Values } {
  const { from, to, before } = selection
  const isBefore = before && before.settledAt < to
  const among = rowsOf(selection)
  return {
    where: `${among.where} AND settled_at >= ? AND ${isBefore ? '(settled_at, request_id) < (?, ?)' : 'settled_at < ?'}`,
    values: [...among.values, from, ...(isBefore ? [before.settledAt, before.requestId] : [to])],
  }
}

/** The rows of one index: those of a workspace, those that failed, or both. Each condition fits only that index. */
function rowsOf(selection: RecentQuery): { where: string; values: Values } {
  const { workspaceId, errorCode } = selection
  if (workspaceId === undefined) return { where: FAILED, values: [] }
  if (errorCode !== undefined) return { where: 'workspace_id = ? AND error_code = ?', values: [workspaceId, errorCode] }
  return {
    where: isAboutFailures(selection) ? `workspace_id = ? AND ${FAILED}` : 'workspace_id = ?',
    values: [workspaceId],
  }
}

/** `end`: where to continue if this was not enough for a page. */
function pageOf(found: readonly Row[], limit: number, end: RowPlace | undefined): RecentPage {
  const rows = found.slice(0, limit).map(toLedgerRow)
  return { rows, next: found.length > limit ? rows.at(-1) : end }
}
