import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { availableParallelism, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Client } from 'pg'
import { readRows, type Database } from '../src/store/database.ts'
import { openPostgres } from '../src/store/postgres/client.ts'
import { openSqliteHere } from '../src/store/sqlite/in-this-thread.ts'
import { startPostgres } from '../test/support/postgres-server.ts'
import { fillSearch } from './large-search.ts'

/** The databases of bench/requests.ts. They are filled in the fastest way, and are disposable: nothing is synced. */

export interface MeasuredDatabase {
  readonly name: 'SQLite' | 'PostgreSQL'
  open(): Promise<Database>
  /** The process of the server that answers the one connection. undefined: this process. */
  serverPid(database: Database): Promise<number | undefined>
  /** The large files that the database reads. */
  files(): readonly string[]
}

type Measure = (database: MeasuredDatabase) => Promise<void>

const GIB = 2 ** 30
const LARGE_BYTES = 2 ** 20
/** Each sorts in memory, so a few at once. */
const INDEXES_AT_ONCE = 4

export async function withOwnSqlite(rows: number, measure: Measure): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-bench-'))
  try {
    await measure(await keptSqlite(folder, rows))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export async function keptSqlite(dataDir: string, rows: number): Promise<MeasuredDatabase> {
  const file = join(dataDir, 'weir.db')
  if (!existsSync(file)) {
    const filling = join(dataDir, 'filling')
    rmSync(filling, { recursive: true, force: true })
    mkdirSync(filling, { recursive: true })
    await openSqliteHere({ dataDir: filling, exclusive: false }).close()
    await fillSqlite(join(filling, 'weir.db'), rows)
    renameSync(join(filling, 'weir.db'), file)
    rmSync(filling, { recursive: true })
  }
  console.log(`${(statSync(file).size / GIB).toFixed(1)} GiB`)
  return {
    name: 'SQLite',
    open: async () => openSqliteHere({ dataDir, exclusive: false }),
    serverPid: async () => undefined,
    files: () => [file],
  }
}

async function fillSqlite(file: string, rows: number): Promise<void> {
  const filled = new DatabaseSync(file, { enableForeignKeyConstraints: false })
  filled.exec(`PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -1500000;
    PRAGMA ignore_check_constraints = ON; PRAGMA threads = ${Math.min(8, availableParallelism())}`)
  await fillSearch({
    rows,
    run: async (sql) => filled.prepare(sql).all(),
    runAll: async (statements) => statements.forEach((sql) => filled.exec(sql)),
    numbers: (count) =>
      `(WITH RECURSIVE series (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM series WHERE n + 1 < ${count}) SELECT n FROM series)`,
    id: (number) => `printf('%032x', ${number})`,
    indexes: `SELECT 'DROP INDEX ' || name AS "drop", sql AS "create" FROM sqlite_master
      WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN ('ledger', 'usage_hours', 'usage_days')`,
  })
  filled.exec('PRAGMA journal_mode = WAL')
  filled.close()
}

export async function withOwnPostgres(rows: number, measure: Measure): Promise<void> {
  const server = await startPostgres({
    settings: [
      `shared_buffers=${Math.round(Math.min(8 * GIB, totalmem() / 8) / 2 ** 20)}MB`,
      `max_worker_processes=${availableParallelism()}`,
      `max_parallel_workers=${availableParallelism()}`,
      'autovacuum=off',
    ],
  })
  try {
    await measure(await keptPostgres(await server.createDatabase(), rows))
  } finally {
    await server.remove()
  }
}

export async function keptPostgres(url: string, rows: number): Promise<MeasuredDatabase> {
  await (await openPostgres({ url, connectionsMax: 1 })).close()
  const clients = Array.from(
    { length: Math.min(16, availableParallelism()) },
    () => new Client({ connectionString: url }),
  )
  for (const client of clients) await client.connect()
  const run = async (sql: string): Promise<Record<string, unknown>[]> => (await clients[0]!.query(sql)).rows
  try {
    if ((await run('SELECT 1 FROM ledger LIMIT 1')).length === 0) await fillPostgres(clients, rows)
    const isComplete = (await run("SELECT 1 FROM pg_indexes WHERE indexname = 'ledger_by_workspace'")).length > 0
    if (!isComplete) throw new Error('the database was only filled in part: give an empty one')
    const [{ size } = {}] = await run('SELECT pg_database_size(current_database()) AS size')
    console.log(`${(Number(size) / GIB).toFixed(1)} GiB`)
    // So the server has to be on this machine.
    const [{ data_directory: folder } = {}] = await run('SHOW data_directory')
    return {
      name: 'PostgreSQL',
      open: () => openPostgres({ url, connectionsMax: 1 }),
      async serverPid(database) {
        const [{ pid } = {}] = await readRows(database, 'SELECT pg_backend_pid() AS pid')
        return Number(pid)
      },
      files: () => largeFilesIn(join(String(folder), 'base')),
    }
  } finally {
    for (const client of clients) await client.end()
  }
}

async function fillPostgres(clients: readonly Client[], rows: number): Promise<void> {
  const run = async (sql: string): Promise<Record<string, unknown>[]> => (await clients[0]!.query(sql)).rows
  // Without a log of the changes. A crash empties them.
  for (const table of ['ledger', 'usage_hours', 'usage_days']) await run(`ALTER TABLE ${table} SET UNLOGGED`)
  for (const client of clients) {
    await client.query(`SET maintenance_work_mem = '${Math.round(totalmem() / 16 / 1024)}kB'`)
    await client.query(`SET max_parallel_maintenance_workers = ${INDEXES_AT_ONCE}`)
    await client.query('SET synchronous_commit = off')
  }
  await fillSearch({
    rows,
    run,
    async runAll(statements) {
      const left = [...statements]
      const isIndexes = statements.some((sql) => sql.startsWith('CREATE INDEX'))
      await Promise.all(
        clients.slice(0, isIndexes ? INDEXES_AT_ONCE : clients.length).map(async (client) => {
          for (let sql = left.shift(); sql !== undefined; sql = left.shift()) await client.query(sql)
        }),
      )
    },
    numbers: (count) => `generate_series(0::bigint, ${count}::bigint - 1) AS series (n)`,
    id: (number) => `lpad(to_hex(${number}), 32, '0')`,
    // The large ones first.
    indexes: `SELECT 'DROP INDEX ' || indexname AS "drop", indexdef AS "create" FROM pg_indexes
      WHERE schemaname = 'public' AND tablename IN ('ledger', 'usage_hours', 'usage_days')
        AND indexdef NOT LIKE '%UNIQUE%' ORDER BY indexdef LIKE '% WHERE %', tablename, indexname`,
  })
  await run('VACUUM ANALYZE')
}

function largeFilesIn(folder: string): readonly string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((it) => it.isFile()).map((it) => join(it.parentPath, it.name))
  return files.filter((it) => statSync(it).size >= LARGE_BYTES)
}
