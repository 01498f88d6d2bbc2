import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import type { ClientBase } from 'pg'
import { command, query } from '../../src/store/database.ts'
import { hasLedger, requireLedger } from '../../src/store/database-choice.ts'
import { openStore, openStoreHere } from '../../src/store/open.ts'
import { requireFit } from '../../src/store/postgres/fit.ts'
import { migratePostgres, postgresSteps } from '../../src/store/postgres/migrate.ts'
import { timeLimitNames } from '../../src/store/postgres/time-limits.ts'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { lockForService, openDatabase, requireDatabase } from '../../src/store/sqlite/open-database.ts'
import { isServiceRunning } from '../../src/store/sqlite/service-lock.ts'
import { diskSteps } from '../support/disk-steps.ts'
import { sampleRow } from '../support/ledger-samples.ts'
import { openFiles } from '../support/open-files.ts'
import { noLimits } from '../support/key-limits.ts'

function emptyFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'weir-open-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Refuses connections. */
const databaseUrl = 'postgres://weir@127.0.0.1:1/weir'

describe('a store on PostgreSQL', () => {
  it('is refused for the service if its directory has a ledger of its own, and unlocks the directory', async (t) => {
    const dataDir = emptyFolder(t)
    await assert.rejects(openStore({ dataDir, databaseUrl, exclusive: true }), ({ code }: NodeJS.ErrnoException) => {
      return code !== 'ERR_DATA_DIR_LEDGER'
    })
    assert.equal(isServiceRunning(dataDir), false)
    writeFileSync(join(dataDir, 'weir.db'), '')
    const refused = { code: 'ERR_DATA_DIR_LEDGER', message: /move it with weir migrate --to/ }
    await assert.rejects(openStore({ dataDir, databaseUrl, exclusive: true }), refused)
    assert.equal(isServiceRunning(dataDir), false)
    await assert.rejects(openStore({ dataDir, databaseUrl, exclusive: false }), ({ code }: NodeJS.ErrnoException) => {
      return code !== 'ERR_DATA_DIR_LEDGER'
    })
  })

  it('counts as an existing ledger, and is not searched in the data directory', (t) => {
    const dataDir = emptyFolder(t)
    assert.deepEqual([hasLedger({ dataDir }), hasLedger({ dataDir, databaseUrl })], [false, true])
    writeFileSync(join(dataDir, 'weir.db'), '')
    assert.equal(hasLedger({ dataDir }), true)
    requireLedger({ dataDir: `${dataDir}-gone`, databaseUrl })
    assert.throws(() => requireLedger({ dataDir: `${dataDir}-gone` }), { code: 'ERR_DATA_DIR_REPLACED' })
  })
})

describe('the migration steps of PostgreSQL', () => {
  /** A server that has taken so many steps, and fails at what this matches. */
  function server(taken: number, failsAt?: RegExp) {
    const asked: string[] = []
    const timeLimits: number[] = []
    const query = async (given: string | { readonly text: string; readonly query_timeout: number }) => {
      const sql = typeof given === 'string' ? given : given.text
      if (typeof given !== 'string') timeLimits.push(given.query_timeout)
      asked.push(sql.split(/[\s;(]/, 2).join(' '))
      if (failsAt?.test(sql)) throw new Error('it failed')
      if (sql.includes('server_version_num')) {
        const limits = timeLimitNames.join(',')
        return { rows: [{ version: '150000', encoding: 'UTF8', account: 'weir', limits }] }
      }
      if (sql.includes('pg_tables')) return { rows: taken > 0 ? [{}] : [] }
      return { rows: [{ taken: BigInt(taken) }] }
    }
    return { client: { query } as unknown as ClientBase, asked, timeLimits }
  }

  it('are applied in one transaction, and none of them if one fails', async () => {
    const done = server(postgresSteps.length)
    await migratePostgres(done.client, 'db')
    assert.ok(!done.asked.includes('INSERT INTO'))
    const missing = server(postgresSteps.length - 1)
    await migratePostgres(missing.client, 'db')
    assert.deepEqual([missing.asked.filter((sql) => sql === 'INSERT INTO').length, missing.asked.at(-1)], [1, 'COMMIT'])
    const day = 24 * 3600_000
    assert.deepEqual(missing.timeLimits, [day, day], 'for the lock, and for the step')
    const failing = server(postgresSteps.length - 1, /^INSERT INTO schema_steps/)
    await assert.rejects(migratePostgres(failing.client, 'db'), /it failed/)
    assert.equal(failing.asked.at(-1), 'ROLLBACK')
    await assert.rejects(migratePostgres(server(postgresSteps.length + 1).client, 'db'), { code: 'ERR_DATABASE_NEWER' })
  })
})

describe('a server of PostgreSQL', () => {
  const fit = { version: '150000', encoding: 'UTF8', account: 'weir', limits: timeLimitNames.join(',') }

  it('must be version 15 or later, use UTF-8, and keep the time limits of a connection', async () => {
    const asked: unknown[] = []
    const problemOf = async (server: object): Promise<unknown> => {
      asked.length = 0
      const query = async (sql: string, values?: unknown) => {
        asked.push(values ?? sql)
        return { rows: [{ ...fit, ...server }] }
      }
      return requireFit({ query } as unknown as ClientBase, 'db').then(
        () => undefined,
        ({ code, message }: NodeJS.ErrnoException) => [code, message],
      )
    }
    assert.equal(await problemOf({}), undefined)
    assert.deepEqual(asked, [
      [['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout']],
      'BEGIN READ ONLY',
      'COMMIT',
    ])
    assert.deepEqual(await problemOf({ version: '149999' }), [
      'ERR_DATABASE_OLD',
      'db: Weir needs PostgreSQL 15 or later',
    ])
    assert.deepEqual(await problemOf({ encoding: 'LATIN1' }), [
      'ERR_DATABASE_ENCODING',
      'db: the database has the encoding LATIN1; create it with createdb --encoding=UTF8 --template=template0',
    ])
    const dropped = (changes: string): readonly string[] => [
      'ERR_DATABASE_POOLER',
      `db: the pooler in front of PostgreSQL drops time limits that Weir needs: run ${changes}; then restart the pooler`,
    ]
    assert.deepEqual(
      await problemOf({ limits: 'statement_timeout,lock_timeout' }),
      dropped("ALTER ROLE weir SET idle_in_transaction_session_timeout = '10s'"),
    )
    assert.equal(asked.length, 1, 'the pooler is not asked for more')
    assert.deepEqual(
      await problemOf({ limits: null }),
      dropped(
        "ALTER ROLE weir SET statement_timeout = '60s'; ALTER ROLE weir SET lock_timeout = '4s'; ALTER ROLE weir SET idle_in_transaction_session_timeout = '10s'",
      ),
    )
  })
})

describe('a data directory', () => {
  const refusalOf = (work: () => { close(): unknown } | void): unknown => {
    try {
      work()?.close()
      return undefined
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      return [code, message]
    }
  }

  it('is created for its owner alone, with the folders above it, and their names are on the disk before anything is in them', async (t) => {
    const folder = emptyFolder(t)
    const dataDir = join(folder, 'above', 'data')
    const steps = await diskSteps(t, folder)
    openDatabase(dataDir, { exclusive: false }).close()
    assert.deepEqual(steps.splice(0), ['make above', 'sync .', 'make above/data', 'sync above'])
    lockForService(dataDir).close()
    assert.deepEqual(steps, [], 'it is there already')
    assert.equal(openFiles(folder), 0)
    assert.deepEqual(
      [dirname(dataDir), dataDir].map((it) => statSync(it).mode & 0o777),
      [0o700, 0o700],
    )
    lockForService(`${dataDir}-2`).close()
    assert.equal(statSync(`${dataDir}-2`).mode & 0o777, 0o700)
  })

  it('is refused if its database is missing, unless nothing in it was used', (t) => {
    const folder = emptyFolder(t)
    const open = (name: string, files: Readonly<Record<string, string>>): unknown => {
      const dataDir = join(folder, name)
      mkdirSync(dataDir)
      for (const [file, text] of Object.entries(files)) writeFileSync(join(dataDir, file), text)
      const refused = refusalOf(() => openDatabase(dataDir, { exclusive: false }))
      return Array.isArray(refused) ? refused.map((it) => String(it).replace(dataDir, 'DIR')) : refused
    }
    const damaged = (detail: string): readonly string[] => [
      'ERR_DATA_DIR_DAMAGED',
      `DIR is damaged (${detail}) and was left as it is: restore a backup with weir restore FILE --force`,
    ]
    assert.deepEqual(
      {
        empty: open('empty', {}),
        emptyFiles: open('empty-files', { 'weir.db': '', 'weir.db-wal': '', other: 'x' }),
        text: open('text', { 'weir.db': 'x'.repeat(4096) }),
        restoring: open('restoring', { 'restoring-1': '', 'weir.db.moved': '' }),
        moved: open('moved', { 'weir.db.moved': '', spool: '' }),
        spool: open('spool', { spool: '' }),
        log: open('log', { 'weir.db-wal': 'x' }),
      },
      {
        empty: undefined,
        emptyFiles: undefined,
        text: damaged('file is not a database'),
        restoring: ['ERR_DATA_DIR_RESTORING', 'a restore of DIR was interrupted: run weir restore FILE --force again'],
        moved: [
          'ERR_DATA_DIR_MOVED',
          'the ledger of DIR was moved to PostgreSQL: set database in weir.yaml, or WEIR_DATABASE_URL',
        ],
        spool: damaged('weir.db is missing or empty'),
        log: damaged('weir.db is missing or empty'),
      },
    )
    const replaced = join(folder, 'gone')
    assert.deepEqual(
      refusalOf(() => requireDatabase(replaced)),
      ['ERR_DATA_DIR_REPLACED', `${replaced} is not the data directory any more; restart the service`],
    )
    requireDatabase(join(folder, 'text'))
  })

  it('is refused if it is a file, or below one', (t) => {
    const file = join(emptyFolder(t), 'file')
    writeFileSync(file, '')
    for (const dataDir of [file, join(file, 'data')]) {
      const [code, message] = refusalOf(() => lockForService(dataDir)) as string[]
      assert.equal(code, 'ERR_DATA_DIR_DISK')
      assert.match(message ?? '', new RegExp(`^${file} cannot be written \\(EEXIST: .*\\): make it writable`))
    }
  })

  it('has one service at a time', (t) => {
    const dataDir = emptyFolder(t)
    assert.equal(isServiceRunning(dataDir), false)
    const lock = lockForService(dataDir)
    assert.equal(isServiceRunning(dataDir), true)
    assert.deepEqual(
      refusalOf(() => lockForService(dataDir)),
      ['ERR_DATA_DIR_TAKEN', `another service is running on ${dataDir}: stop it first`],
    )
    lock.close()
    assert.equal(isServiceRunning(dataDir), false)
    assert.equal(openFiles(dataDir), 0)
    assert.equal(
      refusalOf(() => lockForService(dataDir)),
      undefined,
    )
  })

  it('is neither locked nor open after its database could not be opened', async (t) => {
    const dataDir = emptyFolder(t)
    writeFileSync(join(dataDir, 'weir.db'), 'x'.repeat(4096))
    for (const open of [openStore, openStoreHere]) {
      await assert.rejects(async () => open({ dataDir, exclusive: true }), { code: 'ERR_DATA_DIR_DAMAGED' }, open.name)
      assert.deepEqual([openFiles(dataDir), isServiceRunning(dataDir)], [0, false], open.name)
    }
  })
})

describe('a transaction on SQLite', () => {
  it('takes the write lock at once if it writes, and waits for no writer if it reads', (t) => {
    const dataDir = emptyFolder(t)
    const connection = openConnection({ dataDir, exclusive: false })
    t.after(() => connection.close())
    const read = (sql: string) => connection.transact({ access: 'read', statements: [query(sql)] })
    const write = () => connection.transact({ access: 'write', locks: [], statements: [query('SELECT 1 AS one')] })
    assert.deepEqual(Object.values(read('PRAGMA busy_timeout')[0]![0]!), [4000n])
    read('PRAGMA busy_timeout = 0')
    const other = new DatabaseSync(join(dataDir, 'weir.db'))
    t.after(() => other.close())
    other.exec('BEGIN IMMEDIATE')
    assert.equal(read('SELECT 1 AS one').length, 1)
    assert.throws(write, { errcode: 5 })
    other.exec('COMMIT')
    assert.deepEqual(write(), [[Object.assign(Object.create(null), { one: 1n })]])
  })

  it('prepares its statements once, as long as there are no more than 200 shapes', (t) => {
    const connection = openConnection({ dataDir: emptyFolder(t), exclusive: false })
    t.after(() => connection.close())
    const prepare = t.mock.method(DatabaseSync.prototype, 'prepare')
    const run = (count: number): number => {
      const statements = Array.from({ length: count }, (_, index) => query(`SELECT ${index} AS one`))
      connection.transact({ access: 'read', statements })
      return prepare.mock.callCount()
    }
    assert.deepEqual([run(200), run(200)], [200, 200])
    assert.equal(run(201), 201)
    assert.equal(run(201), 402)
  })

  it('leaves nothing behind if one of its statements fails', (t) => {
    const connection = openConnection({ dataDir: emptyFolder(t), exclusive: false })
    t.after(() => connection.close())
    const statements = [command('CREATE TABLE extra (name TEXT)'), command('INSERT INTO nowhere VALUES (1)')]
    assert.throws(() => connection.transact({ access: 'write', locks: [], statements }), /no such table/)
    const count = query("SELECT count(*) AS count FROM sqlite_schema WHERE name = 'extra'")
    assert.equal(connection.transact({ access: 'read', statements: [count] })[0]?.[0]?.['count'], 0n)
  })
})

describe('a store in this thread', () => {
  it('reads what was written: arrivals, when keys were used, and the last row', async (t) => {
    const store = await openStoreHere({ dataDir: emptyFolder(t), exclusive: false })
    t.after(() => store.close())
    await store.createWorkspace({ id: 'ws_1', name: 'acme', requestsPerMinute: null, createdAt: 1 })
    const key = {
      workspaceId: 'ws_1',
      ending: null,
      name: null,
      createdAt: 1,
      expiresAt: null,
      revokedAt: null,
      ...noLimits,
    }
    await store.createKey({ ...key, id: 'key_1', hash: 'a' })
    await store.createKey({ ...key, id: 'key_2', hash: 'b' })
    const times = { queueWaitMs: 10, durationMs: 7, outputTokens: 3, inputTokens: 4 }
    await store.addRows([sampleRow('a', { ...times, startedAt: 110, settledAt: 300, firstTokenMs: 5 })])
    await store.addRows([sampleRow('b', { ...times, startedAt: 120, settledAt: 200, firstTokenMs: null })])
    const line = { ...times, startedAt: 115, settledAt: 200, tier: 'batch' as const }
    await store.addRows([sampleRow('line', line)])
    assert.equal(await store.lastSettledAt(), 200)
    const correction = { of: 'a', reason: 'It was wrong.', creditNote: '' }
    await store.addRows([sampleRow('c', { startedAt: 130, settledAt: 9_000_000, amount: -5n, correction })])
    assert.deepEqual([...(await store.keysLastUsed(['key_1', 'key_2']))], [['key_1', 300]])
    const arrival = { inputTokens: 4, maxTokens: 10, outputTokens: 3, durationMs: 7 }
    const asked = { lane: 'meta/x', from: 100, to: 111, limit: 10, offset: 0 }
    const both = [
      { ...arrival, arrivedAt: 100, firstTokenMs: 5 },
      { ...arrival, arrivedAt: 110, firstTokenMs: null },
    ]
    assert.deepEqual(await store.arrivals(asked), both)
    assert.deepEqual(await store.arrivals({ ...asked, to: 110 }), both.slice(0, 1))
    assert.deepEqual(await store.arrivals({ ...asked, from: 101, offset: 0 }), both.slice(1))
    assert.deepEqual(await store.arrivals({ ...asked, offset: 1 }), both.slice(1))
    assert.deepEqual(await store.newestArrivals({ ...asked, limit: 1 }), both.slice(1))
  })
})
