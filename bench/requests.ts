/**
 * What a page of the consoles' search for requests costs, over a tenth of the rows and over all of them, with SQLite and
 * with PostgreSQL: ms of CPU time in the service and the database, the mean of 100 pages from all over 30 days. Each table
 * should be flat. It starts its own PostgreSQL on loopback.
 *
 * npm run bench -- requests [ROWS]: two million rows by default, which take 3 GB while it runs.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { recentRequests } from '../src/billing/usage/queries/recent-requests.ts'
import { refusalQueries } from '../src/billing/refused-requests/refusal-queries.ts'
import { usageQueries } from '../src/billing/usage/queries/usage.ts'
import type { RecentQuery } from '../src/billing/usage/report-store.ts'
import { addingRows } from '../src/ledger/queries/usage-sums.ts'
import { command, writeOne, type Database } from '../src/store/database.ts'
import { openPostgres } from '../src/store/postgres/client.ts'
import { openSqliteHere } from '../src/store/sqlite/in-this-thread.ts'
import { startPostgres } from '../test/support/postgres-server.ts'
import { figure } from './figures.ts'
import { childrenOf, cpuMicroseconds } from './measuring.ts'

const most = Number(process.argv[2] ?? 2_000_000)
const TIMES = 100
const BATCH = 100_000
const START = Date.UTC(2026, 9, 1)
const PERIOD_MS = 30 * 86_400_000

interface Opened {
  readonly database: Database
  /** µs of CPU time outside this process. */
  cpu(): number
  close(): Promise<void>
}

interface Kind {
  readonly name: string
  /** The numbers from one to another, as a table with the column n. */
  readonly numbers: string
  readonly id: string
  open(): Promise<Opened>
}

const kinds: readonly Kind[] = [
  {
    name: 'SQLite',
    numbers: `(WITH RECURSIVE series (n) AS (SELECT ? UNION ALL SELECT n + 1 FROM series WHERE n + 1 < ?) SELECT n FROM series)`,
    id: `printf('%032x', n)`,
    async open() {
      const dataDir = mkdtempSync(join(tmpdir(), 'weir-bench-'))
      const database = openSqliteHere({ dataDir, exclusive: false })
      const close = async (): Promise<void> => {
        await database.close()
        rmSync(dataDir, { recursive: true, force: true })
      }
      return { database, cpu: () => 0, close }
    },
  },
  {
    name: 'PostgreSQL',
    numbers: 'generate_series(?::bigint, ?::bigint - 1) AS series (n)',
    id: `lpad(to_hex(n), 32, '0')`,
    async open() {
      const server = await startPostgres()
      const database = await openPostgres({ url: await server.createDatabase(), connectionsMax: 1 })
      const close = async (): Promise<void> => {
        await database.close()
        await server.remove()
      }
      const cpu = (): number => childrenOf(server.pid).reduce((sum, child) => sum + cpuMicroseconds(child), 0)
      return { database, cpu, close }
    },
  },
]

/** A quarter of the requests are of one workspace. One in 97 fails, and one failure in 1,000 has a rare code. */
const lists: Readonly<Record<string, Partial<RecentQuery>>> = {
  'of a workspace': { workspaceId: 'ws_0' },
  'of a key': { workspaceId: 'ws_0', keyId: 'key_0_3' },
  'of a model': { workspaceId: 'ws_0', model: 'bench/model-4' },
  'of a model that has none': { workspaceId: 'ws_0', model: 'none' },
  'of a workspace that failed': { workspaceId: 'ws_0', onlyFailed: true },
  'of a workspace with a rare code': { workspaceId: 'ws_0', errorCode: 'upstream_timeout' },
  'of a key with a status': { workspaceId: 'ws_0', keyId: 'key_0_3', httpStatus: 502 },
  'of all that failed': {},
  'of all with a rare code': { errorCode: 'upstream_timeout' },
}

for (const kind of kinds) {
  for (const rows of [most / 10, most]) {
    const { database, cpu, close } = await kind.open()
    try {
      await fill(kind, database, rows)
      console.log(`\n${kind.name}, ${rows.toLocaleString('en-AU')} rows; CPU ms of a page`)
      for (const [what, filter] of Object.entries(lists)) {
        await measure(cpu, `${kind.name}.${rows}.${what}`, (before) =>
          recentRequests(database, { workspaceId: undefined, from: 0, to: 1e13, limit: 25, before, ...filter }),
        )
      }
      await measure(cpu, `${kind.name}.${rows}.one by its id`, (before) =>
        usageQueries(database).usageRow(before.requestId),
      )
      await measure(cpu, `${kind.name}.${rows}.one that was refused`, (before) =>
        refusalQueries(database).refusedRequest(before.requestId),
      )
    } finally {
      await close()
    }
  }
}

async function fill({ name, numbers, id }: Kind, database: Database, rows: number): Promise<void> {
  const insert = `INSERT INTO ledger (request_id, workspace_id, key_id, model, lane, endpoint, price_version, max_tokens,
      started_at, input_tokens, cached_input_tokens, output_tokens, images, audio_ms, estimated, outcome, http_status,
      error_code, amount_pico_aud, queue_wait_ms, first_token_ms, duration_ms, settled_at, settled_day)
    SELECT ${id}, 'ws_' || owner, 'key_' || owner || '_' || (n % 5), 'bench/model-' || (n % 20), 'bench/model-' || (n % 20),
      '/chat/completions', 1, 1000, at - 500, 300, 0, 100, 0, 0, 0,
      CASE WHEN n % 97 = 0 THEN 'engine_failed' ELSE 'completed' END, CASE WHEN n % 97 = 0 THEN 502 ELSE 200 END,
      CASE WHEN n % 97 <> 0 THEN NULL WHEN n % 97000 = 0 THEN 'upstream_timeout' ELSE 'upstream_error' END,
      1000000, 0, 40, 500, at, at - at % 86400000
    FROM (SELECT n, CASE WHEN n % 4 = 0 THEN 0 ELSE n * 7907 % 40 END AS owner,
      ${START} + n * ${Math.floor(PERIOD_MS / rows)} AS at FROM ${numbers}) AS given`
  for (let from = 0; from < rows; from += BATCH) {
    await database.transact(addingRows([command(insert, from, Math.min(rows, from + BATCH))]))
    process.stdout.write(`\r${name}: ${Math.min(rows, from + BATCH).toLocaleString('en-AU')} rows written`)
  }
  if (name === 'PostgreSQL') await writeOne(database, 'ANALYZE')
}

async function measure(
  cpu: Opened['cpu'],
  name: string,
  page: (before: { settledAt: number; requestId: string }) => Promise<unknown>,
): Promise<void> {
  const before = { ...process.cpuUsage(), outside: cpu() }
  for (let count = 0; count < TIMES; count++) {
    const settledAt = START + Math.round(PERIOD_MS * (((count * 37 + 3) % TIMES) / TIMES))
    await page({ settledAt, requestId: count.toString(16).padStart(32, '0') })
  }
  const { user, system } = process.cpuUsage(before)
  const ms = (user + system + cpu() - before.outside) / 1000 / TIMES
  figure(name, { unit: 'ms', digits: 1 }, [ms])
  console.log((name.split('.').at(-1) ?? '').padEnd(40) + ms.toFixed(1).padStart(9))
}
