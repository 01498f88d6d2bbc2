import type { ReportGrouping, ReportStore, SampledRequest, TimeQuery } from '../report-store.ts'
import type { Outcome } from '../../../ledger/rows.ts'
import { query, readRows, type Database, type Row } from '../../../store/database.ts'
import type { SqlDialect } from '../../../store/fragments.ts'
import { recentRequests } from './recent-requests.ts'
import { SUM_NAMES, sumColumns, toSums } from './usage.ts'
import {
  DAYS,
  HOURS,
  IS_REQUEST,
  IS_VISIBLE,
  OF_ANY_WORKSPACE,
  usageFilter,
} from '../../../ledger/queries/usage-sums.ts'

const COLUMN_OF: Readonly<Record<ReportGrouping, string>> = { model: 'model', key: 'key_id', workspace: 'workspace_id' }

/** What a sampled request is made of. */
const SAMPLED = [
  'model',
  'key_id',
  'outcome',
  'output_tokens',
  'queue_wait_ms',
  'first_token_ms',
  'duration_ms',
  'settled_at',
] as const

export function reportQueries(database: Database): ReportStore {
  const sums = sumColumns(database.dialect)
  const { selectTexts } = database.dialect
  return {
    recentRequests: (selection) => recentRequests(database, selection),
    async sampledRequests({ workspaceId, spans, rowsOfEach, model, keyId }) {
      const filter = usageFilter({ model, keyId })
      const found = await database.transact({
        access: 'read',
        statements: spans.map(({ from, to }) =>
          query(
            `SELECT ${SAMPLED.join(', ')} FROM (
               SELECT ${[...SAMPLED, 'corrects', 'capacity_ms', 'endpoint', 'credit_note'].join(', ')} FROM ledger
               WHERE workspace_id = ? AND settled_at >= ? AND settled_at < ?
               ORDER BY settled_at DESC, request_id DESC LIMIT ?) AS newest
             WHERE ${[IS_VISIBLE, IS_REQUEST, ...filter.conditions].join(' AND ')}`,
            workspaceId,
            from,
            to,
            rowsOfEach,
            ...filter.values,
          ),
        ),
      })
      return found.flat().map(toSampled)
    },
    async usageOverTime(selection) {
      const { table, time, where, values } = sumsOf(selection, selection.unit, selectTexts)
      const ofEach = `SELECT workspace_id, ${time} AS at, ${sums} FROM ${table} WHERE ${where} GROUP BY workspace_id, ${time}`
      const rows = await readRows(
        database,
        `SELECT at, ${SUM_NAMES.map((name) => `sum(${name}) AS ${name}`).join(', ')} FROM (${ofEach}) AS of_each
         GROUP BY at ORDER BY at`,
        ...values,
      )
      return rows.map((row) => Object.assign(toSums(row), { at: Number(row['at']) }))
    },
    async groupsOverTime(selection) {
      const column = COLUMN_OF[selection.groupBy]
      const { table, time, where, values } = sumsOf(selection, selection.unit, selectTexts)
      const rows = await readRows(
        database,
        `SELECT ${column} AS grouped, ${time} AS at, ${sums} FROM ${table} WHERE ${where}
         GROUP BY ${column}, ${time} ORDER BY ${column}, ${time}`,
        ...values,
      )
      return rows.map((row) => Object.assign(toSums(row), { group: String(row['grouped']), at: Number(row['at']) }))
    },
    async largestGroups(selection) {
      const { table, where, values } = sumsOf(selection, 'day', selectTexts)
      const column = COLUMN_OF[selection.groupBy]
      const rows = await readRows(
        database,
        `SELECT ${column} AS grouped, sum(amount_pico_aud / 1000000) AS cost FROM ${table} WHERE ${where}
         GROUP BY ${column} ORDER BY cost DESC, ${column} LIMIT ?`,
        ...values,
        selection.limit,
      )
      return rows.map((row) => String(row['grouped']))
    },
  }
}

function toSampled(row: Row): SampledRequest {
  return {
    model: String(row['model']),
    keyId: String(row['key_id']),
    outcome: String(row['outcome']) as Outcome,
    outputTokens: Number(row['output_tokens']),
    queueWaitMs: Number(row['queue_wait_ms']),
    firstTokenMs: row['first_token_ms'] === null ? null : Number(row['first_token_ms']),
    durationMs: Number(row['duration_ms']),
    settledAt: Number(row['settled_at']),
  }
}

/** `groups`: only these. */
function sumsOf(
  {
    workspaceId,
    from,
    to,
    groupBy,
    groups,
    ...selection
  }: Omit<TimeQuery, 'unit'> & { readonly groups?: readonly string[] },
  unit: TimeQuery['unit'],
  selectTexts: SqlDialect['selectTexts'],
) {
  const { table, time } = unit === 'hour' ? HOURS : DAYS
  const filter = usageFilter(selection)
  const isOfAny = workspaceId === undefined && (groups === undefined || groupBy === 'model')
  const conditions = [
    ...(workspaceId === undefined ? [] : ['workspace_id = ?']),
    ...(isOfAny ? [OF_ANY_WORKSPACE] : []),
    ...(groups === undefined ? [] : [`${COLUMN_OF[groupBy]} IN (${selectTexts('?')})`]),
    ...filter.conditions,
    `${time} >= ?`,
    `${time} < ?`,
    IS_VISIBLE,
  ]
  const given = [
    ...(workspaceId === undefined ? [] : [workspaceId]),
    ...(groups === undefined ? [] : [JSON.stringify(groups)]),
    ...filter.values,
  ]
  return { table, time, where: conditions.join(' AND '), values: [...given, from, to] }
}
