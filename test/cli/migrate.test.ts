import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { Client } from 'pg'
import { reconcileLedger } from '../../src/ledger/reconcile/reconcile.ts'
import { parseMonth } from '../../src/shared/money/sydney-time.ts'
import { journalFiles, journalFolder } from '../../src/ledger/journal/journal-files-on-disk.ts'
import { openJournal } from '../../src/ledger/journal/journal.ts'
import type { Store } from '../../src/store/store.ts'
import { deliverOrphanedJournals } from '../../src/ledger/commands/orphaned-journals.ts'
import { openMove } from '../../src/store/move.ts'
import { openStore } from '../../src/store/open.ts'
import { isServiceRunning, takeServiceLock } from '../../src/store/sqlite/service-lock.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { workerDirectory } from '../../src/cluster/workers/directories.ts'
import { testBooks } from '../support/books.ts'
import { commandLine } from '../support/command-line.ts'
import { sampleIntent, sampleRow } from '../support/ledger-samples.ts'
import { openFiles } from '../support/open-files.ts'
import { startPostgres, type PostgresServer } from '../support/postgres-server.ts'
import { noLimits } from '../support/key-limits.ts'

const september = parseMonth('2026-09')!
const october = parseMonth('2026-10')!
/** What a terminal gets when a line of progress goes away. */
const ERASED = '\r\u001B[1A\u001B[0J'
const always = { from: 0, to: Number.MAX_SAFE_INTEGER }

describe('weir migrate and weir journal ship', () => {
  let server: PostgresServer
  const folder = mkdtempSync(join(tmpdir(), 'weir-migrate-'))

  before(async () => (server = await startPostgres()))
  after(async () => {
    await server.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  /** What a service leaves that is killed. */
  async function leaveJournal(dataDir: string, rows: readonly string[], open: readonly string[] = []): Promise<void> {
    mkdirSync(dataDir, { recursive: true })
    const files = journalFiles(journalFolder(dataDir))
    const journal = openJournal({ files, firstSegment: 1, clock: systemClock, grew() {} })
    await journal.prepare()
    for (const id of open) journal.note(sampleIntent(id))
    await Promise.all(rows.map((id) => journal.settle(sampleRow(id))))
    await journal.flush()
    journal.close()
  }

  /** As if a person saw what is written to stderr. */
  async function onTerminal(args: readonly string[]) {
    Object.defineProperty(process.stderr, 'isTTY', { value: true, configurable: true })
    try {
      return await commandLine(args, { environment: { TERM: 'xterm' } })
    } finally {
      delete (process.stderr as Partial<NodeJS.WriteStream>).isTTY
    }
  }

  /** Books with everything in them: rows of two months, an invoice, a note, an operator's entries. */
  async function filledBooks() {
    const books = await testBooks(september.from)
    const workspace = await books.workspace('acme')
    const price = await books.price('meta/x', { input_per_million: '0.20' }, september.from)
    const rows = await Promise.all(
      Array.from({ length: 2500 }, (_, index) => {
        const at = (index % 2 ? september : october).from + 1000 * index
        return books.row(workspace, 'meta/x', price, at, { inputTokens: 1000 + index })
      }),
    )
    await books.settle(rows)
    books.now = october.to
    await books.invoicing.issue(workspace, september)
    await books.invoicing.credit(workspace, september, null, 'a mistake')
    await books.store.createKey({
      id: 'key_1',
      workspaceId: workspace.id,
      hash: 'h',
      ending: 'x7Qa',
      name: 'Schlüssel',
      createdAt: 5,
      expiresAt: null,
      revokedAt: null,
      ...noLimits,
    })
    const entry = { at: 1, actor: 'token', requestId: 'r', action: 'x', subject: 's', request: null, before: null }
    await books.store.endAudit(await books.store.beginAudit(entry), 'done', null)
    await books.store.addLinkSecret('secret')
    await books.store.setAside(sampleRow('refused'), 'no such month', 7)
    return { books, workspace }
  }

  /** Everything that the store tells, to be compared. */
  async function contentOf(store: Store, workspaceId: string): Promise<object> {
    return {
      workspaces: await store.workspaces(),
      prices: await store.priceVersions(),
      keys: await store.keys({ limit: 100 }),
      rows: await store.usage({ workspaceId, ...always, limit: 100_000 }),
      sums: await store.usageSums({ workspaceId, ...always, groupBy: 'day', limit: 1000 }),
      invoices: await store.invoices(),
      audit: await store.auditLog({ limit: 100 }),
      refused: await store.refusedRows(100),
      secret: await store.linkSecret(),
      position: await store.lastSettledAt(),
    }
  }

  it('moves everything, continues after an interruption, and keeps the old ledger', async () => {
    const { books, workspace } = await filledBooks()
    const { dataDir } = books
    try {
      const expected = await contentOf(books.store, workspace.id)
      await books.store.close()
      const databaseUrl = await server.createDatabase()
      const environment = { WEIR_DATABASE_URL: databaseUrl }

      // Cut off in the middle of the ledger.
      const move = await openMove(dataDir, databaseUrl)
      const cut = move.copy((done) => {
        if (done > 1500) throw new Error('cut off')
      })
      await assert.rejects(cut, /cut off/)
      await move.close()
      const early = await commandLine(['usage', '--workspace', 'acme', '--data', join(folder, 'elsewhere')], {
        environment,
      })
      assert.match(
        early.stderr,
        /a migration to this database is running or was interrupted: run weir migrate --to again\n$/,
      )

      const moved = await onTerminal(['migrate', '--to', databaseUrl, '--data', dataDir, '--json'])
      assert.equal(moved.stderr, '', 'no progress beside JSON')
      const { rows, problems, database } = moved.json<{
        rows: Record<string, number>
        problems: number
        database: string
      }>()
      assert.equal(rows['ledger'], 3750)
      assert.equal(problems, 1, 'the row that was set aside')
      assert.ok(!database.includes('never-shown'))
      assert.ok(existsSync(join(dataDir, 'weir.db.moved')) && !existsSync(join(dataDir, 'weir.db')))

      const store = await openStore({ dataDir, databaseUrl, exclusive: false })
      try {
        assert.deepEqual(await contentOf(store, workspace.id), expected)
        await store.addRows([
          sampleRow('later', { workspaceId: workspace.id, settledAt: october.to + 1, priceVersion: 1, amount: 0n }),
        ])
        assert.equal((await store.usageRow('later'))?.requestId, 'later')
        assert.deepEqual((await reconcileLedger(store)).problems.map(({ check }) => check).toSorted(), [
          'price_version',
          'refused',
        ])
      } finally {
        await store.close()
      }

      const again = await commandLine(['workspaces', 'list', '--data', dataDir])
      assert.match(again.stderr, /was moved to PostgreSQL: set database in weir\.yaml, or WEIR_DATABASE_URL\n$/)
      const nothing = await commandLine(['migrate', '--to', databaseUrl, '--data', dataDir])
      assert.match(nothing.stderr, /was moved to PostgreSQL/)
    } finally {
      rmSync(dataDir, { recursive: true, force: true })
    }
  })

  it('leaves a ledger in use that differs from its copy, and shows its progress on a terminal', async () => {
    const books = await testBooks(september.from)
    try {
      await books.workspace('acme')
      await books.store.close()
      const differing = await server.createDatabase()
      const move = await openMove(books.dataDir, differing)
      await move.to.createWorkspace({ id: 'a', name: 'other', requestsPerMinute: null, createdAt: 1 })
      await move.close()
      const refused = await commandLine(['migrate', '--to', differing, '--data', books.dataDir])
      assert.match(refused.stderr, /^weir: rows of workspaces: 1 in .*, 2 in .*; use another, empty database\n$/)
      takeServiceLock(books.dataDir).close()

      const { code, stderr } = await onTerminal([
        'migrate',
        '--to',
        await server.createDatabase(),
        '--data',
        books.dataDir,
      ])
      assert.equal(code, 0)
      assert.match(stderr, /copying 100 %.*reconciling …/s)
      assert.ok(stderr.endsWith(`reconciling …\n${ERASED}`))
      assert.doesNotMatch(stderr, /copying \d{4}/)
    } finally {
      rmSync(books.dataDir, { recursive: true, force: true })
    }
  })

  it('leaves a ledger in use whose copy does not reconcile to the same, and erases its progress before it says so', async () => {
    const books = await testBooks(september.from)
    const databaseUrl = await server.createDatabase()
    const client = new Client(databaseUrl)
    try {
      const workspace = await books.workspace('acme')
      const price = await books.price('meta/x', { input_per_million: '0.20' }, september.from)
      await books.settle([await books.row(workspace, 'meta/x', price, september.from, { inputTokens: 1000 })])
      await books.store.close()
      const move = await openMove(books.dataDir, databaseUrl)
      await move.copy(() => {})
      await move.close()
      await client.connect()
      await client.query(
        'ALTER TABLE ledger DISABLE TRIGGER ALL; UPDATE ledger SET amount_pico_aud = amount_pico_aud + 1',
      )

      const listeners = process.stderr.listenerCount('resize')
      const { code, stderr, stdout } = await onTerminal(['migrate', '--to', databaseUrl, '--data', books.dataDir])
      assert.deepEqual([code, stdout], [1, ''])
      const failure = `reconciling …\n${ERASED}weir: the ledger in PostgreSQL does not agree with`
      assert.ok(stderr.includes(failure), stderr)
      assert.equal(process.stderr.listenerCount('resize'), listeners)
      assert.ok(existsSync(join(books.dataDir, 'weir.db')))
      const { rows } = await client.query('SELECT finished_at FROM moved_from')
      assert.deepEqual(rows, [{ finished_at: null }], 'no service starts on the copy')
      assert.equal(isServiceRunning(books.dataDir), false)
      assert.equal(openFiles(books.dataDir), 0)
    } finally {
      await client.end()
      rmSync(books.dataDir, { recursive: true, force: true })
    }
  })

  it('refuses a database with another ledger, a directory in use, and one without a ledger', async () => {
    const { books } = await filledBooks()
    try {
      const used = await server.createDatabase()
      const other = await openStore({ dataDir: folder, databaseUrl: used, exclusive: false })
      await other.createWorkspace({ id: 'ws_other', name: 'other', requestsPerMinute: null, createdAt: 1 })
      await other.close()
      const migrate = (...args: string[]) => commandLine(['migrate', ...args])
      const refused = await migrate('--to', used, '--data', books.dataDir)
      assert.match(refused.stderr, /^weir: postgres:\S+ already contains a ledger: choose an empty database\n$/)
      const lock = takeServiceLock(books.dataDir)
      try {
        assert.match((await migrate('--to', used, '--data', books.dataDir)).stderr, /another service is running/)
      } finally {
        lock.close()
      }
      assert.match((await migrate('--to', used, '--data', join(folder, 'none'))).stderr, /there is no ledger in/)
      assert.match((await migrate('--data', books.dataDir)).stderr, /give the database to move to/)
      assert.match(
        (await migrate('--to', 'mysql://x', '--data', books.dataDir)).stderr,
        /^weir: --to: must be sqlite, or/,
      )
    } finally {
      await books.close()
    }
  })

  it('is not needed for removed workers: a start delivers their journals, unless they run', async () => {
    const databaseUrl = await server.createDatabase()
    const dataDir = join(folder, 'fewer')
    for (const number of [1, 2, 3, 4]) {
      await leaveJournal(workerDirectory(dataDir, number), [`of ${number}`, `more of ${number}`], [`open of ${number}`])
    }
    await leaveJournal(dataDir, ['of a service without workers'])
    const lock = takeServiceLock(workerDirectory(dataDir, 4))
    try {
      const delivered = await deliverOrphanedJournals(dataDir, databaseUrl, 1)
      const [alone, second, third, fourth] = delivered
      assert.deepEqual(alone, { directory: dataDir, rows: 1, interrupted: 0, damaged: 0 })
      const found = { rows: 2, interrupted: 1, damaged: 0 }
      assert.deepEqual(second, { directory: workerDirectory(dataDir, 2), ...found })
      assert.deepEqual(third, { directory: workerDirectory(dataDir, 3), ...found })
      assert.match(fourth && 'failure' in fourth ? fourth.failure : '', /another service is running on \S+worker-4/)
      assert.equal(delivered.length, 4, 'the first one is for the worker that runs there')
    } finally {
      lock.close()
    }
    const again = await deliverOrphanedJournals(dataDir, databaseUrl, 1)
    assert.deepEqual(
      again.map(({ directory }) => directory),
      [workerDirectory(dataDir, 4)],
    )
    const store = await openStore({ dataDir, databaseUrl, exclusive: false })
    const rows = await store.usage({ workspaceId: 'ws_1', ...always, limit: 100 })
    await store.close()
    assert.equal(rows.length, 10, 'three of each worker, and one')
  })

  it('ships the journal of a service that will not start again, once, and settles open requests at nothing', async () => {
    const databaseUrl = await server.createDatabase()
    const environment = { WEIR_DATABASE_URL: databaseUrl }
    const dataDir = join(folder, 'dead')
    await leaveJournal(dataDir, ['a', 'b'], ['open'])

    const ship = () => commandLine(['journal', 'ship', dataDir, '--json'], { environment })
    const lock = takeServiceLock(dataDir)
    try {
      assert.match((await ship()).stderr, /another service is running on \S+dead: stop it first\n$/)
    } finally {
      lock.close()
    }
    const found = { data_dir: dataDir, rows: 2, interrupted: 1, damaged_segments: 0 }
    assert.deepEqual((await ship()).json(), found)
    assert.deepEqual((await ship()).json(), { ...found, rows: 0, interrupted: 0 })
    assert.deepEqual(readdirSync(journalFolder(dataDir)), ['owner'])
    const store = await openStore({ dataDir, databaseUrl, exclusive: false })
    try {
      const rows = await store.usage({ workspaceId: 'ws_1', ...always, limit: 10 })
      assert.deepEqual(rows.map(({ requestId, outcome }) => `${requestId} ${outcome}`).toSorted(), [
        'a completed',
        'b completed',
        'open interrupted',
      ])
    } finally {
      await store.close()
    }
    assert.match((await commandLine(['journal', 'ship', dataDir])).stderr, /the configuration has no PostgreSQL/)
    assert.match((await commandLine(['journal', 'ship', folder], { environment })).stderr, /has no journal\n$/)
    assert.match((await commandLine(['journal'], { environment })).stderr, /weir journal ship DIR/)
  })
})
