import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { memoryChanges } from '../../src/cluster/changes/memory.ts'
import { adminApi, type AdminParts } from '../../src/server/api/admin-api.ts'
import { ApiError } from '../../src/shared/errors.ts'
import type { OperatorRole } from '../../src/shared/roles.ts'
import { openAccounts } from '../../src/workspaces/accounts.ts'
import { OPERATOR, openSessions, type Sessions } from '../../src/workspaces/sessions/sessions.ts'
import { testBooks, type TestBooks } from '../support/books.ts'
import { CALLER_ADDRESS, exchangeFor } from '../support/route-answer.ts'

/** Who may call the operator's listener. */

const NOW = Date.UTC(2026, 10, 2)
const clock = { now: () => NOW, monotonic: () => 0 }
const TOKEN = 'secret-token-of-the-operator'

let books: TestBooks
let sessions: Sessions
let parts: AdminParts
const logged: unknown[][] = []

before(async () => {
  books = await testBooks(NOW)
  const changes = memoryChanges()
  const accounts = await openAccounts(books.store, clock, changes)
  sessions = openSessions(books.store, clock, changes)
  parts = {
    accounts,
    operatorSessions: sessions,
    operatorToken: TOKEN,
    clock,
    audit: books.store,
    store: books.store,
    limits: { requestsPerMinute: 600 },
    config: {},
    telemetry: {
      log: {
        error: (line: { err: unknown }, text: string) => logged.push([line.err, text]),
        debug: (line: object) => logged.push([line]),
      },
    },
  } as unknown as AdminParts
})
after(() => books.close())

async function serve(request: string, headers: Readonly<Record<string, string>> = {}, body?: object) {
  const api = adminApi(parts)
  const { exchange, answered } = exchangeFor(request, { headers, ...(body ? { body } : {}) })
  const code = await api.answer(exchange).then(
    () => undefined,
    (error: unknown) => (error instanceof ApiError ? error.code : assert.fail(String(error))),
  )
  return { api, exchange, answered, code }
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const LIST = 'GET /admin/v1/workspaces'

/** The cookie of a person with these roles; of the token or a link without. */
async function signedIn(...roles: OperatorRole[]): Promise<Readonly<Record<string, string>>> {
  const person = { id: 'p', issuer: 'https://id.test', subject: 'ada', name: 'Ada', email: null }
  const { token } = await sessions.open({
    owner: OPERATOR,
    keyHash: null,
    address: CALLER_ADDRESS,
    ...(roles.length > 0 ? { person: { person, roles: roles.map((role) => ({ role })), ms: 1000 } } : {}),
  })
  return { cookie: `weir_operator=${token}`, 'x-weir-console': '1' }
}

describe('the operator’s listener', () => {
  it('takes the operator token, and no other', async () => {
    for (const right of [bearer(TOKEN), { authorization: `bearer   ${TOKEN} ` }])
      assert.equal((await serve(LIST, right)).code, undefined)
    assert.equal((await serve(LIST, bearer(`${TOKEN}x`))).code, 'invalid_api_key')
    for (const none of [{}, { authorization: '' }, { authorization: `Basic ${TOKEN}` }, { 'x-api-key': TOKEN }])
      assert.equal((await serve(LIST, { ...none })).code, 'missing_api_key', JSON.stringify(none))
  })

  it('takes a session of its own console, unless a token is sent as well', async () => {
    const cookie = await signedIn()
    const { code, exchange } = await serve(LIST, cookie)
    assert.equal(code, undefined)
    assert.match(String(exchange.notes['operator']), /^operator \(console [0-9a-f]{8}\)$/)
    assert.equal((await serve(LIST, { ...cookie, ...bearer('wrong') })).code, 'invalid_api_key')
    const { token } = await sessions.open({ owner: 'ws_1', keyHash: null, address: CALLER_ADDRESS })
    assert.equal((await serve(LIST, { cookie: `weir_operator=${token}` })).code, 'missing_api_key')
  })

  it('lets people do what their roles allow', async () => {
    const [viewer, both] = [await signedIn('viewer'), await signedIn('finance', 'viewer')]
    const { code, exchange } = await serve(LIST, both)
    assert.deepEqual([code, exchange.notes['operator']], [undefined, 'finance and viewer (Ada, ada)'])
    assert.equal((await serve(LIST, viewer)).code, undefined)
    const create = 'POST /admin/v1/workspaces'
    assert.equal((await serve(create, viewer, { name: 'acme' })).code, 'role_not_allowed')
    assert.equal((await serve(create, await signedIn('operator'), { name: 'acme' })).answered.status, 201)
    const [entry] = await books.store.auditLog({ limit: 1 })
    assert.deepEqual(
      [entry?.action, entry?.actor, entry?.outcome],
      ['createWorkspace', `operator (Ada, ada) from ${CALLER_ADDRESS}`, 'done'],
    )
  })

  it('reveals nothing without the operator, not even which addresses exist, except what is open', async () => {
    assert.equal((await serve('GET /admin/v1/none')).code, 'missing_api_key')
    const { code, answered } = await serve('GET /admin/v1/none', bearer(TOKEN))
    assert.deepEqual([code, answered.status], ['unknown_url', 0])
    assert.equal((await serve('GET /docs')).answered.status, 200)
  })

  it('logs each request, and one that failed as an error', async () => {
    const { api, exchange } = await serve(LIST, bearer(TOKEN))
    assert.deepEqual([api.headers(exchange), await api.rateOf('::1')], [{}, undefined])
    const failure = new Error('broken')
    api.over(exchange, undefined)
    api.over(exchange, failure)
    const line = { request_id: exchange.requestId, method: 'GET', path: '/admin/v1/workspaces', status: 200 }
    assert.deepEqual(logged, [[line], [failure, 'operator request failed']])
  })
})
