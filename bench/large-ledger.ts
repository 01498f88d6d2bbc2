import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { sydneyDay } from '../src/shared/money/sydney-time.ts'
import { addUpRows } from '../src/ledger/queries/usage-sums.ts'

/**
 * A year of a busy service, written straight into the database of one that is stopped. The rows are like those that the
 * service writes, with the same sums beside them. 50 million take some twenty minutes and 25 GB.
 */
export interface LargeLedger {
  readonly rows: number
  /** Who sends the requests, the busiest workspace first. The others follow with a half, a third, a quarter … of it. */
  readonly workspaces: readonly { readonly id: string; readonly keyIds: readonly string[] }[]
  readonly models: readonly string[]
  /** Of the busiest workspace: a key that sends one request a week, to a model that no other key there uses. */
  readonly seldomKeyId: string
  readonly end: number
}

const DAY_MS = 86_400_000
const DAYS = 365
/** Who sends the next request is drawn from so many lots. */
const LOTS = 8192
const SELDOM = 53
const MODELS_OF_A_KEY = 3
const DAYS_IN_A_TRANSACTION = 7
const AUDIT_ENTRIES = 100_000

export function fillLedger(dataDir: string, ledger: LargeLedger): void {
  const database = new DatabaseSync(join(dataDir, 'weir.db'))
  // The file is disposable if this is interrupted.
  database.exec('PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF')
  database.exec('PRAGMA cache_size = -1000000; PRAGMA foreign_keys = ON')
  drawLots(database, ledger)
  database.exec('BEGIN')
  const insert = database.prepare(INSERT)
  const addUp = addUpRows.map(({ sql }) => database.prepare(sql))
  const seldom = Math.max(2, Math.floor(ledger.rows / SELDOM))
  const first = sydneyDay(ledger.end - DAYS * DAY_MS)
  let from = 0
  for (let day = first, days = 1; day < ledger.end; day = sydneyDay(day + DAY_MS * 1.1), days++) {
    const end = Math.min(sydneyDay(day + DAY_MS * 1.1), ledger.end)
    const to = Math.round((ledger.rows * (end - first)) / (ledger.end - first))
    if (to > from) insert.run({ from, to, day, ms_per_row: (end - day) / (to - from), lots: LOTS, seldom })
    from = to
    if (days % DAYS_IN_A_TRANSACTION > 0 && end < ledger.end) continue
    for (const statement of addUp) statement.run()
    database.exec('COMMIT; BEGIN')
    process.stdout.write(`\r${from.toLocaleString('en-AU')} rows written`)
  }
  database.prepare(AUDIT).run({ entries: AUDIT_ENTRIES, since: first, step: (ledger.end - first) / AUDIT_ENTRIES })
  database.exec('COMMIT')
  database.close()
  process.stdout.write('\n')
}

/** Each key asks for a few models. */
function drawLots(database: DatabaseSync, { workspaces, models, seldomKeyId }: LargeLedger): void {
  database.exec(`CREATE TEMP TABLE lots
    (lot INTEGER PRIMARY KEY, workspace_id TEXT, key_id TEXT, model TEXT, price_version INTEGER)`)
  const insert = database.prepare(`INSERT INTO lots SELECT ?, ?, ?, model, max(id) FROM price_versions WHERE model = ?`)
  const weights = workspaces.map((_, rank) => 1 / (rank + 1))
  const all = weights.reduce((sum, weight) => sum + weight, 0)
  let passed = 0
  workspaces.forEach(({ id, keyIds }, rank) => {
    const first = Math.round((passed / all) * LOTS)
    passed += weights[rank] ?? 0
    for (let lot = first; lot < Math.round((passed / all) * LOTS); lot++) {
      const key = (lot - first) % keyIds.length
      const model = (rank * 2 + key + (Math.floor((lot - first) / keyIds.length) % MODELS_OF_A_KEY)) % models.length
      insert.run(lot, id, keyIds[key] ?? '', models[model] ?? '')
    }
  })
  insert.run(LOTS, workspaces[0]?.id ?? '', seldomKeyId, models.at(-1) ?? '')
}

/** Every request costs what bench/weir-process.ts asks for its tokens. */
const INSERT = `
  WITH RECURSIVE numbers (n) AS (SELECT :from UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < :to),
  sizes AS (
    SELECT n, 100 + n * 7919 % 1900 AS input, 20 + n * 104729 % 480 AS output, 300 + n * 1299709 % 4000 AS took,
      CAST(:day + (n - :from) * :ms_per_row AS INTEGER) AS settled_at
    FROM numbers
  )
  INSERT INTO ledger (request_id, workspace_id, key_id, model, lane, endpoint, price_version, max_tokens, started_at,
    input_tokens, cached_input_tokens, output_tokens, images, audio_ms, estimated, outcome, amount_pico_aud,
    queue_wait_ms, first_token_ms, duration_ms, settled_at, settled_day)
  SELECT printf('%09x%023x', settled_at / 1000, n), workspace_id, key_id, model, model, '/chat/completions',
    price_version, 1000, settled_at - took, input, 0, output, 0, 0, 0,
    iif(n % 97 = 0, 'engine_failed', 'completed'), input * 200000 + output * 600000,
    iif(n % 9 = 0, n % 2000, 0), 40 + n % 300, took, settled_at, :day
  FROM sizes
  JOIN lots ON lot = iif(n % :seldom = 1, :lots, n * 7907 % :lots)`

const AUDIT = `
  WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < :entries)
  INSERT INTO audit_log (at, actor, request_id, action, subject, request, before, after, outcome)
  SELECT CAST(:since + n * :step AS INTEGER), 'token from 127.0.0.1', printf('%032x', n), 'changeWorkspace',
    'workspace-' || n % 40, '{"spend_limit":"250.00"}', '{"spend_limit":null}', '{"spend_limit":"250.00"}', 'done'
  FROM numbers`
