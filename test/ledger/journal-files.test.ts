import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import fs, { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import fsPromises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, describe, it, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { journalFiles } from '../../src/ledger/journal/journal-files-on-disk.ts'
import { journalOwner } from '../../src/ledger/journal/journal-owner.ts'
import type { SegmentWriter } from '../../src/ledger/journal/journal-files.ts'
import { diskSteps } from '../support/disk-steps.ts'
import { eventually } from '../support/waiting.ts'
import type { JournalReport } from '../support/journal-program.ts'

const root = mkdtempSync(join(tmpdir(), 'weir-journal-'))
after(() => rmSync(root, { recursive: true }))

let folders = 0
const newFolder = (): string => join(root, String(folders++), 'journal')

describe('the owner of a journal', () => {
  it('is in a file that only its user can read, and changes when it is taken', () => {
    const folder = mkdtempSync(join(root, 'owner-'))
    const { earlier, next, take } = journalOwner(folder)
    assert.equal(statSync(join(folder, 'owner')).mode & 0o777, 0o600)
    assert.deepEqual([journalOwner(folder).earlier, readdirSync(folder)], [earlier, ['owner']])
    take()
    assert.equal(journalOwner(folder).earlier, next)
    assert.notEqual(next, earlier)
    writeFileSync(join(folder, 'owner'), '\n')
    assert.notEqual(journalOwner(folder).earlier, '', 'an empty file names none')
  })
})

const write = (writer: SegmentWriter, text: string, offset: number, isDurable: boolean): Promise<void> =>
  new Promise((resolve, reject) => {
    writer.write(Buffer.from(text), offset, isDurable, (error) => (error ? reject(error) : resolve()))
  })

/** Modules that import a function of Node by its name have the original again. */
function restoreBuiltins(t: TestContext): void {
  t.mock.restoreAll()
  syncBuiltinESMExports()
}

const program = fileURLToPath(new URL('../support/journal-program.ts', import.meta.url))

/** Runs the program in a shell, after other commands. */
function reportOf(shell: readonly string[], commands: string, ...args: string[]): JournalReport {
  const [name = '', ...options] = [...shell, '-c', `${commands} exec "$@"`, 'sh', process.execPath, program, ...args]
  const { status, stdout, stderr } = spawnSync(name, options, { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  return JSON.parse(stdout) as JournalReport
}

describe('journal files on a real disk', () => {
  it('are read as they were written, durable or not, wherever the write begins', async () => {
    const files = journalFiles(newFolder())
    const writer = await files.create(3)
    await write(writer, 'intents', 0, false)
    assert.equal(String(await files.read(3)), 'intents')
    await write(writer, 'intents and rows', 0, true)
    await write(writer, ', more', 16, true)
    writer.close()
    assert.equal(String(await files.read(3)), 'intents and rows, more')
    assert.equal(String(await files.read(3, 8, 11)), 'and')
    assert.equal(String(await files.read(3, 18)), 'more')
    assert.equal(String(await files.read(3, 18, 1000)), 'more')
    assert.equal((await files.read(3, 1000)).length, 0)
  })

  it('are listed in the order of their numbers, and no other file is listed', async () => {
    const folder = newFolder()
    const files = journalFiles(folder)
    for (const segment of [10, 9, 1_000_000_000]) (await files.create(segment)).close()
    writeFileSync(join(folder, 'notes.txt'), '')
    assert.deepEqual(await files.list(), [9, 10, 1_000_000_000])
    await files.remove(9)
    await files.putAway(10)
    assert.deepEqual(await files.list(), [1_000_000_000])
    assert.ok(readdirSync(folder).includes('0000000010.journal.damaged'))
    await assert.rejects(files.remove(9), { code: 'ENOENT' })
  })

  it('wait for the disk only if a write must be durable', async (t) => {
    const files = journalFiles(newFolder())
    const used: boolean[] = []
    const original = fs.write
    t.mock.method(fs, 'write', (...args: Parameters<typeof fs.write>) => {
      const [, flags] = /^flags:\s*(\d+)$/m.exec(fs.readFileSync(`/proc/self/fdinfo/${args[0]}`, 'utf8')) ?? []
      used.push((Number.parseInt(flags ?? '', 8) & fs.constants.O_DSYNC) === fs.constants.O_DSYNC)
      original(...args)
    })
    // Modules that import a function by its name get the replacement too.
    syncBuiltinESMExports()
    t.after(() => restoreBuiltins(t))
    const writer = await files.create(1)
    t.after(() => writer.close())
    await write(writer, 'intent', 0, false)
    await write(writer, 'row', 6, true)
    assert.deepEqual(used, [false, true])
  })

  it('are durable with their names: a new folder in the one around it, and a new segment in the folder', async (t) => {
    const folder = newFolder()
    mkdirSync(dirname(folder))
    const steps = await diskSteps(t, dirname(folder))
    const files = journalFiles(folder)
    assert.deepEqual(steps.splice(0), ['make journal', 'sync .'])
    const writer = await files.create(1)
    t.after(() => writer.close())
    assert.deepEqual(steps.splice(0), ['sync journal'])
    journalFiles(folder)
    assert.deepEqual(steps, [], 'the folder is there already')
    journalOwner(folder).take()
    const written = ['write', 'sync', 'rename'].map((it) => `${it} journal/owner.new`)
    const named = [...written.slice(0, 2), `${written[2]} to journal/owner`, 'sync journal']
    assert.deepEqual(steps, [...named, ...named], 'the earlier owner, and the next')
  })

  it('are never overwritten: an existing segment is not created again', async () => {
    const files = journalFiles(newFolder())
    const writer = await files.create(1)
    await write(writer, 'here', 0, true)
    await assert.rejects(files.create(1), { code: 'EEXIST' })
    assert.equal(String(await files.read(1)), 'here')
    writer.close()
  })

  it('report what to do when their folder cannot be created, or is missing', async () => {
    const file = join(root, 'file')
    writeFileSync(file, '')
    assert.throws(() => journalFiles(join(file, 'journal')), {
      code: 'ERR_DATA_DIR_DISK',
      message: /journal cannot be written/,
    })
    const folder = newFolder()
    const files = journalFiles(folder)
    rmSync(folder, { recursive: true })
    await assert.rejects(files.create(1), { code: 'ENOENT' })
    writeFileSync(folder, '')
    await assert.rejects(files.create(1), { code: 'ERR_DATA_DIR_DISK', message: /journal cannot be written/ })
  })

  it('leave no file open when they are closed, or cannot be created', async (t) => {
    const descriptors = (): number => readdirSync('/proc/self/fd').length
    const folder = newFolder()
    const files = journalFiles(folder)
    await files.list()
    const before = descriptors()
    const writer = await files.create(1)
    assert.equal(descriptors(), before + 2)
    await files.read(1)
    assert.equal(descriptors(), before + 2)
    writer.close()
    await eventually('both are closed', () => descriptors() === before)
    // The second descriptor cannot be had.
    const opened = fsPromises.open
    t.mock.method(fsPromises, 'open', (...args: Parameters<typeof fsPromises.open>) =>
      args[1] === fs.constants.O_WRONLY
        ? Promise.reject(Object.assign(new Error('too many'), { code: 'EIO' }))
        : opened(...args),
    )
    syncBuiltinESMExports()
    t.after(() => restoreBuiltins(t))
    await assert.rejects(files.create(2), { code: 'ERR_DATA_DIR_DISK' })
    await eventually('all are closed', () => descriptors() === before)
    assert.deepEqual(await files.list(), [1])
    restoreBuiltins(t)
    // Its name cannot be made durable.
    t.mock.method(fsPromises, 'open', async (...args: Parameters<typeof fsPromises.open>) => {
      const handle = await opened(...args)
      const failure = Object.assign(new Error('the disk fails'), { code: 'EIO' })
      if (args[0] === folder) t.mock.method(handle, 'sync', () => Promise.reject(failure))
      return handle
    })
    syncBuiltinESMExports()
    await assert.rejects(files.create(2), { code: 'ERR_DATA_DIR_DISK' })
    await eventually('all are closed again', () => descriptors() === before)
    assert.deepEqual(await files.list(), [1])
  })

  it('can be read only by their owner', async () => {
    const folder = newFolder()
    const files = journalFiles(folder)
    ;(await files.create(1)).close()
    assert.equal(statSync(folder).mode & 0o777, 0o700)
    assert.equal(statSync(join(folder, '0000000001.journal')).mode & 0o777, 0o600)
  })

  it('that reach a size limit are cut in the middle of a write, and nothing is lost', () => {
    const report = reportOf(['sh'], 'ulimit -f 16;', newFolder())
    assert.deepEqual(report.failures, ['EFBIG'])
    assert.ok(report.segments > 1)
    assert.equal(report.told.length, 150)
    assert.deepEqual(report.found.toSorted(), report.told.toSorted())
  })

  it('refuse new requests on a full disk, and lose nothing once there is space', (t) => {
    const disk = newFolder()
    // Only root may mount; others may where they are root of a namespace of their own.
    const mount = `mkdir -p '${disk}' && mount -t tmpfs -o size=64k none '${disk}' || exit 77;`
    const how = ['-m', '-rm'].find((it) => spawnSync('unshare', [it, 'sh', '-c', mount]).status === 0)
    if (how === undefined) return t.skip('no small disk can be mounted here: only the limit of a file was tested')
    const report = reportOf(['unshare', how, 'sh'], mount, disk, 'full')
    assert.deepEqual(report.failures, ['ENOSPC'])
    assert.equal(report.told.length, 150)
    assert.deepEqual(report.found.toSorted(), report.told.toSorted())
  })
})
