import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Client } from 'pg'
import { command, query, readRows } from '../../src/store/database.ts'
import { openBookkeeping } from '../../src/bookkeeping.ts'
import { createTelemetry } from '../../src/operate/telemetry/telemetry.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { projectorThread } from '../../src/ledger/projector-thread/thread.ts'
import { withoutPassword } from '../../src/shared/address-without-password.ts'
import { openLedgerDatabase } from '../../src/store/database-choice.ts'
import { openMove } from '../../src/store/move.ts'
import { openStore, storeOn } from '../../src/store/open.ts'
import { openPostgres, type PostgresDatabase } from '../../src/store/postgres/client.ts'
import { requireFit } from '../../src/store/postgres/fit.ts'
import { lockCall } from '../../src/store/postgres/locks.ts'
import { migratePostgres, postgresSteps, readPostgresStep } from '../../src/store/postgres/migrate.ts'
import { beginMove, finishMove, refuseUnfinishedMove, stateOfMove } from '../../src/store/postgres/moves.ts'
import { timeLimits } from '../../src/store/postgres/time-limits.ts'
import * as sqlite from '../../src/store/sqlite/migrate.ts'
import { isServiceRunning, takeServiceLock } from '../../src/store/sqlite/service-lock.ts'
import { sampleRow } from '../support/ledger-samples.ts'
import { startPostgres, type PostgresServer } from '../support/postgres-server.ts'
import { eventually, within } from '../support/waiting.ts'

/** Databases out there have taken these steps as they are. */
const released: Readonly<Record<string, string>> = {
  '0001-first-tables.sql': 'ec6e80c4bfb52e03760b08ce2d7232d57f83e58bc0a667eca030f3eadc8aba37',
  '0002-moved-from.sql': 'd769dc840865503f624c6e88f600ca6fbdbfbbe87a2709ac414b858b09649069',
  '0003-invoices-by-time.sql': '3a8654d57edc5f6a505a3546df4cf44170ca0d4729763096270f034808b2f725',
  '0004-failures.sql': '39c5dd4c1baf1f520e4ab118a65e75720ed56def5d322f242ac7f37261d5034b',
  '0005-console-sessions.sql': '97415bac7983d97ff110edf2fec57d8d237ff4f9f11a7a33297dacdfc8378bef',
  '0006-key-endings.sql': '45370cd59d0bbf61999b531462b6e88dd9355dfce2fba0870838f39df4fdf83a',
  '0007-failed-requests.sql': 'f74084eae35be25b8924ffcf76d95954b95bff9f77d7c8c75ad1b5b2ba80e273',
  '0008-payments.sql': '1a9f1e13d0a564634df8380b4deed34ff3d2bed349b6022b6d087c57cb6cca61',
  '0009-key-limits.sql': '9be46498a7aa004993fc0bb0fac5d2dad6f153f909b19628f35729d27454e9c8',
  '0010-invoice-emails.sql': '505f6c8660461a876e25b37d67ea15df5410a4775e8b1e2d946a55b26b1e7ba8',
  '0011-requests-per-workspace.sql': 'e2bb87f733026f810a4b86723005da6ac14d65df808c720df0378f2b41bf2ee5',
  '0012-key-spend.sql': '2c5ff77e35c9aeb350dc2c98260f3d69558649c6442f12a31c3918183b196554',
  '0013-people.sql': '6dcf5a69b42f7e909962add9de05d3c385d0d4695d44e4a0c4042c37a17b6a26',
  '0014-managing-keys.sql': '11c43cae1a2a7a4a4c94ec3c6b7780f59028c3e4b23a86a300e22384161c90e7',
  '0015-alerts.sql': 'c292d30827f8430bf8fdccba94c222d1517452cd39d4eb5f5f3a490a82642f75',
  '0016-keys-with-spend-limit.sql': '8e373eba4e61abcacf2acb2fe3193cc99932b0ff5efa311bb07bf11e5fc1234a',
  '0017-tokens-per-minute.sql': 'c6c8029e4c0b1100db02bd3885ee57e938cd7ec13da055930e8e9379d5083129',
  '0018-job-leases.sql': '0531e78f0af2ab6f53bcb235cd3d214523330d77144849f70036a02b1468a14b',
  '0019-find-requests.sql': 'b8b161dbe9c130fbd762bc1fdc21308a27a922c8b5c448af867ce5cb5c30e178',
  '0020-stored-files.sql': '3d467b2c78ba68fafdfb720cb30263ba133dd167077b6e67aa90083c57507dc9',
  '0021-batches.sql': '90237a302ca0dae2647453b9aec28ca5cad6b9d72359a8690d7b5b87445720f2',
  '0022-service-tier.sql': '0d6e09cde51ac1a8629a62c4edfa20bdd16325203c9081ee54221022aa7203e9',
  '0023-batch-progress.sql': 'f2ef98de06b543e843664c5a0ef5a012488f552af84812ec3d230bd8888fcb9e',
}

describe('PostgreSQL behind the store', () => {
  let server: PostgresServer
  let url: string
  let database: PostgresDatabase
  const opened: { close(): Promise<void> }[] = []
  const dataDir = mkdtempSync(join(tmpdir(), 'weir-postgres-test-'))

  const open = async (address: string): Promise<PostgresDatabase> => {
    const one = await openPostgres({ url: address, connectionsMax: 2 })
    opened.push(one)
    return one
  }

  before(async () => {
    server = await startPostgres()
    url = await server.createDatabase()
    database = await open(url)
  })
  after(async () => {
    for (const it of opened) await it.close()
    await server.remove()
    rmSync(dataDir, { recursive: true, force: true })
  })

  describe('the migrations', () => {
    it('never change once they are released', () => {
      for (const [step, expected] of Object.entries(released)) {
        assert.equal(
          hash('sha256', readPostgresStep(step)),
          expected,
          `${step} has changed, but databases have taken it`,
        )
      }
      assert.deepEqual(postgresSteps, Object.keys(released), 'pin the hash of a new step here, at the end')
      const folder = new URL('../../src/store/migrations/postgres/', import.meta.url)
      assert.deepEqual(readdirSync(folder).toSorted(), postgresSteps)
    })

    it('lead to the tables and columns that SQLite has', async () => {
      const other = new DatabaseSync(':memory:')
      other.enableDefensive(false)
      for (const step of sqlite.sqliteSteps) other.exec(sqlite.readSqliteStep(step))
      const inSqlite = other
        .prepare(
          `SELECT tables.name AS table_name, columns.name AS column_name, columns."notnull" AS required
           FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
           WHERE tables.type = 'table' AND tables.name <> 'data_directory'`,
        )
        .all()
      const rows = await readRows(
        database,
        `SELECT table_name, column_name, CASE is_nullable WHEN 'NO' THEN 1 ELSE 0 END AS required
         FROM information_schema.columns WHERE table_schema = 'public' AND table_name NOT IN ('schema_steps', 'moved_from')`,
      )
      const named = (found: readonly Record<string, unknown>[]): readonly string[] =>
        found.map((row) => `${String(row['table_name'])}.${String(row['column_name'])}`).toSorted()
      assert.deepEqual(named(rows), named(inSqlite))
      // SQLite does not say so of the columns of a primary key.
      const required = new Set(named(rows.filter((row) => row['required'] === 1n)))
      assert.deepEqual(
        named(inSqlite.filter((row) => row['required'] === 1)).filter((column) => !required.has(column)),
        [],
      )
    })

    it('compute the amounts of documents that were issued before', async () => {
      const client = new Client(await server.createDatabase())
      await client.connect()
      for (const step of postgresSteps.slice(0, 7)) await client.query(readPostgresStep(step))
      await client.query("INSERT INTO workspaces (id, name, created_at) VALUES ('ws', 'acme', 1)")
      const issued = [
        ['INV-1', 'tax_invoice', { due: '2026-12-15', total: '9384.05', lines_total: '8530.9545' }],
        ['ADJ-1', 'adjustment_note', { due: null, total: '-0.06', lines_total: '-0.050000000001', adjusts: 'INV-1' }],
      ] as const
      for (const [number, kind, document] of issued) {
        await client.query(
          `INSERT INTO invoices (number, kind, sequence, seller_abn, workspace_id, period, period_from, period_to, issued_at, document)
           VALUES ($1, $2, 1, '51824753556', 'ws', '2026-11', 0, 1, 2, $3)`,
          [number, kind, JSON.stringify(document)],
        )
      }
      await client.query(readPostgresStep('0008-payments.sql'))
      const { rows } = await client.query('SELECT * FROM document_amounts ORDER BY number DESC')
      await client.end()
      assert.deepEqual(
        rows.map((row: object) => Object.values(row).map((value) => value && String(value))),
        [
          ['INV-1', 'INV-1', '2026-12-15', '938405', '8530954', '500000000'],
          ['ADJ-1', 'INV-1', null, '-6', '-50', '-1'],
        ],
      )
    })

    it('lead to the indexes that SQLite has', async () => {
      const other = new DatabaseSync(':memory:')
      other.enableDefensive(false)
      for (const step of sqlite.sqliteSteps) other.exec(sqlite.readSqliteStep(step))
      const expected = other.prepare("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL").all()
      const found = await readRows(database, "SELECT indexname AS name FROM pg_indexes WHERE schemaname = 'public'")
      const names = new Set(found.map(({ name }) => String(name)))
      assert.deepEqual(
        expected.map(({ name }) => String(name)).filter((name) => !names.has(name)),
        [],
      )
    })

    it('are applied once when several replicas start at the same time', async () => {
      const fresh = await server.createDatabase()
      const [one] = await Promise.all([0, 1, 2, 3].map(() => open(fresh)))
      const taken = await readRows(one!, 'SELECT step FROM schema_steps')
      assert.equal(taken.length, postgresSteps.length)
    })

    it('do not make a start wait for another one when there is nothing to apply', async () => {
      const client = new Client(url)
      await client.connect()
      try {
        await client.query(`BEGIN; ${lockCall('migration')}`)
        await open(url)
      } finally {
        await client.end()
      }
    })

    it('may take longer than any other statement, and other replicas wait for them', async () => {
      const fresh = await server.createDatabase()
      const limits = { ...timeLimits, statement_timeout: 1000, query_timeout: 1000, lock_timeout: 1 }
      const migrating = new Client(fresh)
      const waiting = new Client({ connectionString: fresh, ...limits })
      await Promise.all([migrating.connect(), waiting.connect()])
      try {
        await migrating.query(`BEGIN; ${lockCall('migration')}`)
        const migrated = migratePostgres(waiting, 'db')
        await eventually('the second replica waits', async () => {
          const { rowCount } = await migrating.query(
            "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted",
          )
          return rowCount === 1
        })
        await migrating.query('SELECT pg_sleep(1.1); COMMIT')
        await migrated
        const { rowCount } = await waiting.query('SELECT 1 FROM schema_steps')
        assert.equal(rowCount, postgresSteps.length)
      } finally {
        await Promise.all([migrating.end(), waiting.end()])
      }
    })

    it('are refused when a newer version of Weir has applied more', async () => {
      const newer = await server.createDatabase()
      const one = await open(newer)
      const statements = [command('INSERT INTO schema_steps VALUES (?)', postgresSteps.length + 1)]
      await one.transact({ access: 'write', locks: [], statements })
      await assert.rejects(open(newer), {
        code: 'ERR_DATABASE_NEWER',
        message: /newer version of Weir \(schema \d+; this version knows \d+/,
      })
    })
  })

  it('enforces immutability: rows and documents can never be changed or removed', async () => {
    const store = await openStore({ dataDir, databaseUrl: url, exclusive: false })
    opened.push(store)
    await store.addRows([sampleRow('for good')])
    await store.beginAudit({
      at: 1,
      actor: 'a',
      requestId: 'r',
      action: 'x',
      subject: 's',
      request: null,
      before: null,
    })
    const client = new Client(url)
    await client.connect()
    try {
      for (const sql of [
        'UPDATE ledger SET amount_pico_aud = 0',
        'DELETE FROM ledger',
        'TRUNCATE ledger CASCADE',
        'TRUNCATE invoices CASCADE',
        'DELETE FROM audit_log',
        "UPDATE audit_log SET actor = 'somebody else'",
      ]) {
        await assert.rejects(client.query(sql), /append-only|never changes/, sql)
      }
    } finally {
      await client.end()
    }
  })

  it('has four connections at most for each store, and keeps the directory locked until they are closed', async () => {
    const lock = new Client(url)
    await lock.connect()
    try {
      const { database: owned } = await openLedgerDatabase({ dataDir, databaseUrl: url, exclusive: true })
      const pids = await Promise.all(
        Array.from({ length: 12 }, () => readRows(owned, 'SELECT pg_backend_pid() AS pid, pg_sleep(0.1)')),
      )
      assert.equal(new Set(pids.map(([row]) => row?.['pid'])).size, 4)

      await lock.query('SELECT pg_advisory_lock(7)')
      const statements = [query('SELECT pg_advisory_xact_lock(7)')]
      const waiting = owned.transact({ access: 'write', locks: [], statements })
      await eventually('it waits', async () => {
        const { rows } = await lock.query("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        return rows.length === 1
      })
      const closed = owned.close()
      await setImmediate()
      assert.equal(isServiceRunning(dataDir), true)
      await lock.query('SELECT pg_advisory_unlock(7)')
      await Promise.all([waiting, closed])
      assert.equal(isServiceRunning(dataDir), false)
    } finally {
      await lock.end()
    }
  })

  it('has no connection and no lock any more after a store was refused', async () => {
    const unfinished = await server.createDatabase()
    const moving = await open(unfinished)
    await beginMove(moving, 'dir')
    for (const exclusive of [true, false]) {
      await assert.rejects(openLedgerDatabase({ dataDir, databaseUrl: unfinished, exclusive }), {
        code: 'ERR_DATABASE_UNFINISHED',
      })
    }
    const others = `SELECT count(*) AS count FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()`
    await eventually('they are closed', async () => (await readRows(moving, others))[0]?.['count'] === 0n)
    assert.equal(isServiceRunning(dataDir), false)
  })

  it('has locks of the same numbers in every version: replicas of two versions wait for each other', () => {
    const names = ['migration', 'invoices', 'keys', 'prices', 'usage_sums', 'refusals', 'alerts', 'batches'] as const
    assert.deepEqual(
      names.map(lockCall),
      names.map((_, number) => `SELECT pg_advisory_xact_lock(1464158546, ${number})`),
    )
  })

  it('reads several tables at one instant', async () => {
    const statements = [
      query('SELECT count(*) AS rows FROM ledger'),
      query('SELECT pg_sleep(0.2)'),
      query('SELECT count(*) AS rows FROM ledger'),
    ]
    const reading = database.transact({ access: 'read', statements })
    const store = await openStore({ dataDir, databaseUrl: url, exclusive: false })
    opened.push(store)
    await store.addRows([sampleRow('meanwhile')])
    const [first, , last] = await reading
    assert.deepEqual(first, last)
  })

  it('does not keep the thread of a projector running', async () => {
    const journalFolder = join(dataDir, 'journal')
    const thread = projectorThread({ dataDir, databaseUrl: url, journalFolder, owner: 'own' }, { setAside() {} })
    await thread.apply([])
    await within(20_000, 'the thread has ended', thread.close())
  })

  it('explains in one line why it cannot be opened, without the password', async () => {
    const wrong: readonly (readonly [string, string, RegExp])[] = [
      [url.replace(/\/weir_\d+$/, '/nothing'), 'ERR_DATABASE_MISSING', /"nothing" does not exist: create it/],
      [url.replace('weir:', 'nobody:'), 'ERR_DATABASE_LOGIN', /PostgreSQL refuses the login .*: correct the user/],
      [url.replace(/:\d+\//, ':1/'), 'ERR_DATABASE_AWAY', /does not answer \(.*\): start it, or correct database/],
    ]
    for (const [address, code, message] of wrong) {
      const error = await openPostgres({ url: address, connectionsMax: 1 }).then(
        () => assert.fail(address),
        (it: NodeJS.ErrnoException) => it,
      )
      assert.equal(error.code, code, error.message)
      assert.match(error.message, message)
      assert.ok(!error.message.includes('never-shown') && !error.message.includes('\n'))
    }
  })

  it('is refused without time limits, which a pooler in front of it may have dropped', async () => {
    const client = new Client(url)
    await client.connect()
    try {
      await assert.rejects(requireFit(client, 'address'), {
        code: 'ERR_DATABASE_POOLER',
        message: /^address: the pooler/,
      })
      for (const [name, ms] of Object.entries(timeLimits)) await client.query(`SET ${name} = ${ms}`)
      await requireFit(client, 'address')
      await client.query('SET lock_timeout = 0')
      await assert.rejects(requireFit(client, 'address'), {
        message: /run ALTER ROLE weir SET lock_timeout = '4s'; then/,
      })
    } finally {
      await client.end()
    }
  })

  describe('a move from a data directory', () => {
    const seen = async (one: PostgresDatabase): Promise<unknown> =>
      (await readRows(one, 'SELECT directory, finished_at FROM moved_from')).map((row) => ({ ...row }))

    it('begins in an empty database alone, and ends once', async () => {
      const empty = await open(await server.createDatabase())
      assert.equal(await stateOfMove(empty, 'dir'), 'new')
      await beginMove(empty, 'dir')
      await beginMove(empty, 'dir')
      assert.deepEqual(
        [await stateOfMove(empty, 'dir'), await stateOfMove(empty, 'another'), await seen(empty)],
        ['begun', 'other', [{ directory: 'dir', finished_at: null }]],
      )
      await assert.rejects(refuseUnfinishedMove(empty, 'db'), {
        code: 'ERR_DATABASE_UNFINISHED',
        message: 'db: a migration to this database is running or was interrupted: run weir migrate --to again',
      })
      await finishMove(empty, 'dir', 7)
      await refuseUnfinishedMove(empty, 'db')
      assert.deepEqual(
        [await stateOfMove(empty, 'dir'), await seen(empty)],
        ['finished', [{ directory: 'dir', finished_at: 7n }]],
      )
      for (const used of ['workspaces', 'ledger']) {
        const other = await open(await server.createDatabase())
        const store = storeOn(other, '')
        if (used === 'ledger') await store.addRows([sampleRow('a')])
        else await store.createWorkspace({ id: 'ws', name: 'other', requestsPerMinute: null, createdAt: 1 })
        assert.equal(await stateOfMove(other, 'dir'), 'other', used)
      }
    })

    it('gives new rows positions and ids after the copied ones', async () => {
      const moved = await open(await server.createDatabase())
      const next = async (): Promise<unknown> => {
        const asked = ['ledger.position', 'price_versions.id', 'audit_log.id'].map((it) => {
          const [table, column] = it.split('.')
          return query(`SELECT nextval(pg_get_serial_sequence('${table}', '${column}')) AS next`)
        })
        const rows = await moved.transact({ access: 'write', locks: [], statements: asked })
        return rows.map(([row]) => row?.['next'])
      }
      await finishMove(moved, 'dir', 1)
      assert.deepEqual(await next(), [1n, 1n, 1n])
      const store = storeOn(moved, '')
      await store.addRows([sampleRow('a')])
      const positions = [command('UPDATE usage_summed SET position = 0')]
      await moved.transact({ access: 'write', locks: [], statements: positions })
      await finishMove(moved, 'dir', 1)
      const [summed] = await readRows(moved, 'SELECT position FROM usage_summed')
      assert.deepEqual([{ ...summed }, await next()], [{ position: 2n }, [3n, 1n, 1n]])
    })

    it('ends with a closed database of another name, which has everything without a log beside it', async (t) => {
      const from = mkdtempSync(join(tmpdir(), 'weir-move-'))
      t.after(() => rmSync(from, { recursive: true, force: true }))
      const old = await openStore({ dataDir: from, exclusive: false })
      await old.addRows([sampleRow('a')])
      await old.close()
      const move = await openMove(from, await server.createDatabase())
      t.after(() => move.close())
      await move.copy(() => {})
      await move.finish(1)
      assert.deepEqual(
        readdirSync(from).filter((name) => name.startsWith('weir.db')),
        ['weir.db.moved'],
      )
    })

    it('is refused if a table has another number of rows afterwards', async (t) => {
      const from = mkdtempSync(join(tmpdir(), 'weir-move-'))
      t.after(() => rmSync(from, { recursive: true, force: true }))
      const old = await openStore({ dataDir: from, exclusive: false })
      await old.addRows([sampleRow('a'), sampleRow('b')])
      await old.close()
      const to = await server.createDatabase()
      const other = await open(to)
      const move = await openMove(from, to)
      t.after(() => move.close())
      const progress: (readonly [number, number])[] = []
      const counts = await move.copy((done, total) => progress.push([done, total]))
      const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
      assert.deepEqual([counts['ledger'], counts['workspaces'], progress.at(-1)], [2, 0, [total, total]])
      await storeOn(other, '').createWorkspace({ id: 'ws', name: 'a', requestsPerMinute: null, createdAt: 1 })
      await assert.rejects(
        move.copy(() => {}),
        {
          code: 'ERR_DATABASE_DIFFERS',
          message: `rows of workspaces: 0 in ${from}, 1 in ${withoutPassword(to)}; use another, empty database`,
        },
      )
      await move.close()
      await assert.rejects(openMove(from, url), {
        code: 'ERR_DATABASE_USED',
        message: `${withoutPassword(url)} already contains a ledger: choose an empty database`,
      })
      takeServiceLock(from).close()
    })
  })

  it('has a journal with another owner after each start, and the position of the one before until all of that is delivered', async (t) => {
    const databaseUrl = await server.createDatabase()
    const dataDir = mkdtempSync(join(tmpdir(), 'weir-journal-'))
    t.after(() => rmSync(dataDir, { recursive: true, force: true }))
    const database = await open(databaseUrl)
    const positions = async () =>
      (await readRows(database, 'SELECT owner FROM journal_positions')).map(({ owner }) => owner)
    const telemetry = createTelemetry('silent', '1', { write() {}, flush: async () => {} })
    const config = { dataDir, databaseUrl, maxJournalBytes: 2 ** 20, waitFor: 'journal' } as const
    const start = () => openBookkeeping(config, systemClock, telemetry, () => {})
    const first = await start()
    await first.ledger.settle(sampleRow('a'))
    await first.close()
    assert.deepEqual(await positions(), [first.journal?.owner])
    const second = await start()
    t.after(() => second.close())
    assert.equal(second.journal?.predecessor, first.journal?.owner)
    assert.notEqual(second.journal?.owner, first.journal?.owner)
    assert.deepEqual(await positions(), [])
  })

  it('reports when it is unreachable and when it is back, and refuses at once meanwhile', async () => {
    const reported: string[] = []
    const events = {
      ended: ({ message }: Error) => reported.push(message.replace(/.*: PostgreSQL does not answer.*/, 'away')),
      replaced: () => reported.push('back'),
      lost: () => reported.push('lost'),
    }
    const watched = await openPostgres({ url, connectionsMax: 2, events })
    opened.push(watched)
    await server.kill()
    await assert.rejects(readRows(watched, 'SELECT 1 AS one'))
    await eventually('it is away', () => !watched.isUp())
    await assert.rejects(readRows(watched, 'SELECT 1 AS one'), { code: 'ERR_DATABASE_AWAY' })
    await server.start()
    await eventually('it is back', () => watched.isUp())
    assert.deepEqual(await readRows(watched, 'SELECT 1 AS one'), [{ one: 1n }])
    assert.deepEqual(reported, ['away', 'back'])
  })
})
