import assert from 'node:assert/strict'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
  closeSync,
} from 'node:fs'
import { hash } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { toFile } from 'openai'
import { FILES_FOLDER } from '../../src/batches/file-store.ts'
import { startService } from '../../src/compose.ts'
import { loadConfig } from '../../src/config.ts'
import { reconcileLedger } from '../../src/ledger/reconcile/reconcile.ts'
import { frameOf, scanFrames, headText, rowText, type SegmentHead } from '../../src/ledger/journal/records.ts'
import { JOURNAL_FOLDER, segmentName } from '../../src/ledger/journal/segment-names.ts'
import type { LedgerRow } from '../../src/ledger/rows.ts'
import { openStore } from '../../src/store/open.ts'
import { KEPT_FILES } from '../../src/operate/backup/backup-file.ts'
import { openUnchanging, takeBackup, type MadeBackup } from '../../src/operate/backup/backup.ts'
import { sqliteSteps } from '../../src/store/sqlite/migrate.ts'
import { restoreBackup } from '../../src/operate/backup/restore.ts'
import { takeServiceLock } from '../../src/store/sqlite/service-lock.ts'
import { chatLine } from '../support/batch-lines.ts'
import { linesIn, reached, sdkOf, submit } from '../support/batches.ts'
import { chatStage, stageConfig } from '../support/chat-stage.ts'
import { cli } from '../support/cli.ts'
import { commandLine } from '../support/command-line.ts'
import { cliWithFileLimit } from '../support/limited-cli.ts'
import { sampleRow } from '../support/ledger-samples.ts'
import { inLongRun } from '../support/long-run.ts'
import { scriptedEngine } from '../support/scripted-engine.ts'
import { settleEarlierRuns } from '../support/settled-directory.ts'
import { OPERATOR_TOKEN } from '../support/weir.ts'
import { weirProcess } from '../support/weir-process.ts'

const OLD_DATABASE = new URL('../fixtures/data-directory-1/weir.db', import.meta.url)
const NOW = Date.parse('2026-11-16T02:03:04.005Z')

function emptyFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'weir-backup-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A data directory with 40 rows and two invoices, and a folder beside it for backups. */
async function usedDirectory(t: TestContext): Promise<{ folder: string; dataDir: string; file: string }> {
  const folder = emptyFolder(t)
  const dataDir = join(folder, 'data')
  mkdirSync(dataDir)
  copyFileSync(OLD_DATABASE, join(dataDir, 'weir.db'))
  const store = await openStore({ dataDir, exclusive: true })
  await settleEarlierRuns(store, dataDir, NOW)
  await store.close()
  writeFileSync(join(dataDir, 'operator-token'), 'weir_operator_0123456789\n', { mode: 0o600 })
  return { folder, dataDir, file: join(folder, 'weir.backup') }
}

const take = (dataDir: string, file: string, force = false): Promise<MadeBackup> =>
  takeBackup({ dataDir, file, force, now: NOW, progress() {} })

const restore = (file: string, dataDir: string, force = false) =>
  restoreBackup({ file, dataDir, force, now: NOW, actor: 'a test' })

async function assertBooksAgree(dataDir: string, rows: number): Promise<void> {
  const store = await openStore({ dataDir, exclusive: true })
  try {
    const proof = await reconcileLedger(store)
    assert.deepEqual(proof.problems, [])
    assert.equal(proof.rows, rows)
  } finally {
    await store.close()
  }
}

/** The row of a request after the 40 that are in the ledger. */
const laterRow = (requestId: string): LedgerRow =>
  sampleRow(requestId, {
    workspaceId: 'ws_acme',
    model: 'meta/llama',
    lane: 'meta/llama',
    priceVersion: 8,
    amount: 0n,
    startedAt: NOW,
    settledAt: NOW,
  })

/** Leaves rows in the journal, as a service does whose database takes none. Returns the segment's path. */
function leaveInJournal(
  dataDir: string,
  segment: number,
  requestIds: readonly string[],
  previous: SegmentHead['previous'] = null,
): string {
  const folder = join(dataDir, JOURNAL_FOLDER)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const head = headText({ format: 1, previous })
  const frame = frameOf([head, ...requestIds.map((id) => rowText(laterRow(id)))].join('\n'), segment, 0)
  // A write that was under way when the copy was made.
  const torn = frameOf(rowText(laterRow('torn')), segment, frame.length).subarray(0, 50)
  const path = join(folder, segmentName(segment))
  writeFileSync(path, Buffer.concat([frame, torn]), { mode: 0o600 })
  return path
}

/** The ids of all rows after the 40 that every used directory has, once a service has started on the directory. */
async function laterRows(dataDir: string): Promise<readonly string[]> {
  const store = await openStore({ dataDir, exclusive: true })
  try {
    await settleEarlierRuns(store, dataDir, NOW + 1)
    assert.deepEqual((await reconcileLedger(store)).problems, [])
  } finally {
    await store.close()
  }
  const database = openUnchanging(join(dataDir, 'weir.db'))
  try {
    const rows = database.prepare('SELECT request_id FROM ledger ORDER BY position LIMIT -1 OFFSET 40').all()
    return rows.map((row) => String(row['request_id']))
  } finally {
    database.close()
  }
}

function overwrite(file: string, position: number, bytes: Buffer): void {
  const handle = openSync(file, 'r+')
  writeSync(handle, bytes, 0, bytes.length, position)
  closeSync(handle)
}

describe('weir backup', () => {
  it('copies one instant of a database under constant writes, and never delays a write', async (t) => {
    const { dataDir, file } = await usedDirectory(t)
    const path = join(dataDir, 'weir.db')
    // A writer that does not wait: if the backup held a lock for a moment, a write would fail.
    const writer = new DatabaseSync(path, { timeout: 0 })
    t.after(() => writer.close())
    writer.exec('PRAGMA synchronous = OFF; CREATE TABLE a (n INTEGER, filler TEXT); CREATE TABLE b (n INTEGER)')
    const filler = 'x'.repeat(2000)
    let n = 0
    const write = (): void => {
      n++
      writer.exec(`BEGIN IMMEDIATE; INSERT INTO a VALUES (${n}, '${filler}'); INSERT INTO b VALUES (${n}); COMMIT`)
    }
    for (let count = 0; count < 5000; count++) write()
    const before = n
    let seen = 0
    const taken = takeBackup({
      dataDir,
      file,
      force: false,
      now: NOW,
      progress() {
        // Between two steps of the copy, pages that it has and pages that it does not have yet change.
        seen++
        // They end at some point, because a copy that starts again after each of them would never end.
        const writes = seen < 100 ? 20 : 0
        for (let count = 0; count < writes; count++) write()
      },
    })
    const { description } = await taken
    assert.ok(seen >= 5, `the copy took ${seen} steps`)
    assert.equal(description.rows['a'], before)
    assert.equal(description.rows['b'], before)
    assert.ok(n > before)
    // What was written meanwhile has left the log for the database, so that no caller's row has to wait for that.
    const withoutLog = openUnchanging(path)
    t.after(() => withoutLog.close())
    assert.equal(withoutLog.prepare('SELECT max(n) AS last FROM a').get()?.['last'], n)
  })

  it('backs up a service under load; the copy reconciles, and serves the same callers', inLongRun, async (t) => {
    const engine = await scriptedEngine()
    t.after(() => engine.close())
    const weir = await weirProcess(stageConfig([engine.url]))
    t.after(() => weir.remove())
    const folder = emptyFolder(t)
    const file = join(folder, 'weir.backup')
    const load = { isOver: false, answered: 0 }
    const callers = [1, 2, 3, 4].map(async () => {
      while (!load.isOver) {
        const response = await weir.chat({})
        await response.text()
        assert.equal(response.status, 200)
        load.answered++
      }
    })
    while (load.answered < 20) await nextTurn()
    const made = await cli(['backup', file, '--data', weir.dataDir, '--json'])
    load.isOver = true
    await Promise.all(callers)
    const report = made.json<{ ledger_rows: number; schema: number; bytes: number }>()
    assert.deepEqual(Object.keys(report), [
      'file',
      'bytes',
      'created',
      'schema',
      'sha256',
      'ledger_rows',
      'journal_bytes',
    ])
    assert.ok(report.ledger_rows >= 20)
    assert.equal(report.schema, sqliteSteps.length)
    assert.equal(report.bytes, statSync(file).size)
    assert.equal((await weir.ledger()).length, load.answered, 'the original has every row')

    const copy = join(folder, 'copy')
    const restored = await commandLine(['restore', file, '--data', copy, '--json'])
    assert.equal(restored.json()['ledger_rows'], report.ledger_rows)
    const reconciled = await commandLine(['reconcile', '--data', copy, '--json'])
    assert.deepEqual(reconciled.json()['problems'], [])

    // Put it in the place of the original, as after the loss of a disk.
    const token = readFileSync(join(weir.dataDir, 'operator-token'), 'utf8')
    weir.signal('SIGKILL')
    await weir.ended()
    rmSync(weir.dataDir, { recursive: true })
    renameSync(copy, weir.dataDir)
    await weir.start()
    assert.equal((await weir.chat({})).status, 200)
    const admin = await fetch(`${weir.adminUrl}/admin/v1/workspaces`, {
      headers: { authorization: `Bearer ${token.trim()}` },
    })
    assert.equal(admin.status, 200)
    const after = await commandLine(['reconcile', '--data', weir.dataDir, '--json'])
    assert.deepEqual(after.json()['problems'], [])
  })

  it('has every acknowledged row, even while the database accepts none', async (t) => {
    const engine = await scriptedEngine()
    t.after(() => engine.close())
    const weir = await weirProcess(stageConfig([engine.url]))
    t.after(() => weir.remove())
    const received: string[] = []
    const ask = async (stream: boolean): Promise<void> => {
      const response = await weir.chat({ stream })
      await response.text()
      assert.equal(response.status, 200)
      received.push(response.headers.get('x-request-id') ?? '')
    }
    for (let count = 0; count < 5; count++) await ask(false)
    assert.equal((await weir.ledger()).length, 5)
    const blocker = new DatabaseSync(join(weir.dataDir, 'weir.db'), { timeout: 5000 })
    t.after(() => blocker.close())
    blocker.exec('BEGIN IMMEDIATE')
    await Promise.all(Array.from({ length: 20 }, (_, index) => ask(index % 2 === 0)))

    const folder = emptyFolder(t)
    const file = join(folder, 'weir.backup')
    const made = await commandLine(['backup', file, '--data', weir.dataDir, '--json'])
    assert.equal(made.json()['ledger_rows'], 5, 'the database in the backup has more than it could take')
    assert.ok(Number(made.json()['journal_bytes']) > 0)
    // Not in the backup, whatever happens to it.
    await ask(false)
    const later = received.pop()
    weir.signal('SIGKILL')
    await weir.ended()
    blocker.exec('ROLLBACK')

    const restored = await commandLine(['restore', file, '--data', weir.dataDir, '--force', '--json'])
    const replaced = restored.json<{ replaced: string }>().replaced
    assert.ok(readdirSync(join(replaced, JOURNAL_FOLDER)).length > 0, 'the former journal is kept')
    const journal = join(weir.dataDir, JOURNAL_FOLDER)
    assert.equal(statSync(journal).mode & 0o777, 0o700)
    assert.ok(readdirSync(journal).length > 0)
    for (const name of readdirSync(journal)) assert.equal(statSync(join(journal, name)).mode & 0o777, 0o600)
    await weir.start()
    const rows = (await weir.ledger()).map(({ requestId }) => requestId)
    assert.deepEqual(rows.toSorted(), received.toSorted())
    assert.ok(!rows.includes(later ?? ''))
    const reconciled = await commandLine(['reconcile', '--data', weir.dataDir, '--json'])
    assert.deepEqual(reconciled.json()['problems'], [])
    await ask(true)
    assert.equal((await weir.ledger()).length, 26)
  })

  it('copies the journal first, so that each row is in it or in the database', async (t) => {
    const { folder, dataDir, file } = await usedDirectory(t)
    const early = leaveInJournal(dataDir, 3, ['early'])
    const late = leaveInJournal(dataDir, 4, ['late'], { segment: 3, end: scanFrames(readFileSync(early), 3).end })
    const store = await openStore({ dataDir, exclusive: true })
    t.after(() => store.close())
    const filler = new DatabaseSync(join(dataDir, 'weir.db'))
    // So that the copy takes more than one step.
    filler.exec('CREATE TABLE filler (bytes BLOB); INSERT INTO filler VALUES (zeroblob(4000000))')
    filler.close()
    let moved: Promise<void> | undefined
    const { description, journalBytes } = await takeBackup({
      dataDir,
      file,
      force: false,
      now: NOW,
      progress() {
        if (moved) return
        // The service applies the journal and removes it while the database is copied.
        moved = store.addRows([laterRow('early'), laterRow('late')], { segment: 4, offset: 10 })
        for (const segment of [early, late]) rmSync(segment)
      },
    })
    await (moved ?? assert.fail('the copy took one step'))
    assert.equal(description.rows['ledger'], 40)
    assert.deepEqual(
      description.journal?.map(({ segment }) => segment),
      [3, 4],
    )
    assert.ok(journalBytes > 0)
    const target = join(folder, 'target')
    restore(file, target)
    assert.deepEqual(await laterRows(target), ['early', 'late'])
    assert.deepEqual(readdirSync(join(target, JOURNAL_FOLDER)), [], 'a torn end is no damage')
  })

  it('adds nothing twice when a row is in the journal and in the database', async (t) => {
    const { folder, dataDir, file } = await usedDirectory(t)
    leaveInJournal(dataDir, 3, ['both', 'one'])
    const store = await openStore({ dataDir, exclusive: true })
    await store.addRows([laterRow('both')])
    await store.close()
    const { description } = await take(dataDir, file)
    assert.equal(description.rows['ledger'], 41)
    restore(file, join(folder, 'target'))
    assert.deepEqual(await laterRows(join(folder, 'target')), ['both', 'one'])
  })

  it('has everything of a data directory that cannot be recreated', async (t) => {
    const { weir } = await chatStage(t, { config: { files: { kind: 'local' } } })
    await (await weir.chat({})).text()
    /** Locks, notes, uploads, and images whose links expire. */
    const notBackedUp = /^(weir\.db-wal|weir\.db-shm|serve\.lock.*|service\.json|spool|files|models)$/
    const known = new Set<string>(['weir.db', JOURNAL_FOLDER, FILES_FOLDER, ...KEPT_FILES])
    const entries = readdirSync(weir.dataDir, { withFileTypes: true }).filter((it) => !it.isSocket())
    assert.deepEqual(
      entries.map(({ name }) => name).filter((name) => !known.has(name) && !notBackedUp.test(name)),
      [],
    )
  })

  it('has the files of batches, which are found after a restore', async (t) => {
    const { weir } = await chatStage(t, { config: {} })
    const submitted = await submit(sdkOf(weir), [chatLine('a'), chatLine('b')])
    const batch = await reached(sdkOf(weir), submitted.id, 'completed')
    const lines = await linesIn(sdkOf(weir), batch.output_file_id)
    const gone = await sdkOf(weir).files.create({ file: await toFile(Buffer.from('x'), 'x'), purpose: 'batch' })
    // Deleted while the backup is made: the database still lists it.
    rmSync(join(weir.dataDir, FILES_FOLDER, gone.id))
    const folder = emptyFolder(t)
    const { description } = await take(weir.dataDir, join(folder, 'backup'))
    assert.deepEqual(
      description.batchFiles?.map(({ name }) => name),
      ['place', ...[batch.input_file_id, String(batch.output_file_id)].toSorted()],
    )
    assert.equal(description.batchFilesElsewhere, 0)
    const dataDir = join(folder, 'data')
    mkdirSync(dataDir)
    restore(join(folder, 'backup'), dataDir)
    const again = await startService(
      loadConfig({ config: weir.configFile, data: dataDir }, { WEIR_OPERATOR_TOKEN: OPERATOR_TOKEN }),
    )
    t.after(() => again.stop())
    const client = sdkOf({ base: `${again.url}/api/v1`, key: weir.key })
    assert.deepEqual(await linesIn(client, batch.output_file_id), lines)
    await assert.rejects(client.files.content(gone.id), { status: 404 })
  })

  it('is readable only by its owner, replaces nothing without --force, and leaves no partial file', async (t) => {
    const { folder, dataDir, file } = await usedDirectory(t)
    await take(dataDir, file)
    assert.equal(statSync(file).mode & 0o777, 0o600)
    assert.deepEqual(readdirSync(folder).toSorted(), ['data', 'weir.backup'])
    const first = readFileSync(file)
    await assert.rejects(take(dataDir, file), { code: 'ERR_BACKUP_EXISTS', message: /--force/ })
    assert.deepEqual(readFileSync(file), first)
    await take(dataDir, file, true)
    await assert.rejects(take(dataDir, join(folder, 'nowhere', 'x')), { code: 'ERR_NO_FOLDER' })
    await assert.rejects(take(join(folder, 'nothing'), join(folder, 'x')), { code: 'ERR_NO_DATABASE' })
    assert.ok(!existsSync(join(folder, 'nothing')), 'it creates no data directory')
    assert.deepEqual(readdirSync(folder).toSorted(), ['data', 'weir.backup'])
  })

  it('refuses a damaged database instead of copying the damage', async (t) => {
    const { folder, dataDir, file } = await usedDirectory(t)
    // A page in the middle of the file: the database still opens.
    overwrite(join(dataDir, 'weir.db'), 4096 * 9, Buffer.alloc(4096, 0xee))
    await assert.rejects(take(dataDir, file), {
      code: 'ERR_DATA_DIR_DAMAGED',
      message: /weir restore|last good backup/,
    })
    assert.deepEqual(readdirSync(folder), ['data'])
  })

  it('explains in one line that the disk filled up, and leaves nothing behind', async (t) => {
    const { folder, dataDir, file } = await usedDirectory(t)
    const { code, stdout, stderr } = await cliWithFileLimit(65_536, ['backup', file, '--data', dataDir])
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(stderr, /^weir: .*weir\.backup cannot be written .*check the disk and its free space.*\n$/)
    assert.deepEqual(readdirSync(folder), ['data'])
    await assertBooksAgree(dataDir, 40)
    assert.equal((await take(dataDir, file)).description.rows['ledger'], 40)
  })

  it('explains mistakes, and reports in words what it did', async (t) => {
    const { dataDir, file } = await usedDirectory(t)
    for (const [args, message] of [
      [['backup'], /give the file to write: weir backup FILE/],
      [['restore'], /give the backup to restore: weir restore FILE/],
      [['backup', file, 'extra'], /unexpected argument "extra"/],
    ] as const) {
      const { code, stderr } = await commandLine([...args, '--data', dataDir])
      assert.equal(code, 2)
      assert.match(stderr, message)
    }
    const made = await commandLine(['backup', file, '--data', dataDir])
    assert.deepEqual([made.code, made.stderr], [0, ''])
    assert.match(made.stdout, /weir\.backup: \d+ KB, 40 ledger rows, checked\.\nRestore it with: weir restore /)
    const used = await commandLine(['restore', file, '--data', dataDir])
    assert.deepEqual([used.code, used.stdout], [1, ''])
    assert.match(used.stderr, /^weir: .* is not empty: choose another directory with --data, or .* --force\n$/)
    const restored = await commandLine(['restore', file, '--data', dataDir, '--force'])
    assert.deepEqual([restored.code, restored.stderr], [0, ''])
    assert.match(restored.stdout, /: 40 ledger rows\.\nWhat was there before is in .*before-restore-.*\n.*reconcile/)
  })
})

describe('weir restore', () => {
  it('keeps the previous data, and does not touch models', async (t) => {
    const { dataDir, file } = await usedDirectory(t)
    await take(dataDir, file)
    mkdirSync(join(dataDir, 'models'))
    writeFileSync(join(dataDir, 'weir.db'), 'not a database any more')
    writeFileSync(join(dataDir, 'weir.db-wal'), 'nor this')
    writeFileSync(join(dataDir, 'operator-token'), 'another\n')
    assert.throws(() => restore(file, dataDir), { code: 'ERR_DATA_DIR_USED' })
    assert.equal(readFileSync(join(dataDir, 'weir.db'), 'utf8'), 'not a database any more')

    const { replaced } = restore(file, dataDir, true)
    assert.equal(replaced, join(dataDir, 'before-restore-2026-11-16T02-03-04-005Z'))
    assert.equal(readFileSync(join(replaced, 'weir.db'), 'utf8'), 'not a database any more')
    assert.equal(readFileSync(join(replaced, 'weir.db-wal'), 'utf8'), 'nor this')
    assert.equal(readFileSync(join(replaced, 'operator-token'), 'utf8'), 'another\n')
    assert.equal(readFileSync(join(dataDir, 'operator-token'), 'utf8'), 'weir_operator_0123456789\n')
    assert.equal(statSync(join(dataDir, 'operator-token')).mode & 0o777, 0o600)
    assert.deepEqual(
      readdirSync(dataDir)
        .filter((name) => !name.startsWith('serve.lock'))
        .toSorted(),
      ['before-restore-2026-11-16T02-03-04-005Z', 'models', 'operator-token', 'weir.db'],
    )
    await assertBooksAgree(dataDir, 40)
  })

  it('is in the audit log of what it restored', async (t) => {
    const { dataDir, file } = await usedDirectory(t)
    await take(dataDir, file)
    restore(file, dataDir, true)
    const store = await openStore({ dataDir, exclusive: true })
    const [entry, ...more] = await store.auditLog({ limit: 10 })
    await store.close()
    assert.deepEqual(
      [entry?.at, entry?.actor, entry?.action, entry?.subject, entry?.outcome, more],
      [NOW, 'a test', 'restoreBackup', 'weir.backup', 'done', []],
    )
    assert.deepEqual(JSON.parse(entry?.request ?? ''), { created: new Date(NOW).toISOString() })
  })

  it('refuses while a service runs on the directory', async (t) => {
    const { dataDir, file } = await usedDirectory(t)
    await take(dataDir, file)
    const service = takeServiceLock(dataDir)
    t.after(() => service.close())
    assert.throws(() => restore(file, dataDir, true), { code: 'ERR_DATA_DIR_TAKEN', message: /stop it first/ })
    assert.ok(!readdirSync(dataDir).some((name) => name.startsWith('before-restore')))
  })

  it('refuses a file that is damaged, incomplete or something else, and changes nothing', async (t) => {
    const { folder, dataDir, file } = await usedDirectory(t)
    leaveInJournal(dataDir, 3, ['later'])
    const { database } = (await take(dataDir, file)).description
    const target = join(folder, 'target')
    const size = statSync(file).size
    const copy = join(folder, 'copy')
    const damages: readonly [string, RegExp | string, () => void][] = [
      ['a flipped byte in the database', 'ERR_BACKUP_DAMAGED', () => overwrite(copy, 30_000, Buffer.from('?'))],
      ['a flipped byte in the journal', 'ERR_BACKUP_DAMAGED', () => overwrite(copy, database.bytes, Buffer.from('?'))],
      ['a flipped byte in the description', 'ERR_BACKUP_DAMAGED', () => overwrite(copy, size - 200, Buffer.from('?'))],
      ['a missing end', 'ERR_NOT_A_BACKUP', () => truncateSync(copy, size - 1)],
      ['half a file', 'ERR_NOT_A_BACKUP', () => truncateSync(copy, Math.floor(size / 2))],
      ['an empty file', 'ERR_NOT_A_BACKUP', () => truncateSync(copy, 0)],
      ['a database', 'ERR_NOT_A_BACKUP', () => copyFileSync(join(dataDir, 'weir.db'), copy)],
    ]
    for (const [what, code, damage] of damages) {
      copyFileSync(file, copy)
      damage()
      assert.throws(() => restore(copy, target), { code }, what)
      assert.ok(!existsSync(target), what)
    }
    assert.throws(() => restore(join(folder, 'missing'), target), { code: 'ENOENT' })
  })

  it('migrates a backup of an older schema, and refuses one of a newer schema', async (t) => {
    const folder = emptyFolder(t)
    const old = join(folder, 'old')
    mkdirSync(old)
    copyFileSync(OLD_DATABASE, join(old, 'weir.db'))
    const { description } = await take(old, join(folder, 'old.backup'))
    assert.equal(description.schema, 1)
    restore(join(folder, 'old.backup'), join(folder, 'target'))
    const store = await openStore({ dataDir: join(folder, 'target'), exclusive: true })
    await settleEarlierRuns(store, join(folder, 'target'), NOW)
    await store.close()
    await assertBooksAgree(join(folder, 'target'), 40)

    const newer = readFileSync(join(folder, 'old.backup'), 'latin1')
    const later = join(folder, 'later.backup')
    writeFileSync(
      later,
      withDescription(newer, (json) => json.replace('"schema":1', '"schema":99')),
      'latin1',
    )
    assert.throws(() => restore(later, join(folder, 'other')), {
      code: 'ERR_DATA_DIR_NEWER',
      message: /newer version of Weir .*update Weir first/,
    })
    assert.ok(!existsSync(join(folder, 'other')))
  })

  it('accepts a backup from before the journal existed, and no segment with an arbitrary name', async (t) => {
    const { folder, dataDir, file } = await usedDirectory(t)
    leaveInJournal(dataDir, 3, ['later'])
    await take(dataDir, file)
    const whole = readFileSync(file, 'latin1')
    writeFileSync(
      file,
      withDescription(whole, (json) => json.replace('"segment":3', '"segment":"../../x"')),
      'latin1',
    )
    assert.throws(() => restore(file, join(folder, 'target')), { code: 'ERR_BACKUP_DAMAGED' })

    rmSync(join(dataDir, JOURNAL_FOLDER), { recursive: true })
    await take(dataDir, file, true)
    const earlier = readFileSync(file, 'latin1')
    writeFileSync(
      file,
      withDescription(earlier, (json) => json.replace('"journal":[],', '')),
      'latin1',
    )
    assert.ok(!readFileSync(file, 'latin1').includes('"journal":'))
    restore(file, join(folder, 'target'))
    assert.ok(!existsSync(join(folder, 'target', JOURNAL_FOLDER)))
    await assertBooksAgree(join(folder, 'target'), 40)
  })

  it('restores only known files, whatever the backup names', async (t) => {
    const { folder, dataDir, file } = await usedDirectory(t)
    await take(dataDir, file)
    const named = withDescription(readFileSync(file, 'latin1'), (json) =>
      json.replace('"files":{', '"files":{"../x":"out","weir.yaml":"in",'),
    )
    assert.ok(named.includes('"../x"'))
    writeFileSync(file, named, 'latin1')
    const target = join(folder, 'target')
    restore(file, target)
    assert.deepEqual(
      readdirSync(target)
        .filter((name) => !/^(weir\.db|journal|serve\.lock)/.test(name))
        .toSorted(),
      readdirSync(dataDir)
        .filter((name) => KEPT_FILES.some((it) => it === name))
        .toSorted(),
    )
    assert.ok(!existsSync(join(target, '..', 'x')) && !existsSync(join(target, 'x')))
  })

  it('can be run again after an interruption; until then, no service starts on the directory', async (t) => {
    const { dataDir, file } = await usedDirectory(t)
    await take(dataDir, file)
    // Cut off at its worst moment: the old database has moved, and the new one is not there yet.
    const aside = join(dataDir, 'before-restore-earlier')
    mkdirSync(aside)
    renameSync(join(dataDir, 'weir.db'), join(aside, 'weir.db'))
    mkdirSync(join(dataDir, 'restoring-earlier'))
    await assert.rejects(openStore({ dataDir, exclusive: true }), {
      code: 'ERR_DATA_DIR_RESTORING',
      message: /run weir restore FILE --force again/,
    })
    restore(file, dataDir, true)
    assert.ok(existsSync(join(aside, 'weir.db')))
    assert.ok(!existsSync(join(dataDir, 'restoring-earlier')))
    await assertBooksAgree(dataDir, 40)
  })

  it('explains in one line that the disk filled up, and leaves the directory unchanged', async (t) => {
    const { dataDir, file } = await usedDirectory(t)
    await take(dataDir, file)
    const content = (): string[] => readdirSync(dataDir).filter((name) => !name.startsWith('serve.lock'))
    const before = content()
    const { code, stderr } = await cliWithFileLimit(65_536, ['restore', file, '--data', dataDir, '--force'])
    assert.equal(code, 1)
    assert.match(stderr, /^weir: .* cannot be written .*check the disk and its free space.*\n$/)
    assert.deepEqual(content(), before)
    await assertBooksAgree(dataDir, 40)
  })
})

/** A backup with another description and the checksum that belongs to it. */
function withDescription(backup: string, change: (json: string) => string): string {
  const [lastLine, length] = /weir-backup 1 (\d{10}) [0-9a-f]{64}\n$/.exec(backup) ?? assert.fail('no last line')
  const start = backup.length - lastLine.length - Number(length)
  const json = change(backup.slice(start, start + Number(length)))
  const checksum = hash('sha256', Buffer.from(json, 'latin1'))
  return `${backup.slice(0, start)}${json}weir-backup 1 ${String(json.length).padStart(10, '0')} ${checksum}\n`
}
