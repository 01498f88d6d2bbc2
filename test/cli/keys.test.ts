import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { openAccounts } from '../../src/workspaces/accounts.ts'
import { openSessions } from '../../src/workspaces/sessions/sessions.ts'
import { workspaceSessions } from '../../src/workspaces/sessions/workspace-sessions.ts'
import { memoryChanges } from '../../src/cluster/changes/memory.ts'
import { sydneyDate } from '../../src/shared/money/sydney-time.ts'
import { testBooks } from '../support/books.ts'
import { stageConfig } from '../support/chat-stage.ts'
import { commandLine } from '../support/command-line.ts'
import { scriptedEngine } from '../support/scripted-engine.ts'
import { startWeir } from '../support/weir.ts'

describe('weir keys list', () => {
  it('shows the keys of every workspace, or of the given one', async (t) => {
    const data = mkdtempSync(join(tmpdir(), 'weir-keys-'))
    t.after(() => rmSync(data, { recursive: true, force: true }))
    const run = async (...args: string[]) => (await commandLine([...args, '--data', data, '--json'])).json()
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

const redacted = (key = ''): string => `weir_…${key.slice(-4)}`

describe('a key', () => {
  it('may have a name and a last day; weir keys list shows both, and when it was last used', async (t) => {
    const engine = await scriptedEngine()
    const weir = await startWeir(stageConfig([engine.url]))
    t.after(async () => {
      await weir.stop()
      await engine.close()
    })
    const run = (...args: string[]) => commandLine([...args, '--config', weir.configFile, '--data', weir.dataDir])
    const create = async (...args: string[]) =>
      (await run('keys', 'create', '--workspace', 'default', '--json', ...args)).json<Record<string, string>>()
    const named = await create('--name', 'website', '--expires', '2099-06-30')
    // The end of that day in Sydney.
    assert.deepEqual([named['name'], named['expires_at']], ['website', '2099-06-30T14:00:00.000Z'])
    const gone = await create('--name', 'old laptop')
    await run('keys', 'revoke', gone['id'] ?? '')
    await (await weir.chat({}, { key: named['key'] ?? '' })).text()
    const [row] = await weir.ledger()
    const today = sydneyDate(row?.settledAt ?? 0)

    const { data } = (await run('keys', 'list', '--json')).json<{ data: Record<string, string | null>[] }>()
    assert.deepEqual(
      data.map(({ name, last_used_at: used, revoked }) => [name, used, revoked === null]),
      [
        ['old laptop', null, false],
        ['website', new Date(row?.settledAt ?? 0).toISOString(), true],
        [null, null, true],
      ],
    )
    const first = data[2]?.['id'] ?? ''
    assert.equal(
      (await run('keys', 'list')).stdout,
      `ID                            KEY         WORKSPACE  NAME     LAST USED   EXPIRES
${named['id']}  ${redacted(named['key'])}  default    website  ${today}  2099-06-30
${first}  ${redacted(weir.key)}  default    -        never       -

Keys that are revoked or have expired are not shown: see them with --all.
`,
    )
    assert.equal(
      (await run('keys', 'list', '--all')).stdout,
      `ID                            KEY         WORKSPACE  NAME        LAST USED   EXPIRES     STATE
${gone['id']}  ${redacted(gone['key'])}  default    old laptop  never       -           revoked
${named['id']}  ${redacted(named['key'])}  default    website     ${today}  2099-06-30  works
${first}  ${redacted(weir.key)}  default    -           never       -           works
`,
    )
  })

  it('is refused from the moment it expires, and so are sessions that were started with it', async () => {
    const clock = { now: () => 1000, monotonic: () => 0 }
    const books = await testBooks(1000)
    try {
      const accounts = await openAccounts(books.store, clock, memoryChanges())
      await accounts.createWorkspace('acme')
      const { key } = await accounts.createKey('acme', { expiresAt: 2000 })
      const sessions = workspaceSessions(accounts, openSessions(books.store, clock, memoryChanges()))
      const { token = '' } = (await sessions.signInWithKey(key, '::1')) ?? {}
      clock.now = () => 1999
      assert.ok((await accounts.authenticate(key)) && (await sessions.find(token)))
      clock.now = () => 2000
      assert.deepEqual([await accounts.authenticate(key), await sessions.find(token)], [undefined, undefined])
      assert.equal(await sessions.signInWithKey(key, '::1'), undefined)
      await assert.rejects(accounts.createKey('acme', { expiresAt: 2000 }), /must expire in the future/)
    } finally {
      await books.close()
    }
  })

  it('that is lent leaves no trace', async () => {
    const books = await testBooks(1000)
    try {
      const clock = { now: () => 1000, monotonic: () => 0 }
      const accounts = await openAccounts(books.store, clock, memoryChanges())
      const { id } = await accounts.createWorkspace('acme')
      const { key, end } = accounts.lendKey('acme')
      const sessions = workspaceSessions(accounts, openSessions(books.store, clock, memoryChanges()))
      assert.equal((await accounts.authenticate(key))?.workspace.id, id)
      assert.equal(await sessions.signInWithKey(key, '::1'), undefined, 'no session remains')
      await accounts.setRequestsPerMinute('acme', 5)
      assert.equal((await accounts.authenticate(key))?.workspace.requestsPerMinute, 5)
      end()
      assert.deepEqual(
        [await accounts.authenticate(key), await accounts.keys({ limit: 9 })],
        [undefined, { keys: [], next: undefined }],
      )
      assert.throws(() => accounts.lendKey('nobody'), /There is no workspace "nobody"/)
    } finally {
      await books.close()
    }
  })
})
