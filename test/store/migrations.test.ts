import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { openAccounts } from '../../src/workspaces/accounts.ts'
import { reconcileLedger } from '../../src/ledger/reconcile/reconcile.ts'
import { memoryChanges } from '../../src/cluster/changes/memory.ts'
import { formatKey } from '../../src/workspaces/keys/api-key.ts'
import { parseSignedAud } from '../../src/shared/money/money.ts'
import { parseMonth } from '../../src/shared/money/sydney-time.ts'
import { openStore } from '../../src/store/open.ts'
import { migrateSqlite, readSqliteStep, sqliteSteps } from '../../src/store/sqlite/migrate.ts'
import { takeServiceLock } from '../../src/store/sqlite/service-lock.ts'
import { sampleRow } from '../support/ledger-samples.ts'
import { settleEarlierRuns } from '../support/settled-directory.ts'

/** Databases out there have taken these steps as they are. */
const released: Readonly<Record<string, string>> = {
  '0001-first-tables.sql': '02190142e0a18873eeb4f836783ec29f3f5d680e1101baf454e8f7d93eed418e',
  '0002-intents-with-owner.sql': '75c72f00919f442fab87d6399452fc3c114cc2f2a54099d7d0c4c06ce38e927e',
  '0003-unfinished-notes.sql': '8d5576020b7491dedbbc05e73429ca3597c80ac1357b14f4bab42fae4a00c530',
  '0004-refused-rows.sql': '4546793aec0b32c58c2d08e88fa61279a163d6d1f8d802376f3b0e859d48a0ce',
  '0005-key-names.sql': '33cb7d198092e3858e5c465b4561f4a2a6cbe941d2deee89064b9157f630ed65',
  '0006-credits-and-reissues.sql': 'c7c1db852f4cdf210c0ef651c5f38fe24f503f8648fa7785c545f1ddad6f7a96',
  '0007-audit-log.sql': 'f20bd83d7bb8538a005c7c343a5c3a82b1d57bb9d6a60c22d96a47ae8e1dec1f',
  '0008-journal.sql': '10499da97f248a5fc5a329269a5f2798e7322579d1a66128d6e1080b07abebad',
  '0009-keys-by-lookup.sql': '1c0ec077b6fb6f2ccbd6e15316f44e9de4a6db2d2886e017836abdfdb15895ce',
  '0010-lane-settings.sql': '8bb3f5934e1342c39c00950aebbe2d0ad7f05d93ab2265edd55d8b664b7af45a',
  '0011-invoices-by-time.sql': '3a8654d57edc5f6a505a3546df4cf44170ca0d4729763096270f034808b2f725',
  '0012-failures.sql': 'a107035d5084068837af14033e124a605cd6e62ca5947f33b20b1805c8e20895',
  '0013-console-sessions.sql': 'deb7fe82195bc6dcceb484594382386372440cc6173e43226dbe60d03b741702',
  '0014-key-endings.sql': '577aa6e8ccd979b20746d01c3bcf474b0d62c2ae200c7c7ad8c1eff48dc9f41d',
  '0015-failed-requests.sql': 'f74084eae35be25b8924ffcf76d95954b95bff9f77d7c8c75ad1b5b2ba80e273',
  '0016-payments.sql': 'e078cd0784cf87e7fe637cfad3e0f3f41749e2b11653f30c1219d2aa83c0031c',
  '0017-key-limits.sql': '1c93170e9e41e0b8800b5fb6dab403cb9fd61485993ab3424aa2eea429299d16',
  '0018-invoice-emails.sql': 'd6bd169d39c429f0c761678fefaf90ada2daf3e462a93307b50e754fe66ca532',
  '0019-requests-per-workspace.sql': '7b018f8f5dfb26abb1658378644ce44897eca7c25c2dcc2d341e8943a6eeda81',
  '0020-key-spend.sql': '3a15cfcb9067878173cdfcf0a0406966646ea6aa3145115f7cc882e2bbf9c92f',
  '0021-people.sql': '3b5dacfb90fa2d550542ab451cdd1886415aef6a049be40307868df35287fb5a',
  '0022-managing-keys.sql': 'b2c671e8f5e8acfdefb89699b45baac9a5f419641154ee4760dc0f10c1ae24b7',
  '0023-alerts.sql': 'afcf3ca7a081e3ad81828d7241654a7450368aa8c1b8f57b42d541a4482d4b64',
  '0024-keys-with-spend-limit.sql': '8e373eba4e61abcacf2acb2fe3193cc99932b0ff5efa311bb07bf11e5fc1234a',
  '0025-tokens-per-minute.sql': 'de850f64374328a229abd3542524a5a2f21c8892a01a69cbe2689feb5b7556dd',
  '0026-job-leases.sql': 'f7e3b5be05000aad59a0e55e7fba2b5eea98146c3114777e5cb33ecb43b20c08',
  '0027-find-requests.sql': 'b8b161dbe9c130fbd762bc1fdc21308a27a922c8b5c448af867ce5cb5c30e178',
  '0028-stored-files.sql': '36ba3fc7fe8996dbf872feb1ec54f626f01fa578ad4dc5ae33134ba8b379586c',
  '0029-batches.sql': '57e3152ccedc1d60b5f5bd36d10b5ea3440644be22d6ca38a960e65c831d370d',
  '0030-service-tier.sql': '8d7055cd62e47dfeec513dbdc004ec9db83dc9b31cd27932f3b174c8d64b65c1',
  '0031-batch-progress.sql': 'ffddc1a37540dae54395122a5237b5f7284733e2d8bfd6e6c78273c359d751ef',
}

const FIXTURE = new URL('../fixtures/data-directory-1/weir.db', import.meta.url)
const november = parseMonth('2026-11')!

function emptyDirectory(t: TestContext): string {
  const dataDir = mkdtempSync(join(tmpdir(), 'weir-migrations-'))
  t.after(() => rmSync(dataDir, { recursive: true, force: true }))
  return dataDir
}

/** A copy of the data directory that schema 1 wrote. */
function oldDirectory(t: TestContext): string {
  const dataDir = emptyDirectory(t)
  copyFileSync(FIXTURE, join(dataDir, 'weir.db'))
  return dataDir
}

function look<Value>(dataDir: string, work: (database: DatabaseSync) => Value): Value {
  const database = new DatabaseSync(join(dataDir, 'weir.db'), { readOnly: true })
  try {
    return work(database)
  } finally {
    database.close()
  }
}

const versionOf = (dataDir: string): unknown =>
  look(dataDir, (database) => database.prepare('PRAGMA user_version').get()?.['user_version'])

/** Every table, index and trigger, as it was written. */
const schemaOf = (database: DatabaseSync): object[] =>
  database.prepare("SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name").all()

/** Every row of every table but the intents, which the second step moves. */
function contentOf(database: DatabaseSync): Map<string, Record<string, unknown>[]> {
  const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all()
  const names = tables.map(({ name }) => String(name)).filter((name) => name !== 'intents')
  return new Map(
    names.map((name) => {
      const select = database.prepare(`SELECT * FROM ${name}`)
      select.setReadBigInts(true)
      return [name, select.all()]
    }),
  )
}

const requestsIn = (database: DatabaseSync): unknown[] =>
  database
    .prepare('SELECT requests FROM intents')
    .all()
    .flatMap(({ requests }) => JSON.parse(String(requests)) as unknown[])

describe('the migrations', () => {
  it('leave the schema protected', (t) => {
    const dataDir = emptyDirectory(t)
    const database = new DatabaseSync(join(dataDir, 'weir.db'))
    t.after(() => database.close())
    migrateSqlite(database, dataDir, { exclusive: true })
    const tampering = 'PRAGMA writable_schema = ON; DELETE FROM sqlite_schema'
    assert.throws(() => database.exec(tampering), /sqlite_master may not be modified/)
  })

  it('never change once they are released', () => {
    for (const [step, expected] of Object.entries(released)) {
      assert.ok(
        sqliteSteps.includes(step as never),
        `${step} is gone, but databases have taken it: add a new step instead`,
      )
      const found = hash('sha256', readSqliteStep(step))
      assert.equal(found, expected, `${step} has changed, but databases have taken it: add a new step instead`)
    }
    assert.deepEqual(sqliteSteps, Object.keys(released), 'pin the hash of a new step here, at the end')
  })

  it('are all of the files in their folder', () => {
    const folder = new URL('../../src/store/migrations/sqlite/', import.meta.url)
    assert.deepEqual(readdirSync(folder).toSorted(), sqliteSteps)
  })

  it('begin with exactly the tables that schema 1 had', (t) => {
    const fresh = new DatabaseSync(':memory:')
    t.after(() => fresh.close())
    fresh.exec(readSqliteStep(sqliteSteps[0]))
    assert.deepEqual(schemaOf(fresh), look(oldDirectory(t), schemaOf))
  })

  it('lead an old directory and a new one to the same tables', async (t) => {
    const [fresh, old] = [emptyDirectory(t), oldDirectory(t)]
    for (const dataDir of [fresh, old]) await (await openStore({ dataDir, exclusive: true })).close()
    assert.deepEqual(look(old, schemaOf), look(fresh, schemaOf))
    assert.deepEqual([versionOf(old), versionOf(fresh)], [sqliteSteps.length, sqliteSteps.length])
  })

  it('are applied once when several processes open the directory at the same time', async (t) => {
    const dataDir = oldDirectory(t)
    const before = look(dataDir, requestsIn)
    const stores = await Promise.all([0, 1, 2, 3].map(() => openStore({ dataDir, exclusive: false })))
    for (const store of stores) assert.equal((await store.workspaces()).length, 2)
    await Promise.all(stores.map((store) => store.close()))
    assert.deepEqual(look(dataDir, requestsIn), before)
    assert.equal(look(dataDir, (database) => database.prepare('SELECT * FROM data_directory').all()).length, 1)
  })

  it('are not applied by a command while a service of an older version runs', async (t) => {
    const dataDir = oldDirectory(t)
    const service = takeServiceLock(dataDir)
    await assert.rejects(openStore({ dataDir, exclusive: false }), {
      code: 'ERR_DATA_DIR_OLDER',
      message: /restart the service/,
    })
    assert.equal(versionOf(dataDir), 1)
    service.close()
    await (await openStore({ dataDir, exclusive: false })).close()
    assert.equal(versionOf(dataDir), sqliteSteps.length)
  })

  it('refuse a directory that a newer version wrote', async (t) => {
    const dataDir = oldDirectory(t)
    const database = new DatabaseSync(join(dataDir, 'weir.db'))
    database.exec('PRAGMA user_version = 99')
    database.close()
    await assert.rejects(openStore({ dataDir, exclusive: true }), { code: 'ERR_DATA_DIR_NEWER' })
    assert.equal(versionOf(dataDir), 99)
    // Nothing of the failed start is left.
    takeServiceLock(dataDir).close()
  })
})

describe('a data directory of schema 1', () => {
  it('keeps every row, and its open requests, when it is migrated', async (t) => {
    const dataDir = oldDirectory(t)
    const before = look(dataDir, contentOf)
    const noted = look(dataDir, requestsIn)
    assert.equal(before.get('ledger')?.length, 37)
    const store = await openStore({ dataDir, exclusive: true })
    const open = await store.earlierIntents()
    // Its row is set aside, so it must not also be settled at nothing.
    await store.setAside(sampleRow(open[0]!.requestId), 'a mistake', 1)
    assert.deepEqual(await store.earlierIntents(), open.slice(1))
    await store.close()

    const after = look(dataDir, contentOf)
    for (const [table, rows] of before) {
      // Later steps may have added columns.
      const columns = Object.keys(rows[0] ?? {})
      const kept = after.get(table)?.map((row) => Object.fromEntries(columns.map((name) => [name, row[name]])))
      assert.deepEqual(
        kept,
        rows.map((row) => ({ ...row })),
        table,
      )
    }
    assert.deepEqual(look(dataDir, requestsIn), noted)
    // Requests that are settled stay in their batch until all of it is. Three of these are open.
    assert.equal(open.length, noted.length)
    const settled = new Set(after.get('ledger')?.map((row) => row['request_id']))
    assert.equal(open.filter(({ requestId }) => !settled.has(requestId)).length, 3)
  })

  it('keeps working: open requests are settled at nothing, the ledger reconciles, and the figures are unchanged', async (t) => {
    const dataDir = oldDirectory(t)
    const store = await openStore({ dataDir, exclusive: true })
    t.after(() => store.close())
    const now = november.from + 14 * 86_400_000
    assert.ok((await settleEarlierRuns(store, dataDir, now)) >= 3)
    assert.equal(await settleEarlierRuns(store, dataDir, now + 1), 0)
    assert.deepEqual(look(dataDir, requestsIn), [])
    for (const id of ['request0035', 'request0036', 'request0037']) {
      const row = await store.usageRow(id)
      assert.deepEqual([row?.outcome, row?.amount, row?.settledAt, row?.priceVersion], ['interrupted', 0n, now, 8])
    }
    const old = await store.usageRow('request0034')
    assert.deepEqual([old?.outcome, old?.httpStatus, old?.errorCode], ['completed', null, null])

    const proof = await reconcileLedger(store)
    assert.deepEqual(proof, {
      workspaces: 2,
      rows: 40,
      invoices: 2,
      amount: 9_288_355_484_350_000n,
      problems: [],
    })
    const documents = (await store.invoices()).map(({ document }) => document)
    assert.deepEqual(
      documents.map(({ number, subtotal, gst, total, ledger_rows: rows }) => [number, subtotal, gst, total, rows]),
      [
        ['INV-000001', '9288.60', '928.86', '10217.46', 23],
        ['ADJ-000001', '-0.24', '-0.02', '-0.26', 1],
      ],
    )
    const spent = await store.usageSums({
      from: november.from,
      to: november.to,
      groupBy: 'workspace',
      limit: 9,
      creditNote: '',
    })
    assert.deepEqual(
      spent.map(({ group, amount, requests }) => [group, amount, requests]),
      [
        ['ws_acme', 195_000_000n, 4],
        ['ws_globex', 32_500_000n, 4],
      ],
    )
  })

  it('has the amounts of its documents, as if they were issued today', async (t) => {
    const dataDir = oldDirectory(t)
    const store = await openStore({ dataDir, exclusive: false })
    const documents = await store.invoices()
    await store.close()
    const amounts = look(dataDir, (database) =>
      database
        .prepare('SELECT * FROM document_amounts ORDER BY number')
        .all()
        .map((row) => ({ ...row })),
    )
    assert.deepEqual(new Set(documents.map(({ kind }) => kind)), new Set(['tax_invoice', 'adjustment_note']))
    assert.deepEqual(
      amounts,
      documents
        .map(({ number, document: { adjusts, due, total, lines_total: lines } }) => ({
          number,
          invoice: adjusts ?? number,
          due,
          total_cents: Math.round(Number(total) * 100),
          lines_high: Number(parseSignedAud(lines) / 1_000_000_000n),
          lines_low: Number(parseSignedAud(lines) % 1_000_000_000n),
        }))
        .toSorted((one, other) => (one.number < other.number ? -1 : 1)),
    )
  })

  it('keeps its callers, limits and prices', async (t) => {
    const store = await openStore({ dataDir: oldDirectory(t), exclusive: true })
    t.after(() => store.close())
    const accounts = await openAccounts(store, { now: () => november.from, monotonic: () => 0 }, memoryChanges())
    const callers = await Promise.all(
      [1, 2, 3].map(async (seed) => accounts.authenticate(formatKey(Buffer.alloc(32, seed)))),
    )
    assert.deepEqual(
      callers.map((caller) => caller && [caller.workspace.name, caller.keyId]),
      [['acme', 'key_1'], undefined, ['globex', 'key_3']],
    )
    const acme = accounts.workspace('acme')
    assert.deepEqual(acme.spendLimit, { amount: 20_000_000_000_000_000n, isSoft: true })
    assert.equal(acme.buyer.abn, '83914571673')
    assert.equal(accounts.workspace('globex').requestsPerMinute, 90)
    const prices = await store.priceVersions()
    assert.deepEqual(
      prices.map(({ id, model, workspaceId, prices: list }) => [id, model, workspaceId, list === null]),
      [
        [1, 'meta/llama', null, false],
        [2, 'sd/pictures', null, false],
        [3, 'sd/pictures#1024x1792 hd', null, false],
        [4, 'openai/whisper', null, false],
        [5, 'meta/llama@acme', null, false],
        [6, 'meta/llama', 'ws_globex', false],
        [7, 'meta/llama', 'ws_globex', true],
        [8, 'meta/llama', null, false],
      ],
    )
  })
})
