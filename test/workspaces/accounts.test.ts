import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { openAccounts, type Accounts } from '../../src/workspaces/accounts.ts'
import { workspaceList } from '../../src/workspaces/workspace-list.ts'
import { formatKey, hashKey } from '../../src/workspaces/keys/api-key.ts'
import type { Workspace } from '../../src/workspaces/workspace.ts'
import type { ChangeFeed } from '../../src/cluster/changes/change-feed.ts'
import { testBooks, type TestBooks } from '../support/books.ts'
import { noLimits } from '../support/key-limits.ts'
import { orderOfChanges } from '../support/order-of-changes.ts'

const NOW = Date.UTC(2026, 10, 1)

let books: TestBooks
let accounts: Accounts
let now = NOW
const announced: string[] = []
const reactions = new Map<string, () => Promise<void>>()

/** Announces to this process, and says that one replica did not answer. */
const changes: ChangeFeed = {
  async announce(change) {
    announced.push(change)
    await reactions.get(change)?.()
    return ['replica 2']
  },
  subscribe(change, react) {
    reactions.set(change, react)
    return () => {}
  },
}

before(async () => {
  books = await testBooks(NOW)
  accounts = await openAccounts(books.store, { now: () => now, monotonic: () => 0 }, changes)
  for (const name of ['acme', 'Bravo', 'acre']) await create(name)
})
after(() => books.close())

/** Lists are in the order of time. */
function create(name: string): Promise<Workspace> {
  now += 1
  return accounts.createWorkspace(name)
}

const invalid = (param: string) => ({ code: 'invalid_value', param })

describe('a workspace', () => {
  it('has a unique id, and a unique name of 1 to 64 letters, digits and marks', async () => {
    const { id, createdAt, requestsPerMinute } = accounts.workspace('acme')
    assert.match(id, /^ws_[0-9a-f]{24}$/)
    assert.deepEqual([createdAt, requestsPerMinute, accounts.workspaceById(id)?.name], [NOW + 1, null, 'acme'])
    for (const name of ['', ' a', '-a', 'a'.repeat(65), 'a/b', 'é']) {
      await assert.rejects(accounts.createWorkspace(name), invalid('name'), name)
    }
    assert.equal((await create('a'.repeat(64))).name.length, 64)
    await assert.rejects(accounts.createWorkspace('acme'), { code: 'conflict', param: 'name' })
    assert.throws(() => accounts.workspace('missing'), { code: 'not_found', param: 'workspace' })
  })

  it('is not created if the store fails, for whatever reason', async () => {
    const store = { ...books.store, createWorkspace: () => Promise.reject(new Error('the disk is full')) }
    const unheard = { ...changes, subscribe: () => () => {} }
    const failing = await openAccounts(store, { now: () => now, monotonic: () => 0 }, unheard)
    await assert.rejects(failing.createWorkspace('another'), /the disk is full/)
  })

  it('has a rate limit from 1 to 100,000,000, or the default', async () => {
    for (const limit of [0, 1.5, -1, 100_000_001]) {
      await assert.rejects(accounts.setRequestsPerMinute('acme', limit), invalid('requests_per_minute'))
      await assert.rejects(accounts.setTokensPerMinute('acme', limit), invalid('tokens_per_minute'))
    }
    for (const limit of [1, 100_000_000, null]) {
      assert.equal((await accounts.setRequestsPerMinute('acme', limit)).requestsPerMinute, limit)
      assert.equal((await accounts.setTokensPerMinute('acme', limit)).tokensPerMinute, limit)
    }
  })

  it('is found by its id or its name, and every change of it is announced', async () => {
    const { id } = accounts.workspace('acme')
    announced.length = 0
    const limit = { amount: 5n, isSoft: true }
    assert.deepEqual((await accounts.setSpendLimit(id, limit)).spendLimit, limit)
    const buyer = { name: 'Acme', abn: null, address: null, purchaseOrder: '7', email: null }
    assert.deepEqual((await accounts.setBuyer('acme', buyer)).buyer, buyer)
    await accounts.setRequestsPerMinute(id, null)
    await create('later')
    assert.deepEqual(
      announced,
      Array.from({ length: 4 }, () => 'accounts'),
    )
  })

  it('is listed a page at a time, the newest first, and found by a part of its name', () => {
    const all = accounts.workspaces().map(({ name }) => name)
    const page = (limit: number, before?: string, search?: string) => {
      const { workspaces, next } = workspaceList(accounts, { limit, before, search })
      return { names: workspaces.map(({ name }) => name), next }
    }
    assert.deepEqual(page(all.length), { names: all.toReversed(), next: null })
    const first = page(all.length - 1)
    assert.deepEqual(first.names, all.toReversed().slice(0, -1))
    assert.deepEqual(page(5, first.next ?? ''), { names: ['acme'], next: null })
    assert.deepEqual(page(5, undefined, 'AC').names, ['acre', 'acme'])
    const [newest] = [page(1, undefined, 'ac')]
    assert.deepEqual(page(1, newest.next ?? '', 'ac'), { names: ['acme'], next: null })
    assert.deepEqual(page(5, undefined, 'none'), { names: [], next: null })
    assert.throws(() => page(5, 'unknown'), invalid('before'))
  })
})

describe('a key', () => {
  it('may have a name of 1 to 100 characters, and an expiry in the future', async () => {
    for (const name of ['', '  ', 'x'.repeat(101)]) {
      await assert.rejects(accounts.createKey('acme', { name }), invalid('name'))
    }
    await assert.rejects(accounts.createKey('acme', { expiresAt: now }), invalid('expires_at'))
    announced.length = 0
    const created = await accounts.createKey('acme', { name: 'x'.repeat(100), expiresAt: now + 1 })
    assert.deepEqual(announced, ['keys'])
    const { id, key, ...rest } = created
    assert.match(id, /^key_[0-9a-f]{24}$/)
    assert.deepEqual(rest, { workspace: 'acme', name: 'x'.repeat(100), expires_at: new Date(now + 1).toISOString() })
    const stored = await accounts.key(id)
    assert.deepEqual(
      [stored?.hash, stored?.ending, stored?.createdAt, stored?.expiresAt, stored?.revokedAt, stored?.manageKeys],
      [hashKey(key), key.slice(-4), now, now + 1, null, false],
    )
    assert.deepEqual(Object.keys(await accounts.createKey('acme')), ['id', 'key', 'workspace'])
  })

  it('is refused from the moment that it expires or is revoked', async () => {
    const { id, key } = await accounts.createKey('acme', { expiresAt: now + 10 })
    now += 9
    assert.equal((await accounts.authenticate(key))?.keyId, id)
    assert.equal((await accounts.callerOf(hashKey(key)))?.workspace.name, 'acme')
    now += 1
    assert.equal(await accounts.authenticate(key), undefined)
    const other = await accounts.createKey('acme')
    assert.equal((await accounts.authenticate(other.key))?.keyId, other.id)
    const { key: revoked, unreached } = await accounts.revokeKey(other.id)
    assert.deepEqual([revoked.revokedAt, unreached], [now, ['replica 2']])
    assert.equal(await accounts.authenticate(other.key), undefined)
    await assert.rejects(accounts.revokeKey('key_none'), { code: 'not_found', param: 'id' })
    assert.equal(await accounts.authenticate('weir_none'), undefined)
  })

  it('is renamed, and its expiry is moved or removed, from the next request on; unless it is revoked', async () => {
    const { id, key } = await accounts.createKey('acme', { name: 'site', expiresAt: now + 10 })
    assert.equal((await accounts.authenticate(key))?.keyId, id)
    announced.length = 0
    const renamed = await accounts.changeKey(id, { name: 'shop' })
    assert.deepEqual([renamed.key.name, renamed.key.expiresAt], ['shop', now + 10])
    assert.deepEqual([renamed.unreached, announced], [['replica 2'], ['keys']])
    await accounts.changeKey(id, { expiresAt: now + 1 })
    now += 1
    assert.equal(await accounts.authenticate(key), undefined, 'also if the key was in memory')
    await accounts.changeKey(id, { expiresAt: null })
    now += 100
    assert.equal((await accounts.authenticate(key))?.keyId, id, 'a key that had expired works again')
    for (const name of ['', '  ', 'x'.repeat(101)]) {
      await assert.rejects(accounts.changeKey(id, { name }), invalid('name'))
    }
    await assert.rejects(accounts.changeKey(id, { expiresAt: now }), invalid('expires_at'))
    await assert.rejects(accounts.changeKey('key_none', { name: 'x' }), { code: 'not_found', param: 'id' })
    await accounts.revokeKey(id)
    await assert.rejects(accounts.changeKey(id, { name: 'x' }), { code: 'conflict', param: 'id' })
  })

  it('is accepted even if another process has just created its workspace', async () => {
    await books.store.createWorkspace({ id: 'ws_new', name: 'new', requestsPerMinute: null, createdAt: now })
    const key = formatKey(Buffer.alloc(32, 7))
    const stored = {
      id: 'key_new',
      workspaceId: 'ws_new',
      hash: hashKey(key),
      ending: null,
      name: null,
      createdAt: now,
    }
    await books.store.createKey({ ...stored, expiresAt: null, revokedAt: null, ...noLimits })
    assert.equal((await accounts.authenticate(key))?.workspace.name, 'new')
  })

  it('is listed a page at a time, the newest first', async () => {
    const { id: workspaceId } = accounts.workspace('Bravo')
    const ids: string[] = []
    for (let index = 0; index < 3; index++) {
      now += 1
      ids.unshift((await accounts.createKey('Bravo')).id)
    }
    const page = async (limit: number, before?: string) => {
      const { keys, next } = await accounts.keys({ workspaceId, limit, before })
      return { ids: keys.map(({ id }) => id), next }
    }
    assert.deepEqual(await page(3), { ids, next: undefined })
    assert.deepEqual(await page(2), { ids: ids.slice(0, 2), next: ids[1] })
    assert.deepEqual(await page(2, ids[1]), { ids: ids.slice(2), next: undefined })
    await assert.rejects(page(2, 'unknown'), invalid('before'))
  })
})

describe('a key that is lent to a chat', () => {
  it('works until its end, and may be one that another worker lent', async () => {
    const lent = accounts.lendKey('acme')
    assert.match((await accounts.authenticate(lent.key))?.keyId ?? '', /^chat_/)
    const again = accounts.lendKey('acme', lent.key)
    assert.equal(again.key, lent.key)
    assert.throws(() => accounts.lendKey('acme', 'weir_not_a_key'), invalid('key'))
    lent.end()
    assert.equal(await accounts.authenticate(lent.key), undefined)
  })

  it('is one of at most 1,000', () => {
    const lent = Array.from({ length: 1000 }, () => accounts.lendKey('acme'))
    assert.throws(() => accounts.lendKey('acme'), { code: 'service_unavailable' })
    lent[0]?.end()
    accounts.lendKey('acme').end()
    for (const key of lent) key.end()
  })
})

describe('a change of a workspace or key', () => {
  it('is in the store before it is announced, and every replica has it before the call ends', async () => {
    const {
      store,
      changes: feed,
      during,
    } = orderOfChanges(books.store, [
      'createWorkspace',
      'setRequestsPerMinute',
      'setTokensPerMinute',
      'setSpendLimit',
      'setBuyer',
      'createKey',
      'changeKey',
      'revokeKey',
    ])
    const here = await openAccounts(store, { now: () => now, monotonic: () => 0 }, feed)
    const told = (change: 'accounts' | 'keys') => [`announce ${change}`, 'announced']
    const buyer = { name: 'O', abn: null, address: null, purchaseOrder: null, email: null }
    for (const [write, call] of [
      ['createWorkspace', () => here.createWorkspace('ordered')],
      ['setRequestsPerMinute', () => here.setRequestsPerMinute('ordered', 5)],
      ['setTokensPerMinute', () => here.setTokensPerMinute('ordered', 5)],
      ['setSpendLimit', () => here.setSpendLimit('ordered', { amount: 1n, isSoft: true })],
      ['setBuyer', () => here.setBuyer('ordered', buyer)],
    ] as const) {
      assert.deepEqual(await during(call), [write, ...told('accounts')])
    }
    let id = ''
    assert.deepEqual(await during(async () => ({ id } = await here.createKey('ordered'))), [
      'createKey',
      ...told('keys'),
    ])
    assert.deepEqual(await during(() => here.changeKey(id, { name: 'x' })), ['changeKey', ...told('keys')])
    assert.deepEqual(await during(() => here.revokeKey(id)), ['revokeKey', ...told('keys')])
  })

  it('is not missed if it is announced while a replica starts', async () => {
    const { changes: feed } = orderOfChanges({}, [])
    let reads = 0
    const store = {
      ...books.store,
      async workspaces() {
        const read = await books.store.workspaces()
        if (reads++ === 0) {
          await books.store.createWorkspace({ id: 'ws_late', name: 'late', requestsPerMinute: null, createdAt: now })
          await feed.announce('accounts')
        }
        return read
      },
    }
    const here = await openAccounts(store, { now: () => now, monotonic: () => 0 }, feed)
    assert.equal(here.workspace('late').id, 'ws_late')
  })

  it('is reported as a taken name if another process was faster', async () => {
    const { changes: feed } = orderOfChanges({}, [])
    const here = await openAccounts(books.store, { now: () => now, monotonic: () => 0 }, feed)
    await books.store.createWorkspace({ id: 'ws_fast', name: 'fast', requestsPerMinute: null, createdAt: now })
    await assert.rejects(here.createWorkspace('fast'), { code: 'conflict', param: 'name' })
  })
})
