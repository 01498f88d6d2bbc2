import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { engineLog } from '../../src/engines/on-demand/engine-log.ts'
import { endLeftovers, recordPath, writeRecord } from '../../src/engines/on-demand/process-record.ts'
import { startTimes } from '../../src/engines/on-demand/start-times.ts'
import { smallDisk } from '../support/small-disk.ts'
import { eventually } from '../support/waiting.ts'

const MIB = 2 ** 20

describe('the files of engines on demand', () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-engine-files-'))
  after(() => rmSync(folder, { recursive: true }))

  it('keep a log of at most 8 MiB and its predecessor, and the last 20 lines in memory', async () => {
    const path = join(folder, 'engine.log')
    const log = engineLog(path)
    for (let written = 0; written < 30; written++) {
      log.write(Buffer.from(`${'x'.repeat(MIB)}\n`))
      await eventually('it is written', () => statSync(path, { throwIfNoEntry: false })?.size !== undefined)
      await new Promise((resolve) => setImmediate(resolve))
    }
    for (let line = 1; line <= 30; line++) log.write(Buffer.from(`line ${line}\n`))
    log.close()
    const lines = log.lastLines()
    assert.deepEqual([lines.length, lines[0], lines.at(-1)], [20, 'line 11', 'line 30'])
    await eventually('the end is written', () => readFileSync(path, 'utf8').endsWith('line 30\n'))
    assert.deepEqual(readdirSync(folder), ['engine.log', 'engine.log.1'])
    for (const name of readdirSync(folder)) assert.ok(statSync(join(folder, name)).size <= 9 * MIB + 1000, name)
  })

  it('may be on a full disk: nothing fails, and the last lines are there', async (t) => {
    const disk = smallDisk(MIB)
    if (!disk) return t.skip('only root may mount a disk')
    try {
      const log = engineLog(join(disk.folder, 'engine.log'))
      for (let written = 0; written < 8; written++) {
        log.write(Buffer.from(`${'x'.repeat(MIB / 2)}\n`))
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
      log.write(Buffer.from('out of memory\n'))
      assert.equal(log.lastLines().at(-1), 'out of memory')
      log.close()
      await eventually('the disk is full', () => {
        try {
          writeFileSync(join(disk.folder, 'more'), 'x'.repeat(MIB))
          return false
        } catch {
          return true
        }
      })
      const record = recordPath(disk.folder, 'engine')
      writeRecord(record, process.pid, process.pid)
      assert.equal(existsSync(record), false, 'no half of a record')
      const times = startTimes(join(disk.folder, 'starts.json'))
      times.add('a/b', 2000)
      assert.equal(times.expectedMs('a/b'), 2000)
    } finally {
      await disk.remove()
    }
  })

  it('keep the latest five start times of the latest 1000 engines', () => {
    const path = join(folder, 'starts.json')
    const times = startTimes(path)
    for (const ms of [9000, 1000, 3000, 2000, 5000, 4000]) times.add('a/first', ms)
    assert.deepEqual(startTimes(path).of('a/first'), [1000, 3000, 2000, 5000, 4000])
    assert.equal(startTimes(path).expectedMs('a/first'), 3000, 'the median')
    for (let number = 0; number < 1000; number++) times.add(`a/${number}`, 1)
    assert.deepEqual([startTimes(path).of('a/first'), startTimes(path).of('a/0')], [[], [1]])
  })

  it('end no process that only has the number of an engine', () => {
    const record = recordPath(folder, 'reused')
    const old = { pid: process.pid, startedAt: '1' }
    writeFileSync(record, JSON.stringify({ guardian: old, engine: old }))
    assert.deepEqual([endLeftovers(folder), existsSync(record)], [[], false])
    writeFileSync(record, '{"guardian":')
    assert.deepEqual([endLeftovers(folder), existsSync(record)], [[], false])
  })
})
