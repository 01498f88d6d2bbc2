import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { stringify } from 'yaml'
import { doctor } from '../../src/operate/doctor/commands/doctor.ts'
import { journal } from '../../src/ledger/commands/journal.ts'
import { deliverOrphanedJournals } from '../../src/ledger/commands/orphaned-journals.ts'
import { migrate } from '../../src/store/commands/migrate.ts'
import { withoutPassword } from '../../src/shared/address-without-password.ts'
import { journalFiles, journalFolder } from '../../src/ledger/journal/journal-files-on-disk.ts'
import { openJournal } from '../../src/ledger/journal/journal.ts'
import { openStore } from '../../src/store/open.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { MARCH, stageWithRows } from '../support/books-stage.ts'
import { sampleIntent, sampleRow } from '../support/ledger-samples.ts'
import { startPostgres, type PostgresServer } from '../support/postgres-server.ts'
import { printed } from '../support/printed.ts'

describe('a ledger that moves to PostgreSQL', () => {
  let server: PostgresServer
  const folder = mkdtempSync(join(tmpdir(), 'weir-moving-'))
  before(async () => (server = await startPostgres()))
  after(async () => {
    await server.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  /** What a service leaves that is killed. */
  async function leaveJournal(directory: string, rows: readonly string[], open: readonly string[]): Promise<void> {
    mkdirSync(directory, { recursive: true })
    const files = journalFiles(journalFolder(directory))
    const left = openJournal({ files, firstSegment: 1, clock: systemClock, grew() {} })
    await left.prepare()
    for (const id of open) left.note(sampleIntent(id))
    // One after the other, so that each is written by itself.
    for (const id of rows) await left.settle(sampleRow(id))
    await left.flush()
    left.close()
  }

  async function configFor(databaseUrl: string): Promise<string> {
    const file = join(mkdtempSync(join(folder, 'config-')), 'weir.yaml')
    writeFileSync(file, stringify({ database: databaseUrl, data_dir: 'data', models: [] }))
    return file
  }

  it('includes the rows of an orphaned journal, and the command reports them', async (t) => {
    const { books, dataDir } = await stageWithRows(t)
    await leaveJournal(dataDir, [], ['open'])
    const databaseUrl = await server.createDatabase()
    await books.store.setAside(sampleRow('refused'), 'no such month', MARCH)
    await books.store.close()
    const { stdout, stderr, failure } = await printed(migrate, '--to', databaseUrl, '--data', dataDir)
    assert.equal(failure, undefined)
    assert.equal(stderr, '')
    assert.equal(
      stdout,
      `4 ledger rows and everything else in ${dataDir} were copied to ${withoutPassword(databaseUrl)}, and both agree.
weir reconcile found problems before and after: run it to see them.
Set database to this address in weir.yaml, or WEIR_DATABASE_URL, and start the service.
`,
    )
    assert.ok(existsSync(join(dataDir, 'weir.db.moved')))
    const store = await openStore({ dataDir, databaseUrl, exclusive: false })
    assert.deepEqual(
      (await store.workspaces()).map(({ name }) => name),
      ['acme'],
    )
    await store.close()
    const again = await printed(migrate, '--to', databaseUrl, '--data', dataDir)
    assert.ok(again.failure)
  })

  it('goes to the configured database unless another is named, and is reported as JSON', async (t) => {
    const { books, dataDir } = await stageWithRows(t)
    await books.store.close()
    const databaseUrl = await server.createDatabase()
    const config = await configFor(databaseUrl)
    const { stdout } = await printed(migrate, '--json', '--config', config, '--data', dataDir)
    const { rows, ...rest } = JSON.parse(stdout) as { rows: Readonly<Record<string, number>> }
    assert.deepEqual(rest, { data_dir: dataDir, database: withoutPassword(databaseUrl), problems: 0 })
    assert.equal(rows['ledger'], 3)
    const healthy = await printed(doctor, '--config', config)
    assert.ok(healthy.stdout.includes(`\n✔ database: ${withoutPassword(databaseUrl)} answers\n`))
  })

  it('gets the rows of a service that will not start again, each once', async () => {
    const config = await configFor(await server.createDatabase())
    const dead = join(folder, 'dead')
    await leaveJournal(dead, ['a', 'b'], ['open'])
    assert.equal(
      (await printed(journal, 'ship', dead, '--config', config)).stdout,
      '2 rows of the journal are in the database.\n1 request under way settled at no charge.\n',
    )
    assert.equal(
      (await printed(journal, 'ship', dead, '--config', config)).stdout,
      '0 rows of the journal are in the database.\n',
    )
    const other = join(folder, 'other')
    await leaveJournal(other, ['c'], [])
    assert.deepEqual(JSON.parse((await printed(journal, 'ship', other, '--json', '--config', config)).stdout), {
      data_dir: other,
      rows: 1,
      interrupted: 0,
      damaged_segments: 0,
    })
    const single = join(folder, 'single')
    await leaveJournal(single, ['d'], [])
    assert.equal(
      (await printed(journal, 'ship', single, '--config', config)).stdout,
      '1 row of the journal is in the database.\n',
    )
  })

  it('gets the readable part of a damaged journal, and the command reports what is lost', async () => {
    const config = await configFor(await server.createDatabase())
    const damaged = join(folder, 'damaged')
    await leaveJournal(damaged, ['x', 'y', 'z'], [])
    const segment = readdirSync(journalFolder(damaged)).find((name) => /\d/.test(name))
    const file = join(journalFolder(damaged), segment ?? '')
    const bytes = readFileSync(file)
    bytes[bytes.indexOf('"y"') + 1] = 0
    writeFileSync(file, bytes)
    assert.match(
      (await printed(journal, 'ship', damaged, '--config', config)).stdout,
      /\nThe disk lost a part of 1 segment: see the \.damaged files\.\n$/,
    )
  })

  it('gets the journals of workers that no longer exist, but not of current workers, nor of SQLite', async () => {
    const databaseUrl = await server.createDatabase()
    const dataDir = join(folder, 'workers')
    const worker = (number: number): string => join(dataDir, `worker-${number}`)
    await leaveJournal(worker(2), ['d'], [])
    await leaveJournal(worker(3), ['e', 'f'], [])
    await leaveJournal(worker(4), ['g'], [])
    await (await openStore({ dataDir: worker(4), exclusive: false })).close()
    mkdirSync(worker(5))
    mkdirSync(journalFolder(worker(5)))
    assert.deepEqual(await deliverOrphanedJournals(dataDir, databaseUrl, 2), [
      { directory: worker(3), rows: 2, interrupted: 0, damaged: 0 },
    ])
  })
})
