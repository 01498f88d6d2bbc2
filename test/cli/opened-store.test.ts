import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { CommandFailed, parseFlags, withStore } from '../../src/cli/command.ts'
import { openSettledStore } from '../../src/cli/settled-store.ts'
import { journalFolder } from '../../src/ledger/journal/journal-files-on-disk.ts'
import { takeServiceLock } from '../../src/store/sqlite/service-lock.ts'
import { openFiles } from '../support/open-files.ts'
import { capturing } from '../support/printed.ts'

/** The store of a command, in a data directory without a service. */
function stage(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-command-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

describe('the store of a command', () => {
  it('is closed when the command has ended or failed', { skip: process.platform !== 'linux' }, async (t) => {
    const folder = stage(t)
    const flags = parseFlags(['--data', folder, '--json'])
    const opened = await withStore(flags, { changes: false }, async ({ store }) => {
      await store.workspaces()
      return openFiles(folder)
    })
    assert.ok(opened > 0)
    assert.equal(openFiles(folder), 0)
    await assert.rejects(
      withStore(flags, { changes: false }, () => Promise.reject(new Error('no'))),
      /^Error: no$/,
    )
    assert.equal(openFiles(folder), 0)
  })

  it('waits for a service that takes the directory while the journal of an earlier one is applied', async (t) => {
    const folder = stage(t)
    mkdirSync(journalFolder(folder))
    const opening = openSettledStore({ dataDir: folder })
    const lock = takeServiceLock(folder)
    setImmediate(() => lock.close())
    await (await opening).close()
  })

  it('is created only where an option or a configuration names the directory, which is reported once', async (t) => {
    const folder = stage(t)
    const config = join(folder, 'weir.yaml')
    writeFileSync(config, 'models: []\n')
    const opened = (changes: boolean, ...args: readonly string[]) =>
      capturing(() => withStore(parseFlags(['--config', config, ...args]), { changes }, async () => {}))
    const { failure } = await opened(false)
    assert.ok(failure instanceof CommandFailed)
    const data = join(folder, 'data')
    assert.equal(
      failure.message,
      `there is no ledger in ${data}; weir serve creates one, and --data DIR names another directory`,
    )
    const created = { stdout: '', failure: undefined, stderr: `weir: created a new ledger in ${data}\n` }
    assert.deepEqual(await opened(true), created)
    assert.deepEqual(await opened(false), { ...created, stderr: '' })
    const named = join(folder, 'named')
    assert.equal((await opened(false, '--data', named)).stderr, `weir: created a new ledger in ${named}\n`)
    assert.equal((await opened(false, '--data', join(folder, 'quiet'), '--json')).stderr, '')
  })
})
