/**
 * How long the API takes for a page of usage over a large ledger: five workspaces, a year, ten models. It writes the
 * rows into the database of a running service; 50 million rows take some ten minutes and 20 GB.
 */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Pool } from 'undici'
import { addUpRows } from '../src/store/queries/usage-sums.ts'
import { benchModel, startWeir } from './weir-process.ts'

const rows = Number(process.argv[2] ?? 1_000_000)
const TIMES = 20
const BATCH = 500_000
const YEAR_MS = 365 * 86_400_000

const weir = await startWeir({
  models: [benchModel('http://127.0.0.1:9/v1', { token_budget: 1000, max_concurrent_requests: 1 })],
})
try {
  // Sums are kept by the hour.
  const end = Math.floor(Date.now() / 3_600_000) * 3_600_000
  fill(weir.dataDir, end)
  const pool = new Pool(weir.origin, { connections: 1 })
  const day = (daysBack: number): string => new Date(end - daysBack * 86_400_000).toISOString()
  const pages: readonly [string, string][] = [
    ['the latest 100 rows', `from=${day(1)}&limit=100`],
    ['a month by model', `from=${day(30)}&group_by=model`],
    ['a month by day', `from=${day(30).slice(0, 10)}&group_by=day&limit=100`],
    ['the year by model', `from=${day(365)}&group_by=model`],
    ['the year by key', `from=${day(365)}&group_by=key`],
  ]
  console.log(`\n${rows.toLocaleString('en-AU')} rows; ms of ${TIMES} calls: median, slowest`)
  for (const [name, query] of pages) {
    const times: number[] = []
    for (let call = 0; call < TIMES; call++) times.push(await timeOf(pool, query))
    times.sort((one, other) => one - other)
    const figures = [times[TIMES / 2], times.at(-1)].map((ms) => ms?.toFixed(1).padStart(9)).join('')
    console.log(name.padEnd(24) + figures)
  }
  await pool.close()
} finally {
  await weir.stop()
}

async function timeOf(pool: Pool, query: string): Promise<number> {
  const startedAtMs = performance.now()
  const headers = { authorization: `Bearer ${weir.key}` }
  const response = await pool.request({ method: 'GET', path: `/api/v1/usage?${query}`, headers })
  const text = await response.body.text()
  if (response.statusCode !== 200) throw new Error(text)
  return performance.now() - startedAtMs
}

/** Every fifth row belongs to the workspace whose key the bench uses. */
function fill(dataDir: string, end: number): void {
  const database = new DatabaseSync(join(dataDir, 'weir.db'))
  database.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -500000')
  const own = String(database.prepare('SELECT id FROM workspaces').get()?.['id'])
  const insert = database.prepare(`
    WITH RECURSIVE series (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM series WHERE n + 1 < ?2)
    INSERT INTO ledger (request_id, workspace_id, key_id, model, lane, endpoint, price_version, max_tokens, started_at,
      input_tokens, cached_input_tokens, output_tokens, images, audio_ms, estimated, outcome, amount_pico_aud,
      queue_wait_ms, first_token_ms, duration_ms, settled_at, settled_day)
    SELECT printf('%032d', n), iif(n % 5 = 0, ?3, 'workspace-' || (n % 5)), 'key-' || (n % 15), 'bench/model-' || (n / 5 % 10),
      'bench/model-' || (n / 5 % 10), '/chat/completions', 1, 1000, CAST(?4 + n * ?5 AS INTEGER), 200 + n % 100, 0, 60 + n % 10, 0, 0, 0,
      'completed', 80000000, 3, 40, 900, CAST(?4 + n * ?5 AS INTEGER), CAST((?4 + n * ?5) / 86400000 AS INTEGER) * 86400000
    FROM series`)
  const addUp = addUpRows.map(({ sql }) => database.prepare(sql))
  for (let from = 0; from < rows; from += BATCH) {
    database.exec('BEGIN')
    insert.run(from, Math.min(from + BATCH, rows), own, end - YEAR_MS, YEAR_MS / rows)
    for (const statement of addUp) statement.run()
    database.exec('COMMIT')
    process.stdout.write(`\r${Math.min(from + BATCH, rows).toLocaleString('en-AU')} rows written`)
  }
  database.close()
}
