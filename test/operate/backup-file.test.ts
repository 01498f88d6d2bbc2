import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import {
  appendDescription,
  checkedDescription,
  batchFileBytes,
  batchFilesIn,
  journalBytes,
  segmentsIn,
  type BackupDescription,
} from '../../src/operate/backup/backup-file.ts'

const part = (text: string) => ({ bytes: text.length, sha256: hash('sha256', text) })
const [database, one, two] = ['the database', 'segment 7', 'segment 9, which is longer']
const description = {
  schema: 1,
  created: '2026-11-15T00:00:00.000Z',
  rows: {},
  files: {},
  database: part(database),
  journal: [
    { segment: 7, ...part(one) },
    { segment: 9, ...part(two) },
  ],
} as unknown as BackupDescription

function write(t: TestContext, changes: object = {}, more = ''): string {
  const folder = mkdtempSync(join(tmpdir(), 'weir-backup-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'backup')
  writeFileSync(file, database + one + two + more)
  const handle = openSync(file, 'r+')
  appendDescription(handle, { ...description, ...changes })
  closeSync(handle)
  return file
}

describe('the file of a backup', () => {
  it('has its description after its content, with the start of each segment', (t) => {
    const file = write(t)
    assert.deepEqual(checkedDescription(file), description)
    assert.ok(readFileSync(file, 'utf8').startsWith(database + one + two + '{'))
    assert.match(readFileSync(file, 'utf8'), /\nweir-backup 1 \d{10} [0-9a-f]{64}\n$/)
    assert.deepEqual(
      segmentsIn(description).map(({ segment, from, bytes }) => [segment, from, bytes]),
      [
        [7, database.length, one.length],
        [9, database.length + one.length, two.length],
      ],
    )
    assert.equal(journalBytes(description), one.length + two.length)
  })

  it('has files of batches after the journal, and none with a path for a name', (t) => {
    const [place, input] = ['disk 1', 'lines']
    const withFiles = (name: string) => ({
      batchFiles: [
        { name: 'place', ...part(place) },
        { name, ...part(input) },
      ],
    })
    const file = write(t, withFiles('file-1'), place + input)
    const read = checkedDescription(file)
    const start = database.length + one.length + two.length
    assert.deepEqual(
      batchFilesIn(read).map(({ name, from }) => [name, from]),
      [
        ['place', start],
        ['file-1', start + place.length],
      ],
    )
    assert.equal(batchFileBytes(read), place.length + input.length)
    for (const name of ['../weir.db', 'a/b', '.', '..', '/etc/x']) {
      const damaged = write(t, withFiles(name), place + input)
      assert.throws(() => checkedDescription(damaged), { code: 'ERR_BACKUP_DAMAGED' }, name)
    }
  })

  it('is refused when a single byte of it has changed, wherever that is', (t) => {
    const file = write(t)
    const whole = readFileSync(file)
    for (let index = 0; index < whole.length; index += 7) {
      const changed = Buffer.from(whole)
      changed[index] = (changed[index] ?? 0) ^ 1
      writeFileSync(file, changed)
      assert.throws(() => checkedDescription(file), { code: /^ERR_/ }, String(index))
    }
    for (const length of [0, 50, whole.length - 1, database.length]) {
      writeFileSync(file, whole)
      truncateSync(file, length)
      assert.throws(() => checkedDescription(file), { code: /^ERR_/ }, String(length))
    }
  })

  it('is refused if it lacks a part, or if a segment has a name instead of a number', (t) => {
    const [first, second] = description.journal ?? []
    const more = [first, second, { segment: 11, ...part('x') }]
    assert.throws(() => checkedDescription(write(t, { journal: more })), { code: 'ERR_BACKUP_DAMAGED' })
    const named = [{ ...first, segment: '../x' }, second]
    assert.throws(() => checkedDescription(write(t, { journal: named })), { code: /^ERR_/ })
    assert.throws(() => checkedDescription(write(t, { schema: 100_000 })), { message: /newer/ })
  })
})
