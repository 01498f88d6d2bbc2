import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { memoryChanges } from '../../src/cluster/changes/memory.ts'
import { openAccounts } from '../../src/workspaces/accounts.ts'
import { sessionRoutes } from '../../src/workspaces/sessions/routes/console-session.ts'
import { operatorSessionRoutes } from '../../src/workspaces/sessions/routes/operator-session.ts'
import { operatorSessionsRoutes } from '../../src/workspaces/sessions/routes/operator-sessions.ts'
import type { HeldRole } from '../../src/workspaces/sessions/session-store.ts'
import { OPERATOR, openSessions, SESSION_MS } from '../../src/workspaces/sessions/sessions.ts'
import { workspaceSessions } from '../../src/workspaces/sessions/workspace-sessions.ts'
import { testBooks } from '../support/books.ts'
import { ask, CALLER_ADDRESS } from '../support/route-answer.ts'

/** Signing in to both consoles without a listener, over a real store. */

const NOW = Date.UTC(2026, 10, 2)
const ENDS = new Date(NOW + SESSION_MS).toISOString()
const TOKEN = 'secret-token-of-the-operator'
const own = { 'x-weir-console': '1' }
const ada = { id: 'person_1', issuer: 'https://id.test', subject: 'ada', name: 'Ada', email: 'ada@id.test' }

async function stage(t: TestContext) {
  const books = await testBooks(NOW)
  t.after(() => books.close())
  const changes = memoryChanges()
  const clock = { now: () => books.now, monotonic: () => 0 }
  const accounts = await openAccounts(books.store, clock, changes)
  for (const name of ['acme', 'other']) await accounts.createWorkspace(name)
  const all = openSessions(books.store, clock, changes)
  const sessions = workspaceSessions(accounts, all)
  const spending = { headers: () => ({}), spent: async () => 1_500_000_000_000n, spentByKey: async () => assert.fail() }
  const console = sessionRoutes({ accounts, sessions, spending, limits: { requestsPerMinute: 600 } })
  const operatorParts = { operatorToken: TOKEN, operatorSessions: all, accounts }
  const operator = operatorSessionRoutes(operatorParts)
  const workspaceId = (name: string) => accounts.workspace(name).id
  return {
    books,
    accounts,
    all,
    sessions,
    console,
    operator,
    list: operatorSessionsRoutes(operatorParts),
    workspaceId,
    signIn: (body: object, headers: Readonly<Record<string, string>> = own) =>
      ask(console, 'POST /console/api/session', { body, headers }),
    /** A request of the person who has this session. */
    async as(token: string, request: string, body?: object) {
      const session = (await sessions.find(token)) ?? assert.fail('there is no such session')
      const headers = { ...own, cookie: `weir_session=${token}` }
      return ask(console, request, { session, headers, ...(body ? { body } : {}) })
    },
    open: async (owner: string, roles: readonly HeldRole[] = [], ms = 1000) =>
      all.open({
        owner,
        keyHash: null,
        address: CALLER_ADDRESS,
        ...(roles.length > 0 ? { person: { person: ada, roles, ms } } : {}),
      }),
  }
}

/** The token in the cookie that an answer sets, and the rest of the cookie. */
function cookieIn(headers: Readonly<Record<string, string | string[]>>): readonly [token: string, rest: string] {
  const [, token = '', rest = ''] = /^weir_\w+=([^;]*); (.*)$/.exec(String(headers['Set-Cookie'])) ?? []
  assert.equal(headers['Cache-Control'], 'no-store')
  return [token, rest]
}

const COOKIE = 'Path=/; HttpOnly; SameSite=Strict'

describe('signing in to the console of a workspace', () => {
  it('with a key opens a session, which shows who it is and what the workspace may spend', async (t) => {
    const { signIn, as, accounts } = await stage(t)
    const { id, key } = await accounts.createKey('acme', { name: 'website' })
    const { status, body, headers } = await signIn({ key: ` ${key} ` })
    const [token, rest] = cookieIn(headers)
    const shown = {
      object: 'session',
      workspace: 'acme',
      key_id: id,
      key_name: 'website',
      person: null,
      role: 'workspace_admin',
      workspaces: ['acme'],
      expires_at: ENDS,
      requests_per_minute: 600,
      spend_limit: null,
      spend_limit_kind: null,
      spent: '1.50',
    }
    assert.deepEqual([status, body, rest], [200, shown, COOKIE])
    assert.deepEqual((await as(token, 'GET /console/api/session')).body, shown)
    await accounts.setRequestsPerMinute('acme', 7)
    for (const isSoft of [true, false]) {
      await accounts.setSpendLimit('acme', { amount: 2_000_000_000_000n, isSoft })
      assert.deepEqual((await as(token, 'GET /console/api/session')).body, {
        ...shown,
        requests_per_minute: 7,
        spend_limit: '2.00',
        spend_limit_kind: isSoft ? 'soft' : 'hard',
      })
    }
  })

  it('with a link works once', async (t) => {
    const { signIn, sessions, as } = await stage(t)
    const { secret } = await sessions.issueLink('acme')
    const [token] = cookieIn((await signIn({ link: secret })).headers)
    const { key_id, key_name, workspace } = (await as(token, 'GET /console/api/session')).body as Record<
      string,
      unknown
    >
    assert.deepEqual([key_id, key_name, workspace], [null, null, 'acme'])
    await assert.rejects(signIn({ link: secret }), { code: 'invalid_api_key', message: /link has been used/ })
  })

  it('is refused from other sites, and with neither a key nor a link, with both, or a wrong one', async (t) => {
    const { signIn, accounts, sessions } = await stage(t)
    const { key } = await accounts.createKey('acme')
    for (const headers of [{}, { ...own, 'sec-fetch-site': 'cross-site' }])
      await assert.rejects(signIn({ key }, headers), { code: 'missing_api_key' })
    const { secret } = await sessions.issueLink('acme')
    for (const body of [{}, { key, link: secret }])
      await assert.rejects(signIn(body), { code: 'missing_required_parameter', param: 'key' })
    await assert.rejects(signIn({ key: 'wrong' }), { code: 'invalid_api_key', message: /API key is not valid/ })
    const { key: elsewhere } = await accounts.createKey('acme', { allowedAddresses: ['10.0.0.0/8'] })
    await assert.rejects(signIn({ key: elsewhere }), { code: 'key_not_allowed' })
    const { key: here } = await accounts.createKey('acme', { allowedAddresses: [CALLER_ADDRESS] })
    assert.equal((await signIn({ key: here })).status, 200)
  })

  it('leaves no session behind if the key may not be used from there', async (t) => {
    const { signIn, accounts, all } = await stage(t)
    const { key } = await accounts.createKey('acme', { allowedAddresses: ['10.0.0.0/8'] })
    await assert.rejects(signIn({ key }), { code: 'key_not_allowed' })
    assert.deepEqual(await all.list({ limit: 9 }), [])
  })

  it('ends with signing out, which deletes the cookie', async (t) => {
    const { signIn, as, accounts, sessions } = await stage(t)
    const [token] = cookieIn((await signIn({ key: (await accounts.createKey('acme')).key })).headers)
    const { text, headers } = await as(token, 'DELETE /console/api/session')
    assert.deepEqual([text, cookieIn(headers)], ['{"signed_out":true}', ['', `${COOKIE}; Max-Age=0`]])
    assert.equal(await sessions.find(token), undefined)
  })
})

describe('the session of a person', () => {
  it('moves between the workspaces of their roles', async (t) => {
    const { open, as, workspaceId } = await stage(t)
    const roles = [
      { role: 'member', workspaceId: workspaceId('other') },
      { role: 'workspace_admin', workspaceId: workspaceId('acme') },
    ] as const
    const { token } = await open(workspaceId('other'), roles)
    const shown = async () => {
      const { body } = await as(token, 'GET /console/api/session')
      const { workspace, role, person, workspaces } = body as Record<string, unknown>
      return [workspace, role, person, workspaces]
    }
    assert.deepEqual(await shown(), ['other', 'member', 'Ada, ada@id.test', ['acme', 'other']])
    const moved = await as(token, 'PUT /console/api/session/workspace', { workspace: 'acme' })
    assert.equal((moved.body as { role: string }).role, 'workspace_admin')
    assert.deepEqual(await shown(), ['acme', 'workspace_admin', 'Ada, ada@id.test', ['acme', 'other']])
    const unknown = as(token, 'PUT /console/api/session/workspace', { workspace: 'none' })
    await assert.rejects(unknown, { code: 'not_found', param: 'workspace' })
  })

  it('is listed with their other sessions, which they can end', async (t) => {
    const { open, as, workspaceId, all, sessions, books } = await stage(t)
    const roles = [{ role: 'member', workspaceId: workspaceId('acme') }] as const
    const first = await open(workspaceId('acme'), roles)
    books.now += 1
    const second = await open(workspaceId('acme'), roles)
    const stranger = await open(workspaceId('acme'))
    const { object, data } = (await as(first.token, 'GET /console/api/sessions')).body as {
      object: string
      data: readonly { id: string; is_current: boolean }[]
    }
    assert.equal(object, 'list')
    const names = await Promise.all([second, first].map(async ({ token }) => (await all.find(token))?.name))
    assert.deepEqual(
      data.map(({ id, is_current }) => [id, is_current]),
      [
        [names[0], false],
        [names[1], true],
      ],
    )
    const strange = (await all.find(stranger.token))?.name
    const foreign = as(first.token, `DELETE /console/api/sessions/${strange}`)
    await assert.rejects(foreign, { code: 'not_found', param: 'id' })
    assert.equal((await as(first.token, `DELETE /console/api/sessions/${names[0]}`)).text, '{"ended":true}')
    assert.deepEqual([await sessions.find(second.token), (await all.find(stranger.token))?.name], [undefined, strange])
  })
})

describe('signing in to the console of the operator', () => {
  const ADDRESS = '/console/api/session'

  it('works with the token, or once with a link', async (t) => {
    const { operator, all } = await stage(t)
    const signIn = (body: object, headers: Readonly<Record<string, string>> = own) =>
      ask(operator, `POST ${ADDRESS}`, { body, headers })
    const { secret } = await all.issueLink(OPERATOR)
    const shown = { expires_at: ENDS, person: null, roles: ['operator'] }
    for (const body of [{ token: ` ${TOKEN} ` }, { link: secret }]) {
      const { status, body: answer, headers } = await signIn(body)
      const [token, rest] = cookieIn(headers)
      assert.deepEqual([status, answer, rest], [200, shown, COOKIE])
      const cookie = { ...own, cookie: `weir_operator=${token}` }
      assert.deepEqual((await ask(operator, `GET ${ADDRESS}`, { headers: cookie })).body, shown)
      const left = await ask(operator, `DELETE ${ADDRESS}`, { headers: cookie })
      assert.deepEqual([left.text, cookieIn(left.headers)], ['{"signed_out":true}', ['', `${COOKIE}; Max-Age=0`]])
      await assert.rejects(ask(operator, `GET ${ADDRESS}`, { headers: cookie }), { code: 'missing_api_key' })
    }
    const used = { code: 'invalid_api_key', message: /link has been used/ }
    for (const body of [{ link: secret }, {}]) await assert.rejects(signIn(body), used)
    await assert.rejects(signIn({ token: 'wrong' }), { code: 'invalid_api_key', message: /operator token is wrong/ })
    await assert.rejects(signIn({ token: TOKEN }, {}), { code: 'missing_api_key', message: /X-Weir-Console/ })
  })

  it('does not work with the link of a workspace', async (t) => {
    const { operator, sessions } = await stage(t)
    const { secret } = await sessions.issueLink('acme')
    const signIn = ask(operator, `POST ${ADDRESS}`, { body: { link: secret }, headers: own })
    await assert.rejects(signIn, { code: 'invalid_api_key' })
  })

  it('shows the roles of a person', async (t) => {
    const { operator, open } = await stage(t)
    const { token } = await open(OPERATOR, [{ role: 'viewer' }, { role: 'finance' }, { role: 'member' }])
    const { body } = await ask(operator, `GET ${ADDRESS}`, { headers: { cookie: `weir_operator=${token}` } })
    assert.deepEqual(body, {
      expires_at: new Date(NOW + 1000).toISOString(),
      person: 'Ada, ada@id.test',
      roles: ['viewer', 'finance'],
    })
  })
})

describe('the sessions of both consoles, for the operator', () => {
  interface Page {
    readonly data: readonly Readonly<Record<string, unknown>>[]
    readonly next: string | null
  }

  it('are listed in pages, the newest first, with who opened them', async (t) => {
    const { list, open, workspaceId, signIn, accounts, books } = await stage(t)
    const acme = workspaceId('acme')
    await open(OPERATOR)
    books.now += 1
    await open(OPERATOR, [{ role: 'viewer' }], 99_000)
    books.now += 1
    await open(acme)
    books.now += 1
    await open(
      acme,
      [
        { role: 'member', workspaceId: acme },
        { role: 'member', workspaceId: workspaceId('other') },
      ],
      99_000,
    )
    books.now += 1
    await signIn({ key: (await accounts.createKey('acme', { name: 'website' })).key })
    const page = async (query = '') => (await ask(list, `GET /admin/v1/sessions${query}`)).body as Page
    const { data, next } = await page()
    assert.equal(next, null)
    assert.deepEqual(
      data.map(({ console, workspace, who, roles }) => [console, workspace, who, roles]),
      [
        ['workspace', 'acme', 'key website', ['workspace_admin']],
        ['workspace', 'acme', 'Ada, ada@id.test', ['member']],
        ['workspace', 'acme', 'one-time link', ['workspace_admin']],
        ['operator', null, 'Ada, ada@id.test', ['viewer']],
        ['operator', null, 'operator token or link', ['operator']],
      ],
    )
    const at = new Date(books.now).toISOString()
    const { id: _id, console: _console, workspace: _workspace, who: _who, roles: _roles, ...times } = data[0]!
    const ends = new Date(books.now + SESSION_MS).toISOString()
    assert.deepEqual(times, { started: at, last_used: at, expires_at: ends, address: CALLER_ADDRESS })
    const first = await page('?limit=4')
    assert.deepEqual([first.data.length, first.next], [4, data[3]?.['id']])
    assert.deepEqual(await page(`?limit=4&before=${first.next}`), { object: 'list', data: data.slice(4), next: null })
    assert.deepEqual((await page('?limit=5')).next, null)
  })

  it('are ended by their id, on record', async (t) => {
    const { list, open, all } = await stage(t)
    const [one, other] = [await open(OPERATOR), await open(OPERATOR)]
    const name = (await all.find(one.token))?.name
    const { body, recorded } = await ask(list, `DELETE /admin/v1/sessions/${name}`)
    assert.equal((body as { id: string }).id, name)
    assert.deepEqual(recorded, [{ action: 'endSession', subject: name, state: body }])
    assert.deepEqual([await all.find(one.token), (await all.find(other.token))?.owner], [undefined, OPERATOR])
    await assert.rejects(ask(list, `DELETE /admin/v1/sessions/${name}`), { code: 'not_found', param: 'id' })
  })
})
