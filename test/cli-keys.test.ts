import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { cli } from './support/cli.ts'

describe('weir keys list', () => {
  it('shows the keys of every workspace, or of the one that is named', async (t) => {
    const data = mkdtempSync(join(tmpdir(), 'weir-keys-'))
    t.after(() => rmSync(data, { recursive: true, force: true }))
    const run = async (...args: string[]) => (await cli([...args, '--data', data, '--json'])).json()
    const listed = async (...args: string[]) => {
      const { data: keys } = (await run('keys', 'list', ...args)) as { data: { workspace: string }[] }
      return keys.map(({ workspace }) => workspace).toSorted()
    }
    for (const name of ['one', 'two']) {
      await run('workspaces', 'create', name)
      await run('keys', 'create', '--workspace', name)
    }
    assert.deepEqual(await listed(), ['one', 'two'])
    assert.deepEqual(await listed('--workspace', 'two'), ['two'])
  })
})
