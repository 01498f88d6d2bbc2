import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { cli } from '../support/cli.ts'

describe('the command line', () => {
  it('ends with 0 after help, 2 after a wrong use, and 1 after a failure, with one line that says why', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-main-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const [help, unknown, misused, failed] = await Promise.all([
      cli(['help']),
      cli(['workspace']),
      cli(['keys', '--nonsense']),
      cli(['restore', join(folder, 'missing'), '--data', folder]),
    ])
    assert.deepEqual([help.code, unknown.code, misused.code, failed.code], [0, 2, 2, 1])
    assert.match(help.stdout, /^weir <command> \[options\]\n\nCommands:\n {2}serve/)
    assert.equal(unknown.stderr, 'weir: there is no command "workspace"; did you mean "workspaces"? See: weir --help\n')
    assert.match(misused.stderr, /^weir: .*\. See: weir keys --help\n$/)
    assert.equal(failed.stderr, `weir: ${join(folder, 'missing')}: there is no such file or directory\n`)
  })
})
