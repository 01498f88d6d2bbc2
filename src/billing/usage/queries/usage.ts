import { CREDIT } from '../../../ledger/rows.ts'
import { sydneyDay } from '../../../shared/money/sydney-time.ts'
import type { Grouping, PricedSums, UsageSums } from '../usage-sums.ts'
import type { SumsQuery, UsageStore } from '../usage-store.ts'
import { readRows, type Database, type Row, type Values } from '../../../store/database.ts'
import type { SqlDialect } from '../../../store/fragments.ts'
import { ROW_COLUMNS, toLedgerRow } from '../../../ledger/queries/ledger-rows.ts'
import { usageRows } from './usage-rows.ts'
import {
  COUNTS,
  DAYS,
  FIGURES,
  HOURS,
  IS_REQUEST,
  IS_VISIBLE,
  OF_ANY_WORKSPACE,
  SUM_KEYS,
  TIER,
  type SumsTable,
} from '../../../ledger/queries/usage-sums.ts'

const HOUR_MS = 3_600_000
const COLUMN_OF: Readonly<Record<Grouping, string>> = {
  workspace: 'workspace_id',
  model: 'model',
  key: 'key_id',
  day: 'day',
  service_tier: 'tier',
}

/** Rows are read from the ledger by its index, sums from the tables that are kept next to it. */
export function usageQueries(database: Database): UsageStore {
  const sums = sumColumns(database.dialect)
  const { selectTexts } = database.dialect

  /** Every day in Sydney on which the workspace has rows or sums. */
  async function* daysOf(workspaceId: string): AsyncGenerator<{ readonly from: number; readonly to: number }> {
    for (let from = 0; ;) {
      const [row] = await readRows(database, NEXT_TIME, workspaceId, from, workspaceId, from, workspaceId, from)
      if (!row || row['at'] === null) return
      const day = sydneyDay(Number(row['at']))
      const to = nextDay(day)
      yield { from: day, to }
      from = to
    }
  }

  return {
    usage: (selection) => usageRows(database, selection),
    async usageRow(requestId) {
      const [row] = await readRows(
        database,
        `SELECT ${ROW_COLUMNS.join(', ')} FROM ledger WHERE request_id = ? AND ${IS_VISIBLE}`,
        requestId,
      )
      return row && toLedgerRow(row)
    },
    async usageRows(requestIds) {
      const rows = await readRows(
        database,
        `SELECT ${ROW_COLUMNS.join(', ')} FROM ledger
         WHERE request_id IN (${selectTexts('?')}) AND ${IS_VISIBLE}`,
        JSON.stringify(requestIds),
      )
      return rows.map(toLedgerRow)
    },
    async usageSums(selection) {
      const column = COLUMN_OF[selection.groupBy]
      const { table, values } = sumsSource(selection, database.dialect)
      const after = selection.after === undefined ? '' : `WHERE ${column} > ?`
      const rows = await readRows(
        database,
        `SELECT ${column} AS grouped, ${sums} FROM ${table} ${after} GROUP BY ${column} ORDER BY ${column} LIMIT ?`,
        ...values,
        ...(selection.after === undefined ? [] : [selection.after]),
        selection.limit,
      )
      return rows.map((row) => Object.assign(toSums(row), { group: groupOf(row['grouped']) }))
    },
    async usageTotal(selection) {
      const { table, values } = sumsSource(selection, database.dialect)
      const [row] = await readRows(database, `SELECT ${sums} FROM ${table}`, ...values)
      return toSums(row ?? {})
    },
    async pricedSums(workspaceId, from, to, creditNote) {
      const rows = await readRows(
        database,
        `SELECT model, price_version, ${sums} FROM usage_days
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
      const wrong: Row[] = []
      for await (const { from, to } of daysOf(workspaceId)) {
        const values = [workspaceId, from, to]
        for (const table of [HOURS, DAYS]) {
          wrong.push(...(await readRows(database, differences(table), ...values, ...values)))
        }
        if (wrong.length >= MAX_WRONG) break
      }
      return wrong.map(
        (row) =>
          `${String(row['kept_in'])} ${SUM_KEYS.map((column) => String(row[column])).join(' ')} at ${Number(row['at'])}`,
      )
    },
  }
}

const PLAIN_SUMS = [...COUNTS, ...FIGURES.filter((column) => column !== 'amount_pico_aud')]
/** What `sumColumns` selects. */
export const SUM_NAMES = [...PLAIN_SUMS, 'amount_high', 'amount_low']

/** A select list of all sums over a table of sums. */
export function sumColumns({ sumOfAmounts }: SqlDialect): string {
  const plain = PLAIN_SUMS.map((column) => `coalesce(sum(${column}), 0) AS ${column}`)
  return [...plain, sumOfAmounts('amount_pico_aud')].join(', ')
}

/** Rows of the ledger in the shape of a table of sums. */
export function rowsAsSums(columns: readonly string[], where: string, name: string): string {
  const counts = [
    '1 AS row_count',
    `CASE WHEN ${IS_REQUEST} THEN 1 ELSE 0 END AS requests`,
    `CASE WHEN ${IS_REQUEST} AND estimated = 1 THEN 1 ELSE 0 END AS estimated_requests`,
  ]
  return `(SELECT ${[...columns, ...FIGURES, ...counts].join(', ')} FROM ledger WHERE ${where}) AS ${name}`
}

/** A part of a period, and the table of sums that covers it. */
interface CoveredPeriod {
  readonly sums: SumsTable
  readonly from: number
  readonly to: number
}

/** Whole days come from the sums by day, since there are fewer; hours are only needed at the two ends. */
function sumsSource(
  { workspaceId, keyIds, from, to, creditNote, withoutCredits = false }: Omit<SumsQuery, 'groupBy' | 'limit' | 'after'>,
  { selectTexts }: SqlDialect,
): { table: string; values: Values } {
  const conditions = [
    ...(workspaceId !== undefined ? ['workspace_id = ?'] : keyIds === undefined ? [OF_ANY_WORKSPACE] : []),
    ...(keyIds === undefined ? [] : [`key_id IN (${selectTexts('?')})`]),
    creditNote === undefined ? IS_VISIBLE : "credit_note = ''",
    ...(withoutCredits ? [`model <> '${CREDIT}'`] : []),
  ]
  const periods = coveredPeriods(from, to)
  const parts = periods.map(
    ({ sums: { table, time } }) =>
      `SELECT workspace_id, model, key_id, ${TIER} AS tier, ${time} AS day, ${[...COUNTS, ...FIGURES].join(', ')} FROM ${table}
       WHERE ${[...conditions, `${time} >= ?`, `${time} < ?`].join(' AND ')}`,
  )
  const given = [...(workspaceId === undefined ? [] : [workspaceId]), ...(keyIds ? [JSON.stringify(keyIds)] : [])]
  return {
    table: `(${parts.join(' UNION ALL ')}) AS used`,
    values: periods.flatMap((it) => [...given, it.from, it.to]),
  }
}

function coveredPeriods(from: number, to: number): readonly CoveredPeriod[] {
  const firstDay = isMidnight(from) ? from : nextDay(sydneyDay(from))
  const lastDay = isMidnight(to) ? to : sydneyDay(to)
  if (firstDay >= lastDay) return [{ sums: HOURS, from, to }]
  const periods = [
    { sums: HOURS, from, to: firstDay },
    { sums: DAYS, from: firstDay, to: lastDay },
    { sums: HOURS, from: lastDay, to },
  ]
  return periods.filter((it) => it.from < it.to)
}

/** A day has 23 to 25 hours. */
function nextDay(day: number): number {
  return sydneyDay(day + 26 * HOUR_MS)
}

/** The beginning and the end of time count as midnight too. */
function isMidnight(at: number): boolean {
  return at === 0 || at === Number.MAX_SAFE_INTEGER || (at % HOUR_MS === 0 && sydneyDay(at) === at)
}

function groupOf(value: unknown): string | number {
  return typeof value === 'bigint' ? Number(value) : String(value)
}

export function toPricedSums(row: Row): PricedSums {
  return { model: String(row['model']), priceVersion: Number(row['price_version']), ...toSums(row) }
}

export function toSums(row: Row): UsageSums {
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

const MAX_WRONG = 100

/** The earliest time with something to check. */
const NEXT_TIME = `SELECT min(at) AS at FROM (
    SELECT min(settled_at) AS at FROM ledger WHERE workspace_id = ? AND settled_at >= ?
    UNION ALL SELECT min(hour) FROM usage_hours WHERE workspace_id = ? AND hour >= ?
    UNION ALL SELECT min(day) FROM usage_days WHERE workspace_id = ? AND day >= ?
  ) AS times`

/**
 * The keys whose stored sums in a period differ from their rows: sums minus rows should be zero. One statement, so that
 * rows may be added at the same time.
 */
function differences({ table, time, timeOfRow }: SumsTable): string {
  const summed = [...COUNTS, ...FIGURES]
  const keys = [...SUM_KEYS, time].join(', ')
  const inPeriod = 'workspace_id = ? AND settled_at >= ? AND settled_at < ?'
  const rows = rowsAsSums([...SUM_KEYS, `${timeOfRow} AS ${time}`], inPeriod, 'found')
  return `SELECT '${table}' AS kept_in, ${SUM_KEYS.join(', ')}, ${time} AS at FROM (
      SELECT ${keys}, ${summed.join(', ')} FROM ${table} WHERE workspace_id = ? AND ${time} >= ? AND ${time} < ?
      UNION ALL SELECT ${keys}, ${summed.map((column) => `-${column}`).join(', ')} FROM ${rows}
    ) AS both_sides GROUP BY ${keys}
    HAVING ${summed.map((column) => `sum(${column}) <> 0`).join(' OR ')} LIMIT ${MAX_WRONG}`
}
