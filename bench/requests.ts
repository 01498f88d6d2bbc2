/**
 * How long the search for requests takes over a year of requests by 200 workspaces, 2,000 keys and 12 models: every
 * combination of its filters, on SQLite and on PostgreSQL. Each is measured with 10 pages from all over the year, after the
 * system has forgotten the files, and one more before them, which connects to a cold database.
 *
 * npm run bench -- requests [ROWS] [DATABASE]: two million rows by default. 50 million take about 30 GB and some minutes for
 * each database, and most of the cores. DATABASE is `sqlite` or `postgres` for one of them, in a temporary folder (TMPDIR;
 * it starts PostgreSQL itself, on loopback); or a folder or a postgres:// address, which is filled if it is empty, and kept.
 */
import { execFileSync } from 'node:child_process'
import { recentRequests } from '../src/billing/usage/queries/recent-requests.ts'
import { refusalQueries } from '../src/billing/refused-requests/refusal-queries.ts'
import { usageQueries } from '../src/billing/usage/queries/usage.ts'
import type { RecentQuery, RowPlace } from '../src/billing/usage/report-store.ts'
import type { Database } from '../src/store/database.ts'
import { figure } from './figures.ts'
import { PERIOD_MS, START } from './large-search.ts'
import { cpuMicroseconds, median } from './measuring.ts'
import { keptPostgres, keptSqlite, withOwnPostgres, withOwnSqlite, type MeasuredDatabase } from './search-databases.ts'

const rows = Number(process.argv[2] ?? 2_000_000)
const given = process.argv[3]
const TIMES = 10
const HOUR_MS = 3_600_000

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

if (given === undefined || given === 'sqlite') await withOwnSqlite(rows, measure)
if (given === undefined || given === 'postgres') await withOwnPostgres(rows, measure)
if (given?.startsWith('postgres:')) await measure(await keptPostgres(given, rows))
else if (given?.includes('/')) await measure(await keptSqlite(given, rows))

async function measure(measured: MeasuredDatabase): Promise<void> {
  const startedAtMs = performance.now()
  console.log(`\n${measured.name}, ${rows.toLocaleString('en-AU')} rows; ms of a page`)
  console.log(`${''.padEnd(44)}${['median', 'worst', 'cold', 'CPU'].map((it) => it.padStart(9)).join('')}`)
  const everything: Seen[] = []
  for (const [who, filter] of Object.entries(whose)) {
    for (const [how, ending] of Object.entries(endings)) {
      const seen: Seen[] = []
      for (const model of models) {
        for (const isPeriod of [false, true]) {
          const filters = { ...filter, ...ending, ...model }
          seen.push(await timesOf(measured, (database, place) => pageAt(database, place, isPeriod, filters)))
        }
      }
      show(measured, `${who}: ${how}`, seen)
      everything.push(...seen)
    }
  }
  const one = await timesOf(measured, (database, { requestId }) => usageQueries(database).usageRow(requestId))
  show(measured, 'one by its id', [one])
  const refused = await timesOf(measured, (database, { requestId }) =>
    refusalQueries(database).refusedRequest(requestId),
  )
  show(measured, 'one that was refused', [refused])
  show(measured, 'all', everything)
  const slow = everything.filter(({ worst, cold }) => Math.max(worst, cold) > 200).length
  const seconds = Math.round((performance.now() - startedAtMs) / 1000)
  console.log(`${slow} of ${everything.length} combinations had a page above 200 ms; measured in ${seconds} s`)
}

async function pageAt(
  database: Database,
  { settledAt, requestId }: RowPlace,
  isPeriod: boolean,
  filters: Partial<RecentQuery>,
): Promise<unknown> {
  const period = isPeriod
    ? { from: settledAt - 2 * HOUR_MS, to: settledAt }
    : { from: 0, to: 1e13, before: { settledAt, requestId } }
  return recentRequests(database, { workspaceId: undefined, limit: 25, ...period, ...filters })
}

/** CPU of the service and of its connection to PostgreSQL. */
type Seen = Readonly<Record<'median' | 'worst' | 'cold' | 'cpu', number>>

/** The slowest model and period of each. */
function show({ name: database }: MeasuredDatabase, name: string, seen: readonly Seen[]): void {
  const cells = (['median', 'worst', 'cold', 'cpu'] as const).map((which) => {
    const ms = Math.max(...seen.map((it) => it[which]))
    figure(`${database}.${name}.${which}`, { unit: 'ms', digits: 0 }, [ms])
    return ms.toFixed(1).padStart(9)
  })
  console.log(name.padEnd(44) + cells.join(''))
}

async function timesOf(
  { open, files, serverPid }: MeasuredDatabase,
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
    const server = await serverPid(database)
    const cpu = (): number => {
      const { user, system } = process.cpuUsage()
      return user + system + (server === undefined ? 0 : cpuMicroseconds(server))
    }
    for (const file of files()) {
      execFileSync('dd', [`of=${file}`, 'oflag=nocache', 'conv=notrunc', 'count=0', 'status=none'])
    }
    const cold = await timed(() => page(database, placeAt(TIMES)))
    await page(database, placeAt(0))
    const seen: number[] = []
    const before = cpu()
    for (let count = 0; count < TIMES; count++) seen.push(await timed(() => page(database, placeAt(count))))
    const used = cpu() - before
    return { median: median(seen), worst: Math.max(...seen), cold, cpu: used / 1000 / TIMES }
  } finally {
    await database.close()
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAtMs = performance.now()
  await work()
  return performance.now() - startedAtMs
}
