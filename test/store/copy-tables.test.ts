import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { copyTables, countRows } from '../../src/store/copy-tables.ts'
import { readRows, type Database } from '../../src/store/database.ts'
import { storeOn } from '../../src/store/open.ts'
import { openSqliteHere } from '../../src/store/sqlite/in-this-thread.ts'
import { sampleRow } from '../support/ledger-samples.ts'

/** From one SQLite to another, because the statements are the same; test/cli/migrate.test.ts has PostgreSQL. */
function emptyDatabase(t: TestContext): Database & { isUp(): boolean } {
  const dataDir = mkdtempSync(join(tmpdir(), 'weir-copy-tables-'))
  const database = openSqliteHere({ dataDir, exclusive: false })
  t.after(async () => {
    await database.close()
    rmSync(dataDir, { recursive: true, force: true })
  })
  return database
}

/** What is made when a database is opened, and so is in both. */
const MADE_AT_START = new Set(['link_secret'])

/** What belongs to the directory, to the journal, which is empty, or to the operators' browsers. */
const NOT_COPIED = new Set([
  'job_leases',
  'data_directory',
  'intents',
  'journal_positions',
  'usage_summed',
  'console_sessions',
])

async function contentOf(database: Database, table: string): Promise<readonly unknown[]> {
  return (await readRows(database, `SELECT * FROM ${table}`)).map((row) => ({ ...row }))
}

describe('the tables of one database', () => {
  it('are all copied, in the order of their primary keys, except those of the journal', async (t) => {
    const [from, to] = [emptyDatabase(t), emptyDatabase(t)]
    const asked: string[] = []
    const watched: Database = {
      ...from,
      transact(transaction) {
        asked.push(...transaction.statements.map(({ sql }) => sql))
        return from.transact(transaction)
      },
    }
    await copyTables(watched, to, () => {})
    const orders = asked.flatMap((sql) => {
      const [, table = '', order = ''] = /FROM (\w+) .*ORDER BY (.*) LIMIT/.exec(sql) ?? []
      return table === '' ? [] : [[table, order]]
    })
    const keys = await readRows(
      from,
      `SELECT tables.name AS name, group_concat(columns.name, ', ' ORDER BY columns.pk) AS key
       FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
       WHERE tables.type = 'table' AND columns.pk > 0 GROUP BY tables.name`,
    )
    // The numbers of invoices are texts; their order is that of the kind and the sequence.
    const expected = keys
      .map(({ name, key }) => [name, name === 'invoices' ? 'issued_at, kind, sequence' : key])
      .filter(([name]) => !NOT_COPIED.has(String(name)))
    assert.deepEqual(Object.fromEntries(orders), Object.fromEntries(expected))
    assert.deepEqual(
      Object.keys(await countRows(from)),
      orders.map(([table]) => table),
    )
  })

  it('are copied to another', async (t) => {
    const [from, to] = [emptyDatabase(t), emptyDatabase(t)]
    const store = storeOn(from, '')
    for (const name of ['one', 'two']) {
      await store.createWorkspace({ id: `ws_${name}`, name, requestsPerMinute: null, createdAt: 1 })
    }
    // More than two slices, in several hours and days, of several keys and models.
    const rows = Array.from({ length: 2500 }, (_, index) =>
      sampleRow(`request ${index}`, {
        workspaceId: index % 2 ? 'ws_one' : 'ws_two',
        keyId: `key_${index % 7}`,
        model: `model_${index % 3}`,
        priceVersion: index % 2,
        settledAt: index * 3_600_000,
      }),
    )
    await store.addRows(rows)
    const counts = await countRows(from)
    assert.deepEqual([counts['workspaces'], counts['ledger']], [2, 2500])
    assert.ok((counts['usage_hours'] ?? 0) > 2000 && (counts['usage_days'] ?? 0) > 100)
    let copied = 0
    const slices: number[] = []
    await copyTables(from, to, (count) => {
      copied += count
      slices.push(count)
    })
    assert.deepEqual(await countRows(to), counts)
    assert.equal(
      copied,
      Object.values(counts).reduce((sum, count) => sum + count, 0),
    )
    assert.ok(Math.max(...slices) === 1000)
    for (const table of Object.keys(counts)) {
      if (!MADE_AT_START.has(table)) assert.deepEqual(await contentOf(to, table), await contentOf(from, table), table)
    }
  })

  it('continue where an earlier copy was interrupted, and are not copied twice', async (t) => {
    const [from, to] = [emptyDatabase(t), emptyDatabase(t)]
    const rows = Array.from({ length: 1500 }, (_, index) => sampleRow(`request ${index}`, { settledAt: index }))
    await storeOn(from, '').addRows(rows)
    const cut = new Error('cut off')
    const firstSlice = copyTables(from, to, (count) => {
      if (count === 1000) throw cut
    })
    await assert.rejects(firstSlice, cut)
    assert.equal((await countRows(to))['ledger'], 1000)
    const slices: number[] = []
    await copyTables(from, to, (count) => slices.push(count))
    assert.deepEqual(
      slices.filter((count) => count >= 500),
      [1000, 500],
      'those that are there, and those that were missing',
    )
    assert.deepEqual(await contentOf(to, 'ledger'), await contentOf(from, 'ledger'))
    const again: number[] = []
    await copyTables(from, to, (count) => again.push(count))
    assert.ok(again.includes(1500))
    assert.deepEqual(await countRows(to), await countRows(from))
  })
})
