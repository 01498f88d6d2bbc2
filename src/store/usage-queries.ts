import type { Grouping, PricedSums, UsageSums } from '../core/money/usage-sums.ts'
import { sydneyDay } from '../core/money/sydney-time.ts'
import type { SumsQuery, UsageQuery, UsageStore } from '../ports/usage.ts'
import { ROW_COLUMNS, toLedgerRow, type Row, type Values } from './ledger-rows.ts'
import { APART, IS_REQUEST, SUMMED } from './schema.ts'

type Read = (sql: string, ...values: Values) => Promise<readonly Row[]>

const HOUR_MS = 3_600_000
const COUNTS = ['row_count', 'requests', 'estimated_requests'] as const
/** What a stretch of sums is told apart by. */
const GROUPABLE = ['workspace_id', 'model', 'key_id'] as const
const COLUMN_OF: Readonly<Record<Grouping, string>> = {
  workspace: 'workspace_id',
  model: 'model',
  key: 'key_id',
  day: 'day',
}

// Some ten million dollars are more than 64 bits of pico-AUD, so a sum of sums comes in two parts.
export const SUMS = [
  ...[...COUNTS, ...SUMMED.filter((column) => column !== 'amount_pico_aud')].map(
    (column) => `coalesce(sum(${column}), 0) AS ${column}`,
  ),
  'coalesce(sum(amount_pico_aud / 1000000000), 0) AS amount_high',
  'coalesce(sum(amount_pico_aud % 1000000000), 0) AS amount_low',
].join(', ')

/** What a row adds to the sums. */
const ROW_COUNTS = [
  '1 AS row_count',
  `(${IS_REQUEST}) AS requests`,
  `(${IS_REQUEST} AND estimated = 1) AS estimated_requests`,
].join(', ')

/** Rows of the ledger in the shape of the tables of sums. */
export const rowsAsSums = (columns: readonly string[], where: string): string =>
  `(SELECT ${[...columns, ...SUMMED].join(', ')}, ${ROW_COUNTS} FROM ledger WHERE ${where})`

/** Rows by their index, sums by the tables that are kept beside them. */
export function usageQueries(read: Read): UsageStore {
  return {
    async usage(query) {
      const { sql, values } = rowsQuery(query)
      return (await read(sql, ...values)).map(toLedgerRow)
    },
    async usageRow(requestId) {
      const [row] = await read(`SELECT ${ROW_COLUMNS} FROM ledger WHERE request_id = ?`, requestId)
      return row && toLedgerRow(row)
    },
    async usageSums(query) {
      const column = COLUMN_OF[query.groupBy]
      const { table, values } = sumsSource(query)
      const after = query.after === undefined ? '' : `WHERE ${column} > ?`
      const rows = await read(
        `SELECT ${column} AS grouped, ${SUMS} FROM ${table} ${after} GROUP BY ${column} ORDER BY ${column} LIMIT ?`,
        ...values,
        ...(query.after === undefined ? [] : [query.after]),
        query.limit,
      )
      return rows.map((row) => Object.assign(toSums(row), { group: groupOf(row['grouped']) }))
    },
    async usageTotal(query) {
      const { table, values } = sumsSource(query)
      const [row] = await read(`SELECT ${SUMS} FROM ${table}`, ...values)
      return toSums(row ?? {})
    },
    async pricedSums(workspaceId, from, to, creditNote) {
      const rows = await read(
        `SELECT model, price_version, ${SUMS} FROM usage_days
         WHERE workspace_id = ? AND day >= ? AND day < ? AND credit_note = ?
         GROUP BY model, price_version ORDER BY model, price_version`,
        workspaceId,
        from,
        to,
        creditNote,
      )
      return rows.map(toPricedSums)
    },
    async wrongSums(workspaceId) {
      const wrong = [
        ...(await read(
          differences('usage_hours', 'hour', 'settled_at - settled_at % 3600000'),
          workspaceId,
          workspaceId,
        )),
        ...(await read(differences('usage_days', 'day', 'settled_day'), workspaceId, workspaceId)),
      ]
      return wrong.map(
        (row) =>
          `${String(row['kept_in'])} ${APART.map((column) => String(row[column])).join(' ')} at ${Number(row['at'])}`,
      )
    },
  }
}

function rowsQuery(query: UsageQuery): { sql: string; values: Values } {
  const { workspaceId, from, to, limit, after, model, priceVersions, creditNote } = query
  const conditions = ['workspace_id = ?', 'settled_at < ?']
  const values: (string | number)[] = [workspaceId, to]
  if (after && after.settledAt >= from) {
    conditions.push('(settled_at, request_id) > (?, ?)')
    values.push(after.settledAt, after.requestId)
  } else {
    conditions.push('settled_at >= ?')
    values.push(from)
  }
  if (model !== undefined) {
    conditions.push('model = ?')
    values.push(model)
  }
  if (priceVersions !== undefined) {
    conditions.push(`price_version IN (${priceVersions.map(() => '?').join(', ')})`)
    values.push(...priceVersions)
  }
  if (creditNote !== undefined) {
    conditions.push('credit_note = ?')
    values.push(creditNote)
  }
  const sql = `SELECT ${ROW_COLUMNS} FROM ledger WHERE ${conditions.join(' AND ')} ORDER BY settled_at, request_id LIMIT ?`
  return { sql, values: [...values, limit] }
}

/** Whole days come from the sums by day, of which there are fewer; only what is left at the ends from those by hour. */
function sumsSource({ workspaceId, from, to, creditNote }: Omit<SumsQuery, 'groupBy' | 'limit' | 'after'>): {
  table: string
  values: Values
} {
  const where = [
    ...(workspaceId === undefined ? [] : ['workspace_id = ?']),
    ...(creditNote === undefined ? [] : ["credit_note = ''"]),
  ]
  const firstDay = isMidnight(from) ? from : sydneyDay(sydneyDay(from) + 26 * HOUR_MS)
  const lastDay = isMidnight(to) ? to : sydneyDay(to)
  const hours = (start: number, end: number): Stretch => ({ table: 'usage_hours', time: 'hour', start, end })
  const stretches: readonly Stretch[] =
    firstDay >= lastDay
      ? [hours(from, to)]
      : [hours(from, firstDay), { table: 'usage_days', time: 'day', start: firstDay, end: lastDay }, hours(lastDay, to)]
  const used = stretches.filter(({ start, end }) => start < end || stretches.length === 1)
  const parts = used.map(
    ({ table, time }) =>
      `SELECT ${GROUPABLE.join(', ')}, ${time} AS day, ${[...COUNTS, ...SUMMED].join(', ')} FROM ${table}
       WHERE ${[...where, `${time} >= ?`, `${time} < ?`].join(' AND ')}`,
  )
  return {
    table: `(${parts.join(' UNION ALL ')}) AS used`,
    values: used.flatMap(({ start, end }) => [...(workspaceId === undefined ? [] : [workspaceId]), start, end]),
  }
}

interface Stretch {
  readonly table: string
  readonly time: string
  readonly start: number
  readonly end: number
}

/** From the beginning, and without an end, are whole days too. */
function isMidnight(at: number): boolean {
  return at === 0 || at === Number.MAX_SAFE_INTEGER || (at % HOUR_MS === 0 && sydneyDay(at) === at)
}

function groupOf(value: unknown): string | number {
  return typeof value === 'bigint' ? Number(value) : String(value)
}

export function toPricedSums(row: Row): PricedSums {
  return { model: String(row['model']), priceVersion: Number(row['price_version']), ...toSums(row) }
}

function toSums(row: Row): UsageSums {
  const sum = (column: string): bigint => (row[column] ?? 0n) as bigint
  return {
    rows: Number(sum('row_count')),
    requests: Number(sum('requests')),
    estimatedRequests: Number(sum('estimated_requests')),
    inputTokens: sum('input_tokens'),
    cachedInputTokens: sum('cached_input_tokens'),
    outputTokens: sum('output_tokens'),
    images: sum('images'),
    audioMs: sum('audio_ms'),
    capacityMs: sum('capacity_ms'),
    amount: sum('amount_high') * 1_000_000_000n + sum('amount_low'),
  }
}

/**
 * Where the sums that are kept are not those of the rows: each less the other is nothing. In one statement, so
 * that rows may come meanwhile.
 */
function differences(table: string, time: string, timeOfRow: string): string {
  const summed = [...COUNTS, ...SUMMED]
  const apart = [...APART, time].join(', ')
  const found = rowsAsSums([...APART, `${timeOfRow} AS ${time}`], 'workspace_id = ?')
  return `SELECT '${table}' AS kept_in, ${APART.join(', ')}, ${time} AS at FROM (
      SELECT ${apart}, ${summed.join(', ')} FROM ${table} WHERE workspace_id = ?
      UNION ALL SELECT ${apart}, ${summed.map((column) => `-${column}`).join(', ')} FROM ${found} AS found
    ) AS both_sides GROUP BY ${apart}
    HAVING ${summed.map((column) => `sum(${column}) <> 0`).join(' OR ')} LIMIT 100`
}
