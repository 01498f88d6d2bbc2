import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, it } from 'node:test'
import { reconcileLedger } from '../../src/ledger/reconcile/reconcile.ts'
import { exportRows } from '../../src/billing/usage/usage-export.ts'
import { writeParquet } from '../../src/billing/usage/usage-parquet.ts'
import { usageReport } from '../../src/billing/usage/usage-report.ts'
import { usageQuery } from '../../src/billing/usage/views.ts'
import { openInvoicing } from '../../src/billing/invoices/invoices.ts'
import { parseMonth } from '../../src/shared/money/sydney-time.ts'
import type { Workspace } from '../../src/workspaces/workspace.ts'
import { takeBackup } from '../../src/operate/backup/backup.ts'
import { migrateSqlite, sqliteSteps } from '../../src/store/sqlite/migrate.ts'
import { seller, testBooks, type TestBooks } from '../support/books.ts'
import { watchedStore, type WatchedStore } from '../support/watched-store.ts'

/**
 * Whatever an operator does, the row of a request must not wait for long. How long that is depends on the machine, so
 * these tests count: transactions that write, rows for each transaction, and rows that are written in between.
 */

const ROWS = 6000
/** A page of a report or an export, and the row that shows whether there is another page. */
const MOST_ROWS_AT_A_TIME = 501

const MEBIBYTE = 1_048_576

const october = parseMonth('2026-10')!
let books: TestBooks
let acme: Workspace
let version: number
let folder: string

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-never-wait-'))
  books = await testBooks(parseMonth('2026-09')!.from)
  acme = await books.workspace('acme')
  version = await books.price('meta/a', { input_per_million: '0.20' }, books.now)
  const spread = Math.floor((october.to - october.from) / ROWS)
  const rows = Array.from({ length: ROWS }, (_, index) =>
    books.row(acme, 'meta/a', version, october.from + index * spread, { inputTokens: index + 1 }),
  )
  await books.settle(await Promise.all(rows))
  books.now = october.to + 1000
})
after(async () => {
  await books.close()
  rmSync(folder, { recursive: true, force: true })
})

const everything = (): ReturnType<typeof usageQuery> => usageQuery(acme.id, {})

async function readAll(pieces: AsyncIterable<string>): Promise<void> {
  for await (const piece of pieces) assert.ok(piece.length > 0)
}

describe('an operator that reads', () => {
  type Store = WatchedStore['store']
  const report = (store: Store, query: string): Promise<void> =>
    readAll(usageReport(store, { workspaceId: acme.id, groupings: ['day', 'key'] }, new URLSearchParams(query)))

  const actions: Readonly<Record<string, (store: Store) => Promise<unknown>>> = {
    'exports CSV': (store) => readAll(exportRows(store, everything(), 'csv')),
    'exports JSON lines': (store) => readAll(exportRows(store, everything(), 'jsonl')),
    'exports Parquet': (store) => writeParquet(store, everything(), join(folder, 'usage.parquet')),
    'lists usage': (store) => report(store, 'limit=10000'),
    'reconciles the books': (store) => reconcileLedger(store),
  }
  for (const [action, run] of Object.entries(actions)) {
    it(`never writes, reads page by page, and rows are written between any two pages: ${action}`, async (t) => {
      let written = 0
      const writeOne = async (): Promise<void> => {
        await books.settle([await books.row(acme, 'meta/a', version, books.now, { inputTokens: 1 })])
        written++
      }
      const { store, transactions } = await watchedStore(t, books.dataDir, writeOne)
      await run(store)
      assert.ok(transactions.every(({ access, added }) => access === 'read' && added === 0))
      const most = Math.max(...transactions.map(({ read }) => read))
      assert.ok(most <= MOST_ROWS_AT_A_TIME, `${most} rows in one transaction`)
      assert.ok(transactions.length >= ROWS / MOST_ROWS_AT_A_TIME, `only ${transactions.length} transactions`)
      assert.equal(written, transactions.length)
    })
  }

  it('never writes: sums of usage and the preview of an invoice', async (t) => {
    const { store, transactions } = await watchedStore(t, books.dataDir)
    const clock = { now: () => books.now, monotonic: () => 0 }
    await report(store, 'group_by=day')
    await openInvoicing(store, clock, seller).preview(acme, october)
    assert.ok(transactions.length > 2 && transactions.every(({ access }) => access === 'read'))
    assert.ok(Math.max(...transactions.map(({ read }) => read)) <= MOST_ROWS_AT_A_TIME)
  })
})

describe('a backup', () => {
  it('lets a row be written at once after each mebibyte', async () => {
    // Without a busy timeout, a write that had to wait would fail.
    const writer = new DatabaseSync(join(books.dataDir, 'weir.db'), { timeout: 0 })
    writer.exec('CREATE TABLE filler (bytes BLOB) STRICT')
    const write = writer.prepare('INSERT INTO filler VALUES (zeroblob(?))')
    write.run(5 * MEBIBYTE)
    writer.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    let writes = 0
    try {
      await takeBackup({
        dataDir: books.dataDir,
        file: join(folder, 'backup'),
        force: false,
        now: books.now,
        progress() {
          write.run(1)
          writes++
        },
      })
    } finally {
      writer.exec('DROP TABLE filler')
      writer.close()
    }
    assert.ok(writes >= 5, `only ${writes} writes while more than 5 MiB were copied`)
  })
})

describe('the migration at the start', () => {
  it('rewrites no row of the ledger: with more rows it writes only their entries in new indexes', () => {
    const ROWS = 4000
    const pages = [0, ROWS].map((rows) => {
      const dataDir = mkdtempSync(join(folder, 'old-'))
      const file = join(dataDir, 'weir.db')
      copyFileSync(new URL('../fixtures/data-directory-1/weir.db', import.meta.url), file)
      const database = new DatabaseSync(file)
      database.exec('PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0')
      multiply(database, rows)
      database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      migrateSqlite(database, dataDir, { exclusive: true })
      assert.equal(database.prepare('PRAGMA user_version').get()?.['user_version'], sqliteSteps.length)
      const written = statSync(`${file}-wal`).size
      database.close()
      return Math.round(written / 4096)
    })
    const [few = 0, many = 0] = pages
    // Two indexes, with some 30 bytes for a row each. A row itself has about 200.
    assert.ok(few > 0 && many <= few + (ROWS * 80) / 4096, `${few} pages without more rows, ${many} with them`)
  })

  /** Copies rows of the ledger until there are this many more. */
  function multiply(database: DatabaseSync, rows: number): void {
    const columns = database
      .prepare("SELECT name FROM pragma_table_info('ledger') WHERE name NOT IN ('position', 'request_id')")
      .all()
      .map(({ name }) => String(name))
      .join(', ')
    database.exec(`WITH RECURSIVE copies(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copies WHERE n < ${rows})
      INSERT INTO ledger (request_id, ${columns})
      SELECT 'copy-' || n, ${columns} FROM copies, (SELECT * FROM ledger WHERE corrects IS NULL LIMIT 1) WHERE ${rows} > 0`)
  }
})
