import { addUpRows } from '../src/ledger/queries/usage-sums.ts'
import { ROW_COLUMNS } from '../src/ledger/queries/ledger-rows.ts'

/**
 * A year of requests by 200 workspaces, 2,000 keys and 12 models, written into an empty database. 2 % of them failed. One
 * fortnight is made row by row; the others are copies of it, which takes far less time.
 */

/** Runs a statement, and returns its rows. */
export type Run = (sql: string) => Promise<readonly Record<string, unknown>[]>

export interface SearchFill {
  readonly run: Run
  /** Runs statements in any order, several at once if the database can. */
  readonly runAll: (statements: readonly string[]) => Promise<void>
  readonly rows: number
  /** The numbers from 0, as a table with the column n. */
  readonly numbers: (count: number) => string
  /** A request id that sorts as the number does. */
  readonly id: (number: string) => string
  /** Lists the indexes of the tables, each as how to remove it (`drop`) and how to make it again (`create`), in the order to make them in. */
  readonly indexes: string
}

export const START = Date.UTC(2025, 10, 18)
const FORTNIGHTS = 26
const FORTNIGHT_MS = 14 * 86_400_000
export const PERIOD_MS = FORTNIGHTS * FORTNIGHT_MS
const SHIFT_MS = 8 * 3_600_000
const WORKSPACES = 200
const KEYS_OF_EACH = 10
const MODELS = 11
/** Who sends the next request is drawn from so many lots. */
const LOTS = 8192
/** The rare key and the rare model have one request of so many. */
const RARE = 500_000

/** The tables to fill, each with its columns of time. */
const tables: readonly (readonly [table: string, times: readonly string[]])[] = [
  ['ledger', ['started_at', 'settled_at', 'settled_day']],
  ['usage_hours', ['hour']],
  ['usage_days', ['day']],
]

export async function fillSearch({ run, runAll, rows, numbers, id, indexes }: SearchFill): Promise<void> {
  const startedAtMs = performance.now()
  const log = (what: string): void => {
    const { user, system } = process.cpuUsage()
    const [passed, used] = [(performance.now() - startedAtMs) / 1000, (user + system) / 1e6]
    console.log(`${passed.toFixed(0)} s, ${used.toFixed(1)} s of CPU in this process: ${what}`)
  }
  const found = (await run(indexes)) as readonly Record<'drop' | 'create', string>[]
  // It takes far less time to make them over all rows.
  for (const { drop } of found) await run(drop)
  await drawLots(run)
  const count = Math.floor(rows / FORTNIGHTS)
  await run(firstFortnight(numbers(count), id('n'), Math.floor(FORTNIGHT_MS / count)))
  for (const { sql } of addUpRows) await run(sql)
  log('the first fortnight')
  for (const [table, times] of tables) {
    const columns = await columnsOf(run, table)
    await run(`CREATE TABLE first_${table} AS SELECT * FROM ${table}`)
    const copies = Array.from({ length: FORTNIGHTS - 1 }, (_, index) => {
      const values = columns.map((column) => {
        if (column === 'request_id') return id(`position + ${(index + 1) * count}`)
        return times.includes(column) ? `${column} + ${(index + 1) * FORTNIGHT_MS}` : column
      })
      return `INSERT INTO ${table} (${columns.join(', ')}) SELECT ${values.join(', ')} FROM first_${table}`
    })
    await runAll(copies)
    log(`the other fortnights of ${table}`)
    await run(`DROP TABLE first_${table}`)
  }
  await run('UPDATE usage_summed SET position = (SELECT max(position) FROM ledger)')
  await runAll(found.map(({ create }) => create))
  log(`${found.length} indexes`)
}

async function columnsOf(run: Run, table: string): Promise<readonly string[]> {
  if (table === 'ledger') return ROW_COLUMNS
  const [row = {}] = await run(`SELECT * FROM ${table} LIMIT 1`)
  return Object.keys(row)
}

/**
 * The busiest workspace first; the others send a half, a third, a quarter … of it. Three are busy all day, the others in
 * one of three shifts. Each key asks for one model.
 */
async function drawLots(run: Run): Promise<void> {
  await run('CREATE TEMPORARY TABLE lots (shift bigint, lot bigint, owner bigint, PRIMARY KEY (shift, lot))')
  for (let shift = 0; shift < 3; shift++) {
    const weights = Array.from({ length: WORKSPACES }, (_, rank) =>
      rank < 3 || rank % 3 === shift ? 1 / (rank + 1) : 0,
    )
    const all = weights.reduce((sum, weight) => sum + weight, 0)
    let passed = 0
    const values = weights.flatMap((weight, rank) => {
      const first = Math.round((passed / all) * LOTS)
      passed += weight
      const count = Math.round((passed / all) * LOTS) - first
      return Array.from({ length: count }, (_, index) => `(${shift}, ${first + index}, ${rank})`)
    })
    await run(`INSERT INTO lots VALUES ${values.join(', ')}`)
  }
}

/** Of 100 failures, 60 are errors of engines, 25 callers that left, 10 broken streams and 5 timeouts. Few have a rare code. */
function firstFortnight(numbers: string, id: string, msPerRow: number): string {
  const model = `'bench/model-' || CASE WHEN rare = 1 THEN '${MODELS}' ELSE CAST((owner * 7 + which) % ${MODELS} AS text) END`
  const ending = (broken: string, left: string, timeout: string, rare: string, error: string): string =>
    `CASE WHEN failure % 10000 = 77 THEN ${rare} WHEN failure % 100 < 10 THEN ${broken}
      WHEN failure % 100 < 35 THEN ${left} WHEN failure % 100 < 40 THEN ${timeout} ELSE ${error} END`
  const outcome = ending("'engine_broke'", "'caller_left'", "'engine_failed'", "'engine_failed'", "'engine_failed'")
  const code = ending("'upstream_error'", 'NULL', "'upstream_timeout'", "'model_unavailable'", "'upstream_error'")
  return `INSERT INTO ledger (request_id, workspace_id, key_id, model, lane, endpoint, price_version, max_tokens,
      started_at, input_tokens, cached_input_tokens, output_tokens, images, audio_ms, estimated, outcome, http_status,
      error_code, amount_pico_aud, queue_wait_ms, first_token_ms, duration_ms, settled_at, settled_day)
    SELECT ${id}, 'ws_' || owner, 'key_' || owner || '_' || CASE WHEN rare = 1 THEN 'rare' ELSE CAST(which AS text) END,
      ${model}, ${model}, '/chat/completions', 1, 1000, at - 500, 300, 0, 100, 0, 0, 0,
      CASE WHEN failure < 0 THEN 'completed' ELSE ${outcome} END,
      CASE WHEN failure < 0 THEN 200 ELSE ${ending('200', '499', '504', '503', '502')} END,
      CASE WHEN failure < 0 THEN NULL ELSE ${code} END, 120000000, 0, 40, 500, at, at - at % 86400000
    FROM (SELECT n, at, rare, CASE WHEN rare = 1 THEN 0 ELSE owner END AS owner, n / 50 % ${KEYS_OF_EACH} AS which,
        CASE WHEN n % 50 = 0 THEN n / 50 ELSE -1 END AS failure
      FROM (SELECT n, ${START} + n * ${msPerRow} AS at, CASE WHEN n % ${RARE} = 4321 THEN 1 ELSE 0 END AS rare
        FROM ${numbers}) AS given
      JOIN lots ON shift = at / ${SHIFT_MS} % 3 AND lot = n * 7907 % ${LOTS}) AS drawn`
}
