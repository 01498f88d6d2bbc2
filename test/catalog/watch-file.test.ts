import assert from 'node:assert/strict'
import { mkdtempSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { watchFile } from '../../src/catalog/catalog.ts'
import { eventually } from '../support/waiting.ts'

function stage(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-watch-'))
  const file = join(folder, 'weir.yaml')
  writeFileSync(file, 'one')
  // A time that another file can be given to the last digit.
  utimesSync(file, 1_700_000_000, 1_700_000_000)
  const watched = watchFile(file)
  let changes = 0
  const begin = () => watched.onChange(() => changes++)
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return { folder, file, begin, changes: () => changes }
}

describe('a watched file', () => {
  it('has changed when its time has, even if its length has not', async (t) => {
    const { file, begin, changes } = stage(t)
    t.after(begin())
    writeFileSync(file, 'two')
    utimesSync(file, 1000, 1000)
    await eventually('the change is seen', () => changes() === 1)
  })

  it('has changed when another file replaces it, even one of the same length and time', async (t) => {
    const { folder, file, begin, changes } = stage(t)
    t.after(begin())
    const before = statSync(file)
    writeFileSync(join(folder, 'next'), 'two')
    utimesSync(join(folder, 'next'), before.atime, before.mtime)
    renameSync(join(folder, 'next'), file)
    const { mtimeMs, size } = statSync(file)
    assert.deepEqual([mtimeMs, size], [before.mtimeMs, before.size])
    await eventually('the change is seen', () => changes() === 1)
  })

  it('has changed even if that was before a listener was added', async (t) => {
    const { file, begin, changes } = stage(t)
    writeFileSync(file, 'longer')
    t.after(begin())
    await eventually('the change is seen', () => changes() === 1)
  })
})
