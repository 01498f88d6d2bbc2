import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it, type TestContext } from 'node:test'
import { Client } from 'pg'
import { openBookkeeping } from '../../src/bookkeeping.ts'
import { frameOf, headText, intentText, rowText } from '../../src/ledger/journal/records.ts'
import { journalFiles } from '../../src/ledger/journal/journal-files-on-disk.ts'
import { openSettledStore, settleOrphanedJournal } from '../../src/cli/settled-store.ts'
import { openStore, openStoreHere } from '../../src/store/open.ts'
import { isServiceRunning } from '../../src/store/sqlite/service-lock.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { createTelemetry } from '../../src/operate/telemetry/telemetry.ts'
import { sampleIntent, sampleRow } from '../support/ledger-samples.ts'
import { startPostgres, type PostgresServer } from '../support/postgres-server.ts'
import { within } from '../support/waiting.ts'

function emptyFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'weir-bookkeeping-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function open(dataDir: string, databaseUrl?: string) {
  const written: string[] = []
  const telemetry = createTelemetry('info', '1', { write: (line) => void written.push(line), flush: async () => {} })
  const config = { dataDir, databaseUrl, maxJournalBytes: 2 ** 20, waitFor: 'journal' } as const
  return { opening: openBookkeeping(config, systemClock, telemetry, () => {}), written }
}

describe('the ledger of a service', () => {
  it('is ready, belongs to one service, and has every row when it is closed', async (t) => {
    const dataDir = emptyFolder(t)
    const { opening } = open(dataDir)
    const books = await opening
    assert.deepEqual(books.readiness(), { isReady: true, isDatabaseUp: true })
    assert.equal(books.journal, undefined)
    assert.equal(isServiceRunning(dataDir), true)
    await assert.rejects(open(dataDir).opening, { code: 'ERR_DATA_DIR_TAKEN' })
    books.ledger.note(sampleIntent('a', { startedAt: Date.now() }))
    await books.ledger.settle(sampleRow('a', { settledAt: Date.now() }))
    const found = await books.readStore.usage({ workspaceId: 'ws_1', from: 0, to: 1e13, limit: 10 })
    assert.deepEqual(
      found.map(({ requestId }) => requestId),
      ['a'],
      'a reader waits for what is durable',
    )
    await books.ledger.settle(sampleRow('b', { settledAt: Date.now() }))
    await within(20_000, 'they are closed', books.close())
    assert.equal(isServiceRunning(dataDir), false)
    assert.equal(books.readiness().isDatabaseUp, false)
    const store = await openStoreHere({ dataDir, exclusive: true })
    t.after(() => store.close())
    const rows = await store.usage({ workspaceId: 'ws_1', from: 0, to: 1e13, limit: 10 })
    assert.equal(rows.length, 2)
  })

  it('warns if the clock is behind the last row', async (t) => {
    const dataDir = emptyFolder(t)
    const store = await openStore({ dataDir, exclusive: false })
    await store.addRows([sampleRow('later', { settledAt: Date.now() + 10 * 86_400_000 })])
    await store.close()
    const { opening, written } = open(dataDir)
    await (await opening).close()
    assert.match(written.join(''), /"level":40.*"now":"20/)
  })
})

describe('the ledger of a service on PostgreSQL', () => {
  let postgres: PostgresServer
  before(async () => (postgres = await startPostgres()))
  after(() => postgres.remove())

  it('begins a journal with each start, and forgets how far the one before was delivered', async (t) => {
    const dataDir = emptyFolder(t)
    const database = await postgres.createDatabase()
    const owners = []
    for (const id of ['a', 'b', 'c']) {
      const books = await open(dataDir, database).opening
      await books.ledger.settle(sampleRow(id))
      await within(20_000, 'they are closed', books.close())
      owners.push(books.journal)
    }
    assert.deepEqual(
      owners.slice(1).map((it) => it?.predecessor),
      owners.slice(0, -1).map((it) => it?.owner),
    )
    const client = new Client({ connectionString: database })
    await client.connect()
    t.after(() => client.end())
    const positions = await client.query<{ owner: string }>('SELECT owner FROM journal_positions')
    assert.deepEqual(
      positions.rows.map(({ owner }) => owner),
      [owners.at(-1)?.owner],
    )
    assert.equal((await client.query('SELECT request_id FROM ledger')).rowCount, 3)
  })
})

describe('a command on the ledger of a service that was killed', () => {
  /** Leaves a journal with one row and one request under way, as a killed process does. */
  async function killed(t: TestContext): Promise<string> {
    const dataDir = emptyFolder(t)
    await (await open(dataDir).opening).close()
    const number = 1000
    const writer = await journalFiles(join(dataDir, 'journal')).create(number)
    const text = [
      headText({ format: 1, previous: null }),
      intentText(sampleIntent('under way')),
      rowText(sampleRow('done')),
    ].join('\n')
    await new Promise<void>((resolve) => writer.write(frameOf(text, number, 0), 0, false, () => resolve()))
    writer.close()
    return dataDir
  }

  it('sees every durable row, and leaves open requests to the next start', async (t) => {
    const dataDir = await killed(t)
    const store = await openSettledStore({ dataDir })
    const rows = await store.usage({ workspaceId: 'ws_1', from: 0, to: 1e13, limit: 10 })
    assert.deepEqual(
      rows.map(({ requestId }) => requestId),
      ['done'],
    )
    await store.close()
    assert.equal(isServiceRunning(dataDir), false)
  })

  it('can settle everything, open requests at nothing, and leaves no journal', async (t) => {
    const dataDir = await killed(t)
    const store = await openStoreHere({ dataDir, exclusive: true })
    t.after(() => store.close())
    assert.deepEqual(await settleOrphanedJournal(store, dataDir), { rows: 1, interrupted: 1, damaged: 0 })
    const rows = await store.usage({ workspaceId: 'ws_1', from: 0, to: 1e13, limit: 10 })
    assert.deepEqual(rows.map(({ requestId, outcome }) => `${requestId}: ${outcome}`).toSorted(), [
      'done: completed',
      'under way: interrupted',
    ])
    const left = existsSync(join(dataDir, 'journal')) ? readdirSync(join(dataDir, 'journal')) : []
    assert.deepEqual(
      left.filter((name) => name.endsWith('.journal')),
      [],
    )
    assert.equal(await store.journalPosition(), undefined)
  })
})
