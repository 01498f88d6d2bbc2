import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import type { ClientBase } from 'pg'
import { hasLedger, openStore, openStoreHere, requireStore } from '../../src/store/open.ts'
import { migratePostgres, postgresSteps } from '../../src/store/postgres/migrate.ts'
import { timeLimitNames } from '../../src/store/postgres/time-limits.ts'
import { isServiceRunning } from '../../src/store/sqlite/service-lock.ts'
import { sampleRow } from '../support/ledger-samples.ts'

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
    requireStore({ dataDir: `${dataDir}-gone`, databaseUrl })
    assert.throws(() => requireStore({ dataDir: `${dataDir}-gone` }), { code: 'ERR_DATA_DIR_REPLACED' })
  })
})

describe('the migration steps of PostgreSQL', () => {
  /** A server that has taken so many steps, and fails at what this matches. */
  function server(taken: number, failsAt?: RegExp) {
    const asked: string[] = []
    const query = async (sql: string) => {
      asked.push(sql.split(/[\s;(]/, 2).join(' '))
      if (failsAt?.test(sql)) throw new Error('it failed')
      if (sql.includes('server_version_num')) {
        const limits = timeLimitNames.join(',')
        return { rows: [{ version: '150000', encoding: 'UTF8', account: 'weir', limits }] }
      }
      if (sql.includes('pg_tables')) return { rows: taken > 0 ? [{}] : [] }
      return { rows: [{ taken: BigInt(taken) }] }
    }
    return { client: { query } as unknown as ClientBase, asked }
  }

  it('are applied in one transaction, and none of them if one fails', async () => {
    const done = server(postgresSteps.length)
    await migratePostgres(done.client, 'db')
    assert.ok(!done.asked.includes('INSERT INTO'))
    const missing = server(postgresSteps.length - 1)
    await migratePostgres(missing.client, 'db')
    assert.deepEqual([missing.asked.filter((sql) => sql === 'INSERT INTO').length, missing.asked.at(-1)], [1, 'COMMIT'])
    const failing = server(postgresSteps.length - 1, /^INSERT INTO schema_steps/)
    await assert.rejects(migratePostgres(failing.client, 'db'), /it failed/)
    assert.equal(failing.asked.at(-1), 'ROLLBACK')
    await assert.rejects(migratePostgres(server(postgresSteps.length + 1).client, 'db'), { code: 'ERR_DATABASE_NEWER' })
  })
})

describe('a store in this thread', () => {
  it('reads what was written: arrivals, when keys were used, and the last row', async (t) => {
    const store = await openStoreHere({ dataDir: emptyFolder(t), exclusive: false })
    t.after(() => store.close())
    await store.createWorkspace({ id: 'ws_1', name: 'acme', requestsPerMinute: null, createdAt: 1 })
    const key = { workspaceId: 'ws_1', ending: null, name: null, createdAt: 1, expiresAt: null, revokedAt: null }
    await store.createKey({ ...key, id: 'key_1', hash: 'a' })
    await store.createKey({ ...key, id: 'key_2', hash: 'b' })
    const times = { queueWaitMs: 10, durationMs: 7, outputTokens: 3, inputTokens: 4 }
    await store.addRows([sampleRow('a', { ...times, startedAt: 110, settledAt: 300, firstTokenMs: 5 })])
    await store.addRows([sampleRow('b', { ...times, startedAt: 120, settledAt: 200, firstTokenMs: null })])
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
