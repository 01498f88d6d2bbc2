import type { ReportGrouping, ReportStore, RecentQuery, TimeQuery } from '../../ports/reports.ts'
import { readRows, type Database, type Values } from '../database.ts'
import type { SqlDialect } from '../fragments.ts'
import { ROW_COLUMNS, toLedgerRow } from './ledger-rows.ts'
import { sumColumns, toSums } from './usage.ts'
import { DAYS, HOURS, IS_REQUEST, IS_VISIBLE, OF_ANY_WORKSPACE } from './usage-sums.ts'

/** How many rows a page may look at before it is sent, even if few of them fit its filters. */
const LOOKED_AT_MAX = 5000

const COLUMN_OF: Readonly<Record<ReportGrouping, string>> = { model: 'model', key: 'key_id', workspace: 'workspace_id' }

export function reportQueries(database: Database): ReportStore {
  const sums = sumColumns(database.dialect)
  const { selectTexts } = database.dialect
  return {
    async recentRequests(asked) {
      const { where, values } = rowsBefore(asked)
      const newest = `FROM ledger WHERE ${where} ORDER BY settled_at DESC, request_id DESC`
      const filters = filtersOf(asked)
      const found = await readRows(
        database,
        `SELECT * FROM (SELECT ${ROW_COLUMNS.join(', ')} ${newest} LIMIT ${LOOKED_AT_MAX}) AS looked_at
         WHERE ${[IS_REQUEST, ...filters.conditions].join(' AND ')} ORDER BY settled_at DESC, request_id DESC LIMIT ?`,
        ...values,
        ...filters.values,
        asked.limit + 1,
      )
      const rows = found.slice(0, asked.limit).map(toLedgerRow)
      if (found.length > asked.limit) return { rows, next: rows.at(-1) }
      const [last] = await readRows(
        database,
        `SELECT settled_at, request_id ${newest} LIMIT 1 OFFSET ${LOOKED_AT_MAX - 1}`,
        ...values,
      )
      const next = last && { settledAt: Number(last['settled_at']), requestId: String(last['request_id']) }
      return { rows, next }
    },
    async usageOverTime(asked) {
      const { table, time, where, values } = sumsOf(asked, asked.unit, selectTexts)
      const rows = await readRows(
        database,
        `SELECT ${time} AS at, ${sums} FROM ${table} WHERE ${where} GROUP BY ${time} ORDER BY ${time}`,
        ...values,
      )
      return rows.map((row) => Object.assign(toSums(row), { at: Number(row['at']) }))
    },
    async groupsOverTime(asked) {
      const column = COLUMN_OF[asked.groupBy]
      const { table, time, where, values } = sumsOf(asked, asked.unit, selectTexts)
      const rows = await readRows(
        database,
        `SELECT ${column} AS grouped, ${time} AS at, ${sums} FROM ${table} WHERE ${where}
         GROUP BY ${column}, ${time} ORDER BY ${column}, ${time}`,
        ...values,
      )
      return rows.map((row) => Object.assign(toSums(row), { group: String(row['grouped']), at: Number(row['at']) }))
    },
    async largestGroups(asked) {
      const { table, where, values } = sumsOf(asked, 'day', selectTexts)
      const column = COLUMN_OF[asked.groupBy]
      const rows = await readRows(
        database,
        `SELECT ${column} AS grouped, ${sums}, sum(amount_pico_aud / 1000000) AS cost FROM ${table} WHERE ${where}
         GROUP BY ${column} ORDER BY cost DESC, ${column} LIMIT ?`,
        ...values,
        asked.limit,
      )
      return rows.map((row) => Object.assign(toSums(row), { group: String(row['grouped']) }))
    },
  }
}

function rowsBefore({ workspaceId, from, to, before }: RecentQuery): { where: string; values: Values } {
  const conditions = ['settled_at >= ?', IS_VISIBLE]
  const values: (string | number)[] = [from]
  if (before && before.settledAt < to) {
    conditions.push('(settled_at, request_id) < (?, ?)')
    values.push(before.settledAt, before.requestId)
  } else {
    conditions.push('settled_at < ?')
    values.push(to)
  }
  if (workspaceId !== undefined) {
    conditions.unshift('workspace_id = ?')
    values.unshift(workspaceId)
  }
  return { where: conditions.join(' AND '), values }
}

function filtersOf({ model, keyId, onlyFailed }: RecentQuery): { conditions: readonly string[]; values: Values } {
  const pairs: readonly (readonly [string, string | undefined])[] = [
    ['model = ?', model],
    ['key_id = ?', keyId],
  ]
  const given = pairs.filter(([, value]) => value !== undefined)
  return {
    conditions: [...given.map(([condition]) => condition), ...(onlyFailed ? ["outcome <> 'completed'"] : [])],
    values: given.map(([, value]) => value ?? ''),
  }
}

/** `groups`: only these. */
function sumsOf(
  { workspaceId, from, to, groupBy, groups }: Omit<TimeQuery, 'unit'> & { readonly groups?: readonly string[] },
  unit: TimeQuery['unit'],
  selectTexts: SqlDialect['selectTexts'],
) {
  const { table, time } = unit === 'hour' ? HOURS : DAYS
  const isOfAny = workspaceId === undefined && (groups === undefined || groupBy === 'model')
  const conditions = [
    ...(workspaceId === undefined ? [] : ['workspace_id = ?']),
    ...(isOfAny ? [OF_ANY_WORKSPACE] : []),
    ...(groups === undefined ? [] : [`${COLUMN_OF[groupBy]} IN (${selectTexts('?')})`]),
    `${time} >= ?`,
    `${time} < ?`,
    IS_VISIBLE,
  ]
  const given = [
    ...(workspaceId === undefined ? [] : [workspaceId]),
    ...(groups === undefined ? [] : [JSON.stringify(groups)]),
  ]
  return { table, time, where: conditions.join(' AND '), values: [...given, from, to] }
}
