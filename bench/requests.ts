/**
 * How long the search for requests takes over a year of requests by 200 workspaces, 2,000 keys and 12 models: every
 * combination of its filters, on SQLite and on PostgreSQL. ms of 20 pages from all over the year; and of one more, after the
 * system has forgotten the files. It starts its own PostgreSQL on loopback.
 *
 * npm run bench -- requests [ROWS] [DATABASE]: two million rows by default. 50 million take 30 GB and some ten minutes for
 * each database. A folder or a postgres:// address names the only database to measure: it is filled if it is new, and kept.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Client } from 'pg'
import { recentRequests } from '../src/billing/usage/queries/recent-requests.ts'
import { refusalQueries } from '../src/billing/refused-requests/refusal-queries.ts'
import { usageQueries } from '../src/billing/usage/queries/usage.ts'
import type { RecentQuery, RowPlace } from '../src/billing/usage/report-store.ts'
import type { Database } from '../src/store/database.ts'
import { openPostgres } from '../src/store/postgres/client.ts'
import { openSqliteHere } from '../src/store/sqlite/in-this-thread.ts'
import { startPostgres } from '../test/support/postgres-server.ts'
import { figure } from './figures.ts'
import { fillSearch, PERIOD_MS, START } from './large-search.ts'
import { median } from './measuring.ts'

const rows = Number(process.argv[2] ?? 2_000_000)
const given = process.argv[3]
const TIMES = 20
const HOUR_MS = 3_600_000

interface Measured {
  readonly name: 'SQLite' | 'PostgreSQL'
  open(): Promise<Database>
  /** The files that the database reads. */
  files(): readonly string[]
}

/** The workspace has a fifth of the requests. */
const whose: Readonly<Record<string, Partial<RecentQuery>>> = {
  'all workspaces': {},
  'a workspace': { workspaceId: 'ws_0' },
  'a small workspace': { workspaceId: 'ws_190' },
  'a key': { workspaceId: 'ws_0', keyId: 'key_0_3' },
  'a rare key': { workspaceId: 'ws_0', keyId: 'key_0_rare' },
}
/** Any, a common one, a rare one, and one that has none. */
const models: readonly Partial<RecentQuery>[] = [
  {},
  { model: 'bench/model-10' },
  { model: 'bench/model-11' },
  { model: 'none' },
]
const endings: Readonly<Record<string, Partial<RecentQuery>>> = {
  'any outcome': {},
  completed: { outcome: 'completed' },
  failed: { outcome: 'failed' },
  'caller left': { outcome: 'caller_left' },
  'status 200': { httpStatus: 200 },
  'status 502': { httpStatus: 502 },
  'status 503, rare': { httpStatus: 503 },
  'an error code': { errorCode: 'upstream_error' },
  'a rare error code': { errorCode: 'model_unavailable' },
  'a code and a status': { errorCode: 'upstream_error', httpStatus: 200 },
}

if (given === undefined) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-bench-'))
  try {
    await measure(await sqlite(folder))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  const server = await startPostgres()
  try {
    await measure(await postgres(await server.createDatabase()))
  } finally {
    await server.remove()
  }
} else {
  await measure(given.startsWith('postgres:') ? await postgres(given) : await sqlite(given))
}

async function sqlite(dataDir: string): Promise<Measured> {
  const file = join(dataDir, 'weir.db')
  if (!existsSync(file)) {
    mkdirSync(dataDir, { recursive: true })
    await openSqliteHere({ dataDir, exclusive: false }).close()
    const filled = new DatabaseSync(file)
    // The file is disposable if this is interrupted.
    filled.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -1500000')
    await fillSearch({
      rows,
      run: async (sql) => filled.prepare(sql).all(),
      numbers: (count) =>
        `(WITH RECURSIVE series (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM series WHERE n + 1 < ${count}) SELECT n FROM series)`,
      id: (number) => `printf('%032x', ${number})`,
      indexes: `SELECT name, 'DROP INDEX ' || name AS "drop", sql AS "create" FROM sqlite_master
        WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN ('ledger', 'usage_hours', 'usage_days')`,
    })
    filled.exec('PRAGMA journal_mode = WAL')
    filled.close()
  }
  return { name: 'SQLite', open: async () => openSqliteHere({ dataDir, exclusive: false }), files: () => [file] }
}

async function postgres(url: string): Promise<Measured> {
  await (await openPostgres({ url, connectionsMax: 1 })).close()
  const client = new Client({ connectionString: url })
  await client.connect()
  const run = async (sql: string): Promise<Record<string, unknown>[]> => (await client.query(sql)).rows
  if ((await run('SELECT 1 FROM ledger LIMIT 1')).length === 0) {
    await run("SET maintenance_work_mem = '1GB'")
    await run('SET synchronous_commit = off')
    await fillSearch({
      rows,
      run,
      numbers: (count) => `generate_series(0::bigint, ${count}::bigint - 1) AS series (n)`,
      id: (number) => `lpad(to_hex(${number}), 32, '0')`,
      indexes: `SELECT indexname AS name, 'DROP INDEX ' || indexname AS "drop", indexdef AS "create" FROM pg_indexes
        WHERE schemaname = 'public' AND tablename IN ('ledger', 'usage_hours', 'usage_days')
          AND indexdef NOT LIKE '%UNIQUE%'`,
    })
    await run('VACUUM ANALYZE')
  }
  const [{ data_directory: folder } = {}] = await run('SHOW data_directory')
  await client.end()
  const files = (): readonly string[] => {
    const entries = readdirSync(join(String(folder), 'base'), { recursive: true, withFileTypes: true })
    return entries.filter((it) => it.isFile()).map((it) => join(it.parentPath, it.name))
  }
  return { name: 'PostgreSQL', open: () => openPostgres({ url, connectionsMax: 1 }), files }
}

async function measure(measured: Measured): Promise<void> {
  console.log(
    `\n${measured.name}, ${rows.toLocaleString('en-AU')} rows; ms of a page: median, worst, cold; CPU of the service`,
  )
  for (const [who, filter] of Object.entries(whose)) {
    for (const [how, ending] of Object.entries(endings)) {
      const median: number[] = []
      const worst: number[] = []
      const cold: number[] = []
      const cpu: number[] = []
      for (const model of models) {
        for (const isPeriod of [false, true]) {
          const seen = await timesOf(measured, (database, { settledAt, requestId }) =>
            recentRequests(database, {
              workspaceId: undefined,
              limit: 25,
              ...(isPeriod
                ? { from: settledAt - 2 * HOUR_MS, to: settledAt }
                : { from: 0, to: 1e13, before: { settledAt, requestId } }),
              ...filter,
              ...ending,
              ...model,
            }),
          )
          median.push(seen.median)
          worst.push(seen.worst)
          cold.push(seen.cold)
          cpu.push(seen.cpu)
        }
      }
      show(`${measured.name}.${who}: ${how}`, { median, worst, cold, cpu })
    }
  }
  const one = await timesOf(measured, (database, { requestId }) => usageQueries(database).usageRow(requestId))
  show(`${measured.name}.one by its id`, listed(one))
  const refused = await timesOf(measured, (database, { requestId }) =>
    refusalQueries(database).refusedRequest(requestId),
  )
  show(`${measured.name}.one that was refused`, listed(refused))
}

type Seen = Readonly<Record<'median' | 'worst' | 'cold' | 'cpu', number>>

function listed({ median, worst, cold, cpu }: Seen): Readonly<Record<keyof Seen, readonly number[]>> {
  return { median: [median], worst: [worst], cold: [cold], cpu: [cpu] }
}

/** The slowest model and period of each. */
function show(name: string, seen: Readonly<Record<keyof Seen, readonly number[]>>): void {
  const shown = Object.fromEntries(Object.entries(seen).map(([which, values]) => [which, Math.max(...values)]))
  for (const [which, ms] of Object.entries(shown)) figure(`${name}.${which}`, { unit: 'ms', digits: 0 }, [ms])
  const cells = Object.values(shown).map((ms) => ms.toFixed(1).padStart(9))
  console.log((name.split('.')[1] ?? '').padEnd(44) + cells.join(''))
}

async function timesOf(
  { open, files }: Measured,
  page: (database: Database, place: RowPlace) => Promise<unknown>,
): Promise<Seen> {
  const placeAt = (count: number): RowPlace => ({
    settledAt: START + Math.round(PERIOD_MS * ((count * 0.37 + 0.13) % 1)),
    requestId: Math.floor(rows * ((count * 0.37 + 0.13) % 1))
      .toString(16)
      .padStart(32, '0'),
  })
  const database = await open()
  try {
    // Connects, and reads the schema.
    await usageQueries(database).usageRow('none')
    for (const file of files()) {
      execFileSync('dd', [`of=${file}`, 'oflag=nocache', 'conv=notrunc', 'count=0', 'status=none'])
    }
    const cold = await timed(() => page(database, placeAt(TIMES)))
    await page(database, placeAt(0))
    const seen: number[] = []
    const before = process.cpuUsage()
    for (let count = 0; count < TIMES; count++) seen.push(await timed(() => page(database, placeAt(count))))
    const { user, system } = process.cpuUsage(before)
    return { median: median(seen), worst: Math.max(...seen), cold, cpu: (user + system) / 1000 / TIMES }
  } finally {
    await database.close()
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAtMs = performance.now()
  await work()
  return performance.now() - startedAtMs
}
