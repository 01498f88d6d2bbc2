import assert from 'node:assert/strict'
import fs, {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { JOURNAL_FOLDER, segmentName } from '../../src/ledger/journal/segment-names.ts'
import { openStoreHere } from '../../src/store/open.ts'
import { openUnchanging, takeBackup } from '../../src/operate/backup/backup.ts'
import { restoreBackup } from '../../src/operate/backup/restore.ts'
import { diskSteps } from '../support/disk-steps.ts'
import { sampleRow } from '../support/ledger-samples.ts'
import { openFiles } from '../support/open-files.ts'

const NOW = Date.UTC(2026, 10, 17, 1, 2, 3, 4)
/** More than one piece of a copy, and none of them alike. */
const segments = new Map([
  [7, Buffer.from('seven')],
  [12, Buffer.from(Uint32Array.from({ length: 700_000 }, (_, index) => index).buffer)],
  [13, Buffer.alloc(0)],
])

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'weir-restore-'))
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** A backup of a directory with one row, a journal, and a token. */
async function backupOf(t: TestContext) {
  const dataDir = folder(t)
  const store = await openStoreHere({ dataDir, exclusive: false })
  await store.createWorkspace({ id: 'ws_1', name: 'acme', requestsPerMinute: null, createdAt: 1 })
  await store.addRows([sampleRow('a', { settledAt: 300 })])
  await store.close()
  writeFileSync(join(dataDir, 'operator-token'), 'token')
  mkdirSync(join(dataDir, JOURNAL_FOLDER))
  for (const [segment, bytes] of segments) writeFileSync(join(dataDir, JOURNAL_FOLDER, segmentName(segment)), bytes)
  const file = join(folder(t), 'books.backup')
  const made = await takeBackup({ dataDir, file, force: false, now: NOW, progress() {} })
  return { dataDir, file, made }
}

const restore = (file: string, dataDir: string, force = false) =>
  restoreBackup({ file, dataDir, force, now: NOW, actor: 'root' })

describe('a backup that is restored', () => {
  it('has the database, every segment of the journal and the token, readable only by its owner', async (t) => {
    const { file, made } = await backupOf(t)
    const dataDir = folder(t)
    const { description, replaced } = restore(file, dataDir)
    assert.deepEqual([description, replaced], [made.description, undefined])
    const journal = join(dataDir, JOURNAL_FOLDER)
    assert.deepEqual(readdirSync(journal).toSorted(), [...segments.keys()].map(segmentName).toSorted())
    for (const [segment, bytes] of segments) {
      assert.ok(readFileSync(join(journal, segmentName(segment))).equals(bytes), `segment ${segment}`)
    }
    assert.equal(readFileSync(join(dataDir, 'operator-token'), 'utf8'), 'token')
    for (const name of ['operator-token', 'weir.db', join(JOURNAL_FOLDER, segmentName(7))]) {
      assert.equal(statSync(join(dataDir, name)).mode & 0o777, 0o600, name)
    }
    assert.deepEqual(
      readdirSync(dataDir).filter((name) => name.startsWith('restoring-')),
      [],
    )
    const store = await openStoreHere({ dataDir, exclusive: false })
    t.after(() => store.close())
    assert.equal(await store.lastSettledAt(), 300)
  })

  it('replaces existing data only with force, and moves it aside', async (t) => {
    const { file } = await backupOf(t)
    const dataDir = folder(t)
    writeFileSync(join(dataDir, 'weir.db'), 'other books')
    mkdirSync(join(dataDir, 'models'))
    assert.throws(() => restore(file, dataDir), { code: 'ERR_DATA_DIR_USED' })
    assert.equal(readFileSync(join(dataDir, 'weir.db'), 'utf8'), 'other books')
    const { replaced } = restore(file, dataDir, true)
    assert.equal(replaced, join(dataDir, 'before-restore-2026-11-17T01-02-03-004Z'))
    assert.equal(readFileSync(join(replaced, 'weir.db'), 'utf8'), 'other books')
    assert.ok(readdirSync(dataDir).includes('models'), 'models stay')
    assert.notEqual(readFileSync(join(dataDir, 'weir.db'), 'latin1'), 'other books')
  })

  it('is on the disk before it has its name, and is restored with the database moved away first and put back last', async (t) => {
    const { dataDir: books, file } = await backupOf(t)
    const saving = await diskSteps(t, dirname(file))
    await takeBackup({ dataDir: books, file, force: true, now: NOW, progress() {} })
    assert.deepEqual(saving.slice(-4), [
      'write books.backup.part',
      'sync books.backup.part',
      'rename books.backup.part to books.backup',
      'sync .',
    ])
    const dataDir = folder(t)
    for (const name of ['a', 'weir.db', 'weir.db-wal', 'weir.db-shm']) writeFileSync(join(dataDir, name), 'other books')
    const steps = await diskSteps(t, dataDir)
    restore(file, dataDir, true)
    const [staged, aside] = ['restoring-2026-11-17T01-02-03-004Z', 'before-restore-2026-11-17T01-02-03-004Z']
    const written = (name: string) => [`write ${staged}/${name}`, `sync ${staged}/${name}`]
    assert.deepEqual(steps, [
      `make ${staged}`,
      ...written('weir.db'),
      `make ${staged}/${JOURNAL_FOLDER}`,
      ...[...segments.keys()]
        .flatMap((segment) => written(`${JOURNAL_FOLDER}/${segmentName(segment)}`))
        // Nothing is written to an empty one.
        .filter((step) => step !== `write ${staged}/${JOURNAL_FOLDER}/${segmentName(13)}`),
      `sync ${staged}/${JOURNAL_FOLDER}`,
      ...written('operator-token'),
      `sync ${staged}`,
      `make ${aside}`,
      ...['weir.db', 'weir.db-wal', 'weir.db-shm', 'a'].map((name) => `rename ${name} to ${aside}/${name}`),
      `sync ${aside}`,
      ...[JOURNAL_FOLDER, 'operator-token', 'weir.db'].map((name) => `rename ${staged}/${name} to ${name}`),
      `remove ${staged}`,
      'sync .',
    ])
  })

  it('removes what an interrupted restore has left, and keeps what earlier ones have moved aside', async (t) => {
    const { file } = await backupOf(t)
    const dataDir = folder(t)
    for (const name of ['restoring-earlier', 'before-restore-earlier']) {
      mkdirSync(join(dataDir, name))
      writeFileSync(join(dataDir, name, 'weir.db'), 'older books')
    }
    assert.throws(() => restore(file, dataDir), { code: 'ERR_DATA_DIR_USED' })
    writeFileSync(join(dataDir, 'weir.db'), 'other books')
    const { replaced } = restore(file, dataDir, true)
    assert.deepEqual(readdirSync(replaced ?? ''), ['weir.db'])
    assert.equal(readFileSync(join(dataDir, 'before-restore-earlier', 'weir.db'), 'utf8'), 'older books')
    assert.equal(existsSync(join(dataDir, 'restoring-earlier')), false)
  })

  it('is complete even if the disk takes only a part of each write', async (t) => {
    const { dataDir: books, file } = await backupOf(t)
    const { writeSync } = fs
    t.mock.method(fs, 'writeSync', ((handle: number, bytes: Buffer, offset = 0, _length?: number, position?: number) =>
      writeSync(
        handle,
        bytes,
        offset,
        Math.min(bytes.length - (offset ?? 0), 100_000),
        position,
      )) as typeof fs.writeSync)
    syncBuiltinESMExports()
    t.after(() => {
      t.mock.restoreAll()
      syncBuiltinESMExports()
    })
    await takeBackup({ dataDir: books, file, force: true, now: NOW, progress() {} })
    const dataDir = folder(t)
    restore(file, dataDir)
    for (const [segment, bytes] of segments) {
      assert.ok(readFileSync(join(dataDir, JOURNAL_FOLDER, segmentName(segment))).equals(bytes), `segment ${segment}`)
    }
  })

  it('leaves no file open, and neither does making it', async (t) => {
    const { file } = await backupOf(t)
    restore(file, folder(t))
    assert.equal(openFiles(join(tmpdir(), 'weir-restore-')), 0)
  })

  it('leaves the directory unchanged if it is damaged', async (t) => {
    const { file } = await backupOf(t)
    const dataDir = folder(t)
    const bytes = readFileSync(file)
    bytes[5000] = (bytes[5000] ?? 0) ^ 1
    writeFileSync(file, bytes)
    assert.throws(() => restore(file, dataDir))
    assert.deepEqual(readdirSync(dataDir), [])
  })
})

describe('a backup beside a running service', () => {
  it('writes to the database what the service could not while it was copied, and stops no write', async (t) => {
    const dataDir = folder(t)
    const store = await openStoreHere({ dataDir, exclusive: false })
    t.after(() => store.close())
    await store.createWorkspace({ id: 'ws_1', name: 'acme', requestsPerMinute: null, createdAt: 1 })
    /** Of the database itself, without what is in its WAL. */
    const workspaces = (): unknown => {
      const database = openUnchanging(join(dataDir, 'weir.db'))
      try {
        return database.prepare('SELECT count(*) AS count FROM workspaces').get()?.['count']
      } catch {
        return 'no table'
      } finally {
        database.close()
      }
    }
    const wal = (): number => statSync(join(dataDir, 'weir.db-wal')).size
    const before = wal()
    assert.notEqual(workspaces(), 1)
    await takeBackup({ dataDir, file: join(folder(t), 'books.backup'), force: false, now: NOW, progress() {} })
    assert.equal(workspaces(), 1)
    assert.equal(wal(), before)
  })

  it('copies a megabyte at a time, which is on the disk before the disk is left to others for as long', async (t) => {
    const dataDir = folder(t)
    const store = await openStoreHere({ dataDir, exclusive: false })
    await store.close()
    const database = new DatabaseSync(join(dataDir, 'weir.db'))
    database.exec('CREATE TABLE filler (bytes BLOB); INSERT INTO filler VALUES (zeroblob(3000000))')
    database.close()
    const waits: number[] = []
    t.mock.method(Atomics, 'wait', (...given: Parameters<typeof Atomics.wait>) => {
      waits.push(given[3] ?? 0)
      return 'timed-out'
    })
    const target = folder(t)
    // What an earlier one has left that was killed.
    writeFileSync(join(target, 'books.backup.part'), 'older')
    const steps = await diskSteps(t, target)
    const pages: number[] = []
    await takeBackup({
      dataDir,
      file: join(target, 'books.backup'),
      force: false,
      now: NOW,
      progress: (done) => void pages.push(done),
    })
    assert.ok(pages.length >= 3)
    assert.deepEqual(
      pages,
      pages.map((_, index) => 256 * (index + 1)),
    )
    assert.deepEqual(steps.slice(0, 1 + pages.length), [
      'remove books.backup.part',
      ...pages.map(() => 'sync books.backup.part'),
    ])
    assert.equal(waits.length, pages.length)
    assert.ok(waits.every((ms) => ms > 0))
  })
})
