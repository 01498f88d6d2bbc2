import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { engineLog } from '../../../src/engines/on-demand/engine-log.ts'
import { signalGroup } from '../../../src/engines/on-demand/process-group.ts'
import {
  endLeftovers,
  recordPath,
  writeRecord,
  type ProcessRecord,
} from '../../../src/engines/on-demand/process-record.ts'
import { startTimes } from '../../../src/engines/on-demand/start-times.ts'
import { openFiles } from '../../support/open-files.ts'
import { smallDisk } from '../../support/small-disk.ts'
import { eventually } from '../../support/waiting.ts'

/** What is kept of engines on demand in files: what they print, which processes they are, and how long they start. */

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-engines-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const mode = (path: string): number => statSync(path).mode & 0o777

describe('the log of an engine', () => {
  const MEBIBYTE = 2 ** 20
  const written = (path: string, bytes: number) =>
    eventually(`${path} has ${bytes} bytes`, () => existsSync(path) && statSync(path).size === bytes, 60_000)

  it('is appended to, and keeps its last twenty lines in memory, of at most 8000 characters', async () => {
    const path = join(folder, 'a.log')
    writeFileSync(path, 'before\n')
    const log = engineLog(path)
    assert.deepEqual(log.lastLines(), [])
    for (let line = 1; line <= 30; line += 1) log.write(Buffer.from(`line ${line}\n\n`))
    assert.deepEqual([log.lastLines().length, log.lastLines()[0], log.lastLines().at(-1)], [20, 'line 11', 'line 30'])
    log.write(Buffer.from('x'.repeat(9000)))
    assert.deepEqual(log.lastLines(), ['x'.repeat(8000)])
    log.close()
    await eventually('all is written', () => readFileSync(path, 'utf8').endsWith('xxx'), 60_000)
    assert.ok(readFileSync(path, 'utf8').startsWith('before\nline 1\n\nline 2\n'))
  })

  it('is private, and begins a new file after eight mebibytes, also those of before', async () => {
    const path = join(folder, 'a.log')
    writeFileSync(path, Buffer.alloc(8 * MEBIBYTE - 2))
    const log = engineLog(path)
    log.write(Buffer.from('ab'))
    await written(path, 8 * MEBIBYTE)
    log.write(Buffer.from('c'))
    log.write(Buffer.from('d'))
    log.close()
    await written(`${path}.1`, 8 * MEBIBYTE + 1)
    await written(path, 1)
    assert.equal(mode(path), 0o600)
  })

  it('keeps the order of its files if it is full from the start, and goes on if its file was removed', async () => {
    const path = join(folder, 'a.log')
    writeFileSync(path, Buffer.alloc(8 * MEBIBYTE))
    const log = engineLog(path)
    for (const output of ['a', 'b']) log.write(Buffer.from(output))
    await written(`${path}.1`, 8 * MEBIBYTE + 1)
    await written(path, 1)
    rmSync(path)
    await eventually('there is a new one', () => {
      log.write(Buffer.alloc(MEBIBYTE))
      return existsSync(path)
    })
    log.close()
  })

  it('shows characters whole that come in two pieces, and each state of a progress bar as a line', () => {
    const log = engineLog(join(folder, 'a.log'))
    const text = Buffer.from('größer\r 50 %\r100 %\r\nready\n')
    log.write(text.subarray(0, 3))
    log.write(text.subarray(3))
    assert.deepEqual(log.lastLines(), ['größer', ' 50 %', '100 %', 'ready'])
    log.close()
  })

  it('drops what a slow disk cannot take, so that the engine need not wait', async () => {
    const path = join(folder, 'a.log')
    const log = engineLog(path)
    log.write(Buffer.alloc(MEBIBYTE))
    log.write(Buffer.alloc(1))
    log.write(Buffer.from('dropped'))
    assert.deepEqual(log.lastLines().at(-1)?.endsWith('dropped'), true)
    log.close()
    await written(path, MEBIBYTE + 1)
  })

  it('has one file open at a time, and none when it was closed', { skip: process.platform !== 'linux' }, async () => {
    const path = join(folder, 'a.log')
    const log = engineLog(path)
    for (let files = 1; files <= 3; files++) {
      log.write(Buffer.alloc(8 * MEBIBYTE + 1))
      await eventually('the full one is closed', () => openFiles(folder) === 1)
    }
    log.close()
    await eventually('it is closed', () => openFiles(folder) === 0)
  })

  it('goes on with its next line if its folder was gone when it was full', async () => {
    const path = join(folder, 'logs', 'a.log')
    mkdirSync(join(folder, 'logs'))
    writeFileSync(path, Buffer.alloc(8 * MEBIBYTE - 1))
    const log = engineLog(path)
    log.write(Buffer.from('a'))
    renameSync(join(folder, 'logs'), join(folder, 'away'))
    log.write(Buffer.from('b'))
    mkdirSync(join(folder, 'logs'))
    log.write(Buffer.from('the next line\n'))
    log.close()
    await eventually('it is written', () => readFileSync(path, 'utf8') === 'the next line\n')
  })

  it('that cannot be written still has its last lines', async () => {
    const log = engineLog(join(folder, 'missing', 'a.log'))
    log.write(Buffer.from('one\n'))
    await new Promise((resolve) => setTimeout(resolve, 20))
    log.write(Buffer.from('two\n'))
    assert.deepEqual(log.lastLines(), ['one', 'two'])
    log.close()
  })
})

describe('the record of a process', () => {
  const ended = async (): Promise<{ readonly pid: number; readonly gone: Promise<unknown> }> => {
    const child = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' })
    await once(child, 'spawn')
    return { pid: child.pid ?? 0, gone: once(child, 'exit') }
  }

  it('ends the engine that an earlier service has left, once', async () => {
    const { pid, gone } = await ended()
    const path = recordPath(folder, 'meta--x.8001')
    assert.equal(path, join(folder, 'meta--x.8001.process.json'))
    writeRecord(path, pid, pid)
    assert.equal(mode(path), 0o600)
    assert.deepEqual(endLeftovers(folder), ['meta--x.8001'])
    assert.deepEqual(await gone, [null, 'SIGKILL'])
    assert.equal(signalGroup(pid, 0), false)
    assert.deepEqual([readdirSync(folder), endLeftovers(folder)], [[], []])
  })

  it('of which the engine alone is left counts, and its group is ended', async () => {
    const { pid, gone } = await ended()
    const path = recordPath(folder, 'a')
    writeRecord(path, pid, pid)
    const record = JSON.parse(readFileSync(path, 'utf8')) as ProcessRecord
    writeFileSync(path, JSON.stringify({ ...record, guardian: { ...record.guardian, startedAt: '1' } }))
    assert.deepEqual(endLeftovers(folder), ['a'])
    await gone
  })

  it('does not end a process that has got the number of one that is gone', async () => {
    const { pid, gone } = await ended()
    const other = { pid, startedAt: '1' }
    writeFileSync(recordPath(folder, 'a'), JSON.stringify({ guardian: other, engine: other }))
    assert.deepEqual(endLeftovers(folder), [])
    assert.deepEqual(readdirSync(folder), [])
    assert.equal(signalGroup(pid, 0), true)
    signalGroup(pid, 'SIGKILL')
    await gone
  })

  it('that was cut off is removed, and other files stay', () => {
    writeFileSync(recordPath(folder, 'a'), '{"guardian":')
    writeFileSync(join(folder, 'a.log'), '')
    assert.deepEqual(endLeftovers(folder), [])
    assert.deepEqual(readdirSync(folder), ['a.log'])
    assert.deepEqual(endLeftovers(join(folder, 'missing')), [])
  })

  it('that cannot be written is left out', () => {
    writeRecord(join(folder, 'missing', 'a.process.json'), 1, 1)
    assert.deepEqual(readdirSync(folder), [])
  })
})

describe('the times that starts took', () => {
  it('are the last five, also after a restart, and the next one is expected to take their median', () => {
    const path = join(folder, 'new', 'starts.json')
    const times = startTimes(path)
    assert.deepEqual([times.of('a'), times.expectedMs('a')], [[], undefined])
    for (const ms of [1.4, 900, 10, 800, 20.6, 700]) times.add('a', ms)
    times.add('b', 5)
    for (const it of [times, startTimes(path)]) {
      assert.deepEqual(it.of('a'), [900, 10, 800, 21, 700])
      assert.deepEqual([it.expectedMs('a'), it.expectedMs('b')], [700, 5])
    }
    assert.deepEqual([mode(path), mode(join(folder, 'new'))], [0o600, 0o700])
  })

  it('are those of the latest 1000 engines', () => {
    const path = join(folder, 'starts.json')
    const known = Array.from({ length: 1000 }, (_, number) => [`a/${number}`, [1]] as const)
    writeFileSync(path, JSON.stringify(Object.fromEntries(known)))
    startTimes(path).add('a/0', 2)
    startTimes(path).add('a/new', 3)
    const times = startTimes(path)
    assert.deepEqual([times.of('a/0'), times.of('a/1'), times.of('a/2'), times.of('a/new')], [[1, 2], [], [1], [3]])
  })

  it('are kept in memory where they cannot be written, and a broken file has none', () => {
    writeFileSync(join(folder, 'file'), '{')
    mkdirSync(join(folder, 'starts.json'))
    for (const path of [join(folder, 'file', 'starts.json'), join(folder, 'starts.json')]) {
      const times = startTimes(path)
      times.add('a', 1)
      assert.deepEqual(times.of('a'), [1])
    }
    assert.deepEqual(startTimes(join(folder, 'file')).of('a'), [])
  })
})

it('a full disk fails nothing: the last lines and the times are in memory, what was kept stays, there is no half of a record, and the log goes on when there is room', async (t) => {
  const disk = smallDisk(2 ** 20)
  if (!disk) return t.skip('only root may mount a disk')
  try {
    const path = join(disk.folder, 'starts.json')
    startTimes(path).add('a/b', 1000)
    const log = engineLog(join(disk.folder, 'a.log'))
    log.write(Buffer.alloc(2 ** 21, 'x'))
    await eventually('the disk is full', () => {
      try {
        writeFileSync(join(disk.folder, 'more'), Buffer.alloc(2 ** 21))
        return false
      } catch {
        return true
      }
    })
    log.write(Buffer.from('\nout of memory\n'))
    assert.equal(log.lastLines().at(-1), 'out of memory')
    const record = recordPath(disk.folder, 'a')
    writeRecord(record, process.pid, process.pid)
    assert.equal(existsSync(record), false)
    const times = startTimes(path)
    times.add('a/b'.repeat(2000), 2000)
    assert.equal(times.expectedMs('a/b'.repeat(2000)), 2000)
    assert.equal(startTimes(path).expectedMs('a/b'), 1000)
    rmSync(join(disk.folder, 'more'), { force: true })
    disk.resize(2 ** 23)
    await eventually('the log goes on', () => {
      log.write(Buffer.from('there is room again\n'))
      return readFileSync(join(disk.folder, 'a.log'), 'utf8').endsWith('there is room again\n')
    })
    log.close()
  } finally {
    await disk.remove()
  }
})
