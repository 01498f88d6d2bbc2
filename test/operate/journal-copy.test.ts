import assert from 'node:assert/strict'
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { hash } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { JOURNAL_FOLDER, segmentName } from '../../src/ledger/journal/segment-names.ts'
import { appendSegments, closeSegments, openIfThere, openSegments } from '../../src/operate/backup/journal-copy.ts'

function stage(t: TestContext): { dataDir: string; path(segment: number): string } {
  const dataDir = mkdtempSync(join(tmpdir(), 'weir-copy-'))
  t.after(() => rmSync(dataDir, { recursive: true }))
  return { dataDir, path: (segment) => join(dataDir, JOURNAL_FOLDER, segmentName(segment)) }
}

const descriptors = (): number => readdirSync('/proc/self/fd').length

describe('the copy of a journal in a backup', () => {
  it('has every segment as far as it was written, even if it is removed or grows meanwhile', (t) => {
    const { dataDir, path } = stage(t)
    assert.deepEqual(openSegments(dataDir), [])
    mkdirSync(join(dataDir, JOURNAL_FOLDER))
    writeFileSync(path(3), 'three')
    writeFileSync(path(12), 'x'.repeat(1_500_000))
    const before = descriptors()
    const segments = openSegments(dataDir)
    rmSync(path(3))
    writeFileSync(path(12), 'more', { flag: 'a' })
    const file = join(dataDir, 'backup')
    const into = openSync(file, 'w+')
    let pieces = 0
    const described = appendSegments(segments, into, 10, () => pieces++)
    closeSync(into)
    closeSegments(segments)
    assert.equal(descriptors(), before)
    const texts = ['three', 'x'.repeat(1_500_000)]
    assert.deepEqual(
      described,
      texts.map((text, index) => ({ segment: [3, 12][index], bytes: text.length, sha256: hash('sha256', text) })),
    )
    assert.equal(readFileSync(file, 'latin1'), '\0'.repeat(10) + texts.join(''))
    assert.equal(pieces, 3)
  })

  it('has the checksums of its own bytes, whatever follows them', (t) => {
    const { dataDir, path } = stage(t)
    mkdirSync(join(dataDir, JOURNAL_FOLDER))
    for (const segment of [1, 2]) writeFileSync(path(segment), `segment ${segment}`)
    const file = join(dataDir, 'backup')
    writeFileSync(file, 'x'.repeat(1000))
    const segments = openSegments(dataDir)
    const into = openSync(file, 'r+')
    const described = appendSegments(segments, into, 500, () => {})
    closeSync(into)
    closeSegments(segments)
    assert.deepEqual(
      described.map(({ sha256 }) => sha256),
      [hash('sha256', 'segment 1'), hash('sha256', 'segment 2')],
    )
  })

  it('leaves nothing open when a segment cannot be opened', (t) => {
    const { dataDir, path } = stage(t)
    mkdirSync(join(dataDir, JOURNAL_FOLDER))
    writeFileSync(path(1), 'one')
    symlinkSync(path(2), path(2))
    const before = descriptors()
    assert.throws(() => openSegments(dataDir), { code: 'ELOOP' })
    assert.equal(openIfThere(path(3)), undefined, 'it was removed after the folder was read')
    assert.equal(descriptors(), before)
  })
})
