import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'

const root = join(import.meta.dirname, '..')

describe('test/faults', () => {
  it('quotes the sources as they are now', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ['scripts/plant-faults.mjs', '--list'], {
      cwd: root,
    }).catch((error: { stdout: string }) => error)
    const stale = stdout.split('\n').filter((line) => line.endsWith('STALE'))
    assert.deepEqual(stale, [])
    assert.ok(stdout.split('\n').length > 100)
  })

  it('names equivalent mutants of lines that exist', async () => {
    const folder = join(root, 'test/faults/equivalent')
    for (const list of readdirSync(folder)) {
      const { default: equivalents } = (await import(join(folder, list))) as { default: Equivalent[] }
      for (const { file, before } of equivalents) {
        const path = join(root, file)
        const source = existsSync(path) ? readFileSync(path, 'utf8').replaceAll(/\s+/g, ' ') : ''
        assert.ok(source.includes(before), `test/faults/equivalent/${list}: ${file} does not contain ${before}`)
      }
    }
  })
})

interface Equivalent {
  readonly file: string
  readonly before: string
}
