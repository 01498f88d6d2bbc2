import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { memoryChanges } from '../../src/cluster/changes/memory.ts'
import { openAccounts, type Accounts } from '../../src/workspaces/accounts.ts'
import { rulesOf } from '../../src/workspaces/keys/key-limits.ts'
import { consoleKeyRoutes } from '../../src/workspaces/keys/routes/console-keys.ts'
import { keyRoutes } from '../../src/workspaces/keys/routes/keys.ts'
import { managedKeyRoutes } from '../../src/workspaces/keys/routes/managed-keys.ts'
import { ownKeyRoute } from '../../src/workspaces/keys/routes/own-key.ts'
import { memoryRateLimiter } from '../../src/workspaces/rate-limits/rate-limit.ts'
import { openSessions } from '../../src/workspaces/sessions/sessions.ts'
import { workspaceSessions, type SignedIn } from '../../src/workspaces/sessions/workspace-sessions.ts'
import type { Caller } from '../../src/workspaces/workspace.ts'
import { testBooks } from '../support/books.ts'
import { catalogOf } from '../support/catalog.ts'
import { ask, CALLER_ADDRESS } from '../support/route-answer.ts'

/** Keys as programs, members and the operator manage them, over a real store. */

const NOW = Date.UTC(2026, 10, 2, 3, 4, 5)
const iso = (at: number): string => new Date(at).toISOString()
/** The end of a day in Sydney. */
const END_OF_JUNE = '2027-06-30T14:00:00.000Z'

/** The limits of a key in requests, and none of them. */
const limits = {
  requests_per_minute: 60,
  tokens_per_minute: 9000,
  spend_per_day: '5.00',
  spend_per_month: '50.00',
  allowed_models: ['a', 'meta/b'],
  allowed_endpoints: ['/rerank', '/embeddings'],
  allowed_addresses: ['203.0.113.0/24', '::1'],
}
const none = Object.fromEntries(Object.keys(limits).map((name) => [name, null]))

interface Created {
  readonly id: string
  readonly key: string
}
type View = Readonly<Record<string, unknown>>
interface Page {
  readonly data: readonly View[]
  readonly next: string | null
}

async function stage(t: TestContext) {
  const books = await testBooks(NOW)
  t.after(() => books.close())
  const changes = memoryChanges()
  const clock = { now: () => books.now, monotonic: () => 0 }
  const accounts: Accounts = await openAccounts(books.store, clock, changes)
  for (const name of ['acme', 'other']) await accounts.createWorkspace(name)
  const catalog = await catalogOf(
    { id: 'meta/a', aliases: ['a'], categories: ['llm'], context_length: 10 },
    { id: 'meta/b', categories: ['llm'], context_length: 10 },
    { id: 'meta/hidden', categories: ['llm'], context_length: 10, visible_to: ['other'] },
  )
  const parts = { accounts, store: books.store, reader: books.store, clock, catalog, audit: books.store }
  const sessions = workspaceSessions(accounts, openSessions(books.store, clock, changes))
  return {
    books,
    accounts,
    sessions,
    operator: keyRoutes(parts),
    console: consoleKeyRoutes(parts),
    managed: managedKeyRoutes(parts),
    /** Lists are in the order of time. */
    make(workspace: string, details: Parameters<Accounts['createKey']>[1] = {}): Promise<Created> {
      books.now += 1
      return accounts.createKey(workspace, details)
    },
    async callerOf(id: string): Promise<Caller> {
      const key = (await accounts.key(id)) ?? assert.fail()
      return { workspace: accounts.workspace(key.workspaceId), keyId: id, rules: rulesOf(key) }
    },
    async signedIn(key: string): Promise<SignedIn> {
      const opened = await sessions.signInWithKey(key, CALLER_ADDRESS)
      return (await sessions.find(opened?.token ?? '')) ?? assert.fail()
    },
    async row(keyId: string, at: number, outputTokens: number) {
      const version = await books.price('m', { output_per_million: '1' }, 0)
      const row = await books.row(accounts.workspace('acme'), 'm', version, at, { inputTokens: 3, outputTokens })
      await books.settle([{ ...row, keyId }])
    },
  }
}

describe('the keys of all workspaces, for the operator', () => {
  const KEYS = '/admin/v1/keys'

  it('are created with every limit, and shown once', async (t) => {
    const { operator, accounts } = await stage(t)
    const body = { workspace: 'acme', name: 'website', expires_at: '2027-06-30', manage_keys: true, ...limits }
    const { status, body: answer, recorded } = await ask(operator, `POST ${KEYS}`, { body })
    const { id, key, ...rest } = answer as Created
    assert.equal(status, 201)
    assert.deepEqual(rest, { workspace: 'acme', name: 'website', expires_at: END_OF_JUNE })
    assert.deepEqual(recorded, [{ action: 'createKey', subject: '', body }])
    const caller = await accounts.authenticate(key)
    assert.deepEqual([caller?.keyId, caller?.workspace.name], [id, 'acme'])
    const { body: list } = await ask(operator, `GET ${KEYS}`)
    assert.deepEqual(list, {
      object: 'list',
      data: [
        {
          id,
          workspace: 'acme',
          redacted: `weir_…${key.slice(-4)}`,
          name: 'website',
          created: iso(NOW),
          expires_at: END_OF_JUNE,
          last_used_at: null,
          revoked: null,
          manage_keys: true,
          ...limits,
        },
      ],
      next: null,
    })
  })

  it('have no name, no end and no limits unless they are given; null counts as not given', async (t) => {
    const { operator, accounts } = await stage(t)
    for (const given of [{}, { expires_at: null, ...none }]) {
      const { body } = await ask(operator, `POST ${KEYS}`, { body: { workspace: 'acme', ...given } })
      const { id, key: _key, ...rest } = body as Created
      assert.deepEqual(rest, { workspace: 'acme' })
      const key = await accounts.key(id)
      assert.deepEqual([key?.name, key?.expiresAt, key?.manageKeys, key?.allowedModels], [null, null, false, null])
    }
    const wrong = (body: object) => ask(operator, `POST ${KEYS}`, { body: { workspace: 'acme', ...body } })
    await assert.rejects(wrong({ workspace: 'none' }), { code: 'not_found' })
    await assert.rejects(wrong({ allowed_models: ['meta/hidden'] }), { code: 'invalid_value', param: 'allowed_models' })
    await assert.rejects(wrong({ expires_at: 'soon' }), { code: 'invalid_value', param: 'expires_at' })
    for (const param of ['spend_per_day', 'spend_per_month'])
      await assert.rejects(wrong({ [param]: '-1' }), { code: 'invalid_value', param })
  })

  it('are listed in pages, by workspace, and without those that do not work', async (t) => {
    const { operator, make, accounts, books, row } = await stage(t)
    const ids: string[] = []
    for (const workspace of ['acme', 'other', 'acme', 'acme'])
      ids.unshift((await make(workspace, { expiresAt: ids.length === 3 ? NOW + 50 : undefined })).id)
    await accounts.revokeKey(ids[1]!)
    books.now = NOW + 50
    await row(ids[0]!, NOW + 40, 1)
    const list = async (query = '') => (await ask(operator, `GET ${KEYS}${query}`)).body as Page
    const idsOf = async (query?: string) => (await list(query)).data.map(({ id }) => id)
    assert.deepEqual(await idsOf(), ids)
    assert.deepEqual(await idsOf('?workspace=acme'), [ids[0], ids[1], ids[3]])
    assert.deepEqual(await idsOf('?state=valid'), [ids[2], ids[3]])
    const page = await list('?limit=3')
    assert.deepEqual([page.data.length, page.next], [3, ids[2]])
    assert.deepEqual(await list(`?limit=3&before=${page.next}`), {
      ...page,
      data: (await list()).data.slice(3),
      next: null,
    })
    assert.deepEqual([page.data[0]?.['last_used_at'], page.data[1]?.['revoked']], [iso(NOW + 40), iso(NOW + 4)])
    await assert.rejects(list('?workspace=none'), { code: 'not_found' })
  })

  it('are a hundred on a page unless the caller gives a number', async (t) => {
    const { operator, make } = await stage(t)
    for (let count = 0; count < 101; count++) await make('acme')
    assert.equal(((await ask(operator, `GET ${KEYS}`)).body as Page).data.length, 100)
  })

  it('are changed and revoked, with the state before on record', async (t) => {
    const { operator, make, books } = await stage(t)
    const { id } = await make('acme', { name: 'old', requestsPerMinute: 5, expiresAt: NOW + 1_000_000 })
    const change = async (body: object) => ask(operator, `PATCH ${KEYS}/${id}`, { body })
    const before = ((await ask(operator, `GET ${KEYS}`)).body as Page).data[0]
    const changed = await change({ name: 'new', manage_keys: true, ...limits, requests_per_minute: null })
    const view = { ...before, name: 'new', manage_keys: true, ...limits, requests_per_minute: null }
    assert.deepEqual(changed.body, { ...view, unreached: [] })
    assert.deepEqual((changed.recorded[0] as View)['state'], before)
    assert.equal(((await change({ expires_at: '2027-06-30' })).body as View)['expires_at'], END_OF_JUNE)
    assert.equal(((await change({ expires_at: null })).body as View)['expires_at'], null)
    await assert.rejects(change({}), { code: 'missing_required_parameter', param: 'name' })
    await assert.rejects(change({ allowed_models: ['none'] }), { code: 'invalid_value', param: 'allowed_models' })
    books.now = NOW + 99
    const revoked = await ask(operator, `DELETE ${KEYS}/${id}`)
    assert.deepEqual(revoked.body, { ...view, expires_at: null, revoked: iso(NOW + 99), unreached: [] })
    assert.deepEqual(revoked.recorded, [{ action: 'revokeKey', subject: id, state: { ...view, expires_at: null } }])
    await assert.rejects(change({ name: 'x' }), { code: 'conflict' })
    for (const method of ['PATCH', 'DELETE'])
      await assert.rejects(ask(operator, `${method} ${KEYS}/none`, { body: { name: 'x' } }), { code: 'not_found' })
  })
})

describe('the keys of a workspace, in its console', () => {
  const KEYS = '/console/api/keys'

  it('are shown with their usage of this month', async (t) => {
    const { console, make, signedIn, row, books, accounts } = await stage(t)
    const used = await make('acme', { name: 'used' })
    const idle = await make('acme', { expiresAt: NOW + 50 })
    await make('other')
    await row(used.id, Date.UTC(2026, 9, 30), 5_000_000)
    await row(used.id, NOW + 9, 2_000_000)
    const session = await signedIn(used.key)
    const list = async (query = '') => (await ask(console, `GET ${KEYS}${query}`, { session })).body as Page
    const shown = (await list()).data
    assert.deepEqual(
      shown.map(({ id, name, is_current, requests, input_tokens, output_tokens, amount, last_used_at }) => [
        [id, name, is_current],
        [requests, input_tokens, output_tokens, amount],
        last_used_at,
      ]),
      [
        [[idle.id, null, false], [0, 0, 0, '0.00'], null],
        [[used.id, 'used', true], [1, 3, 2_000_000, '2.00'], iso(NOW + 9)],
      ],
    )
    assert.equal('workspace' in shown[0]!, false)
    books.now = NOW + 50
    assert.deepEqual(
      (await list('?state=valid')).data.map(({ id }) => id),
      [used.id],
    )
    const page = await list('?limit=1')
    assert.deepEqual([page.data.length, page.next], [1, idle.id])
    assert.deepEqual(
      (await list(`?before=${idle.id}`)).data.map(({ id }) => id),
      [used.id],
    )
    for (let count = 0; count < 99; count++) await accounts.createKey('acme')
    assert.equal((await list()).data.length, 100)
  })

  it('are created, changed and revoked by members, on record', async (t) => {
    const { console, make, signedIn, accounts, books } = await stage(t)
    const session = await signedIn((await make('acme')).key)
    const given = { name: 'website', expires_at: '2027-06-30', manage_keys: true, ...limits }
    const created = await ask(console, `POST ${KEYS}`, { session, body: given })
    const { id, key, ...rest } = created.body as Created
    assert.deepEqual([created.status, rest], [201, { name: 'website' }])
    assert.deepEqual(created.recorded, [{ action: 'createKey', subject: 'acme website', body: given }])
    assert.equal((await accounts.authenticate(key))?.keyId, id)
    const made = await accounts.key(id)
    assert.deepEqual(
      [made?.manageKeys, made?.expiresAt, made?.allowedEndpoints, made?.tokensPerMinute],
      [true, Date.parse(END_OF_JUNE), limits.allowed_endpoints, 9000],
    )
    const changed = await ask(console, `PATCH ${KEYS}/${id}`, { session, body: { name: 'shop', expires_at: null } })
    assert.deepEqual(changed.body, { id, name: 'shop', expires_at: null })
    const [action] = changed.recorded as [View & { state: View }]
    assert.deepEqual([action['action'], action['subject'], action.state['name']], ['changeKey', id, 'website'])
    const moved = await ask(console, `PATCH ${KEYS}/${id}`, { session, body: { expires_at: '2027-06-30' } })
    assert.equal((moved.body as View)['expires_at'], END_OF_JUNE)
    books.now = NOW + 99
    const revoked = await ask(console, `DELETE ${KEYS}/${id}`, { session })
    assert.deepEqual(revoked.body, { id, revoked: iso(NOW + 99) })
    const [ended] = revoked.recorded as [View & { state: View }]
    assert.deepEqual([ended['action'], ended['subject'], ended.state['name']], ['revokeKey', id, 'shop'])
  })

  it('of other workspaces are out of reach, and so is every change with a limited key', async (t) => {
    const { console, make, signedIn } = await stage(t)
    const session = await signedIn((await make('acme')).key)
    const limited = await signedIn((await make('acme', { requestsPerMinute: 5 })).key)
    const [own, others] = [await make('acme'), await make('other')]
    const body = { name: 'x' }
    for (const method of ['PATCH', 'DELETE']) {
      const missing = { code: 'not_found', param: 'id', message: `There is no key "${others.id}".` }
      await assert.rejects(ask(console, `${method} ${KEYS}/${others.id}`, { session, body }), missing)
    }
    for (const request of [`POST ${KEYS}`, `PATCH ${KEYS}/${own.id}`])
      await assert.rejects(ask(console, request, { session: limited, body }), { code: 'key_not_allowed' })
    await ask(console, `DELETE ${KEYS}/${own.id}`, { session: limited })
    const hidden = { name: 'x', allowed_models: ['meta/hidden'] }
    for (const request of [`POST ${KEYS}`, `PATCH ${KEYS}/${(await make('acme')).id}`])
      await assert.rejects(ask(console, request, { session, body: hidden }), { param: 'allowed_models' })
  })
})

describe('the keys of a workspace, for a key that may manage them', () => {
  const KEYS = '/api/v1/keys'

  it('have the limits of that key unless they are given, and no wider ones', async (t) => {
    const { managed, make, callerOf, accounts, books } = await stage(t)
    const manager = {
      name: 'deploy',
      manageKeys: true,
      expiresAt: NOW + 1_000_000_000,
      requestsPerMinute: 60,
      tokensPerMinute: 9000,
      spendPerDay: 5_000_000_000_000n,
      spendPerMonth: 50_000_000_000_000n,
      allowedModels: limits.allowed_models,
      allowedEndpoints: limits.allowed_endpoints,
      allowedAddresses: limits.allowed_addresses,
    }
    const by = await make('acme', manager)
    const caller = await callerOf(by.id)
    const create = (body: object) => ask(managed, `POST ${KEYS}`, { caller, body: { name: 'x', ...body } })
    const same = await create({})
    assert.equal(same.status, 201)
    const { id } = same.body as Created
    const { id: _id, hash: _hash, ending: _ending, createdAt: _at, ...copy } = (await accounts.key(id)) ?? assert.fail()
    const workspaceId = accounts.workspace('acme').id
    assert.deepEqual(copy, { ...manager, name: 'x', manageKeys: false, workspaceId, revokedAt: null })
    const narrower = await create({
      requests_per_minute: 59,
      expires_at: '2026-11-03',
      manage_keys: true,
      allowed_addresses: ['203.0.113.128/25'],
    })
    const narrow = await accounts.key((narrower.body as Created).id)
    assert.deepEqual([narrow?.requestsPerMinute, narrow?.manageKeys, narrow?.tokensPerMinute], [59, true, 9000])
    assert.deepEqual(narrow?.allowedAddresses, ['203.0.113.128/25'])
    for (const [param, value] of [
      ['requests_per_minute', 61],
      ['tokens_per_minute', 9001],
      ['spend_per_day', '5.01'],
      ['spend_per_month', '50.01'],
      ['allowed_models', ['meta/a']],
      ['allowed_models', [...limits.allowed_models, 'meta/a']],
      ['allowed_endpoints', ['/chat/completions']],
      ['allowed_endpoints', [...limits.allowed_endpoints, '/chat/completions']],
      ['allowed_addresses', ['203.0.114.0/24']],
      ['allowed_addresses', [...limits.allowed_addresses, '203.0.114.0/24']],
      ['allowed_addresses', ['203.0.113.0/23']],
      ['expires_at', '2027-06-30'],
    ] as const) {
      await assert.rejects(
        create({ [param]: value }),
        { code: 'key_not_allowed', param },
        `${param} ${JSON.stringify(value)}`,
      )
    }
    const [entry] = await books.store.auditLog({ limit: 1, before: 3 })
    assert.deepEqual(
      [entry?.action, entry?.subject, entry?.actor, entry?.outcome],
      ['createKey', 'acme x', `key deploy of acme from ${CALLER_ADDRESS}`, 'done'],
    )
  })

  it('are listed, changed and revoked if they may do no more than that key', async (t) => {
    const { managed, make, callerOf, accounts, books } = await stage(t)
    const by = await make('acme', { manageKeys: true, requestsPerMinute: 60 })
    const [own, wide, others] = [
      await make('acme', { requestsPerMinute: 60, expiresAt: NOW + 500 }),
      await make('acme'),
      await make('other', { requestsPerMinute: 1 }),
    ]
    const caller = await callerOf(by.id)
    const listed = async (query = '') => {
      const { body } = await ask(managed, `GET ${KEYS}${query}`, { caller })
      return [...(body as Page).data.map(({ id }) => id), (body as Page).next]
    }
    assert.deepEqual(await listed(), [wide.id, own.id, by.id, null])
    assert.deepEqual(await listed('?limit=1'), [wide.id, wide.id])
    assert.deepEqual(await listed(`?before=${own.id}`), [by.id, null])
    const path = `${KEYS}/${own.id}`
    const changed = await ask(managed, `PATCH ${path}`, { caller, body: { name: 'mine' } })
    assert.deepEqual([(changed.body as View)['name'], (changed.body as View)['requests_per_minute']], ['mine', 60])
    const wider = { caller, body: { requests_per_minute: 61 } }
    await assert.rejects(ask(managed, `PATCH ${path}`, wider), {
      code: 'key_not_allowed',
      param: 'requests_per_minute',
    })
    const unknown = { caller, body: { allowed_models: ['none'] } }
    await assert.rejects(ask(managed, `PATCH ${path}`, unknown), { code: 'invalid_value', param: 'allowed_models' })
    for (const method of ['PATCH', 'DELETE']) {
      const on = (id: string) => ask(managed, `${method} ${KEYS}/${id}`, { caller, body: { name: 'x' } })
      await assert.rejects(on(wide.id), { code: 'key_not_allowed', param: 'requests_per_minute' })
      await assert.rejects(on(others.id), { code: 'not_found', param: 'id' })
    }
    books.now = NOW + 500
    assert.deepEqual(await listed('?state=valid'), [wide.id, by.id, null])
    assert.equal(((await ask(managed, `DELETE ${path}`, { caller })).body as View)['revoked'], iso(NOW + 500))
    const [revoked] = await books.store.auditLog({ limit: 1 })
    assert.deepEqual(
      [revoked?.action, revoked?.subject, revoked?.actor, JSON.parse(revoked?.before ?? '').name],
      ['revokeKey', own.id, `key ${by.id} of acme from ${CALLER_ADDRESS}`, 'mine'],
    )
    assert.equal((await accounts.key(wide.id))?.revokedAt, null)
  })

  it('are out of reach of a key that may not manage keys', async (t) => {
    const { managed, make, callerOf } = await stage(t)
    const { id } = await make('acme')
    const caller = await callerOf(id)
    for (const request of [`GET ${KEYS}`, `POST ${KEYS}`, `PATCH ${KEYS}/${id}`, `DELETE ${KEYS}/${id}`])
      await assert.rejects(ask(managed, request, { caller, body: { name: 'x' } }), { code: 'key_not_allowed' })
  })
})

describe('the own key of a caller', () => {
  it('is shown with its limits, those of its workspace, and what is left of them', async (t) => {
    const { accounts, make, callerOf, books } = await stage(t)
    const clock = { now: () => NOW, monotonic: () => 0 }
    const spending = {
      headers: () => ({}),
      spent: async () => 700_000_000_000n,
      spentByKey: async () => ({ day: 1_250_000_000_000n, month: 60_000_000_000_000n }),
    }
    const route = ownKeyRoute({ accounts, spending, clock })
    const shown = async (id: string, workspaceLimit: number | null) => {
      await accounts.setTokensPerMinute('acme', workspaceLimit)
      const caller = await callerOf(id)
      const limiter = memoryRateLimiter(clock)
      const { tokensPerMinute: limit } = caller.workspace
      const tokens = { limit: limit ?? undefined, key: caller.rules?.tokenRate, isChecked: false }
      const subject = { kind: 'workspace', id: caller.workspace.id } as const
      const rate = await limiter.take(subject, 600, caller.rules?.rate, limit === null ? undefined : tokens)
      await rate.tokens?.spend(40)
      return (await ask([route], 'GET /api/v1/key', { caller, rate })).body
    }
    const resets_at = '2026-11-02T03:05:00.000Z'
    const plain = await make('acme')
    const ofWorkspace = {
      requests_per_minute: { limit: 600, used: 1, remaining: 599, resets_at },
      tokens_per_minute: null,
      spend_per_month: null,
    }
    const absent = { requests_per_minute: null, tokens_per_minute: null, spend_per_day: null, spend_per_month: null }
    assert.deepEqual(await shown(plain.id, null), {
      object: 'key',
      id: plain.id,
      redacted: `weir_…${plain.key.slice(-4)}`,
      name: null,
      workspace: 'acme',
      created: iso(NOW + 1),
      expires_at: null,
      allowed_models: null,
      allowed_endpoints: null,
      allowed_addresses: null,
      ...absent,
      workspace_limits: ofWorkspace,
    })
    await accounts.setSpendLimit('acme', { amount: 1_000_000_000_000n, isSoft: true })
    const limited = await make('acme', {
      name: 'website',
      expiresAt: NOW + 5000,
      requestsPerMinute: 60,
      tokensPerMinute: 100,
      spendPerDay: 5_000_000_000_000n,
      spendPerMonth: 50_000_000_000_000n,
      allowedModels: ['a'],
      allowedEndpoints: ['/rerank'],
      allowedAddresses: ['::1'],
    })
    const month = { resets_at: '2026-11-30T13:00:00.000Z' }
    assert.deepEqual(await shown(limited.id, 1000), {
      object: 'key',
      id: limited.id,
      redacted: `weir_…${limited.key.slice(-4)}`,
      name: 'website',
      workspace: 'acme',
      created: iso(books.now),
      expires_at: iso(NOW + 5000),
      allowed_models: ['a'],
      allowed_endpoints: ['/rerank'],
      allowed_addresses: ['::1'],
      requests_per_minute: { limit: 60, used: 1, remaining: 59, resets_at },
      tokens_per_minute: { limit: 100, used: 40, remaining: 60, resets_at },
      spend_per_day: { limit: '5.00', spent: '1.25', remaining: '3.75', resets_at: '2026-11-02T13:00:00.000Z' },
      // More than the limit may be spent: requests that were running when it was lowered end.
      spend_per_month: { limit: '50.00', spent: '60.00', remaining: '0.00', ...month },
      workspace_limits: {
        requests_per_minute: ofWorkspace.requests_per_minute,
        tokens_per_minute: { limit: 1000, used: 40, remaining: 960, resets_at },
        spend_per_month: { limit: '1.00', spent: '0.70', remaining: '0.30', ...month, kind: 'soft' },
      },
    })
    await accounts.setSpendLimit('acme', { amount: 1_000_000_000_000n, isSoft: false })
    const { workspace_limits: hard } = (await shown(plain.id, null)) as { workspace_limits: View }
    assert.equal((hard['spend_per_month'] as View)['kind'], 'hard')
  })

  it('does not exist for members who are signed in without one', async (t) => {
    const { accounts, books } = await stage(t)
    const route = ownKeyRoute({ accounts, spending: {} as never, clock: { now: () => books.now, monotonic: () => 0 } })
    const caller = { workspace: accounts.workspace('acme'), keyId: 'console_1' }
    await assert.rejects(ask([route], 'GET /api/v1/key', { caller }), { code: 'not_found' })
  })
})
