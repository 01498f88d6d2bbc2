import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { memoryChanges } from '../../src/cluster/changes/memory.ts'
import type { Refusal } from '../../src/billing/refused-requests/refusals.ts'
import { publicApi, type PublicParts } from '../../src/server/api/public-api.ts'
import type { Exchange } from '../../src/server/exchange.ts'
import { ApiError } from '../../src/shared/errors.ts'
import { parseAud } from '../../src/shared/money/money.ts'
import { openAccounts, type Accounts } from '../../src/workspaces/accounts.ts'
import { memoryRateLimiter } from '../../src/workspaces/rate-limits/rate-limit.ts'
import { openSessions } from '../../src/workspaces/sessions/sessions.ts'
import { workspaceSessions, type WorkspaceSessions } from '../../src/workspaces/sessions/workspace-sessions.ts'
import { testBooks, type TestBooks } from '../support/books.ts'
import { CALLER_ADDRESS, exchangeFor } from '../support/route-answer.ts'

/** The public listener without a service: who calls, what is counted and refused, and which headers that gives. */

/** Ten seconds before the end of a minute. */
const NOW = Date.UTC(2026, 10, 2, 0, 0, 50)
const clock = { now: () => NOW, monotonic: () => 0 }

let books: TestBooks
let accounts: Accounts
let sessions: WorkspaceSessions
let key: string
let limitedKey: string

before(async () => {
  books = await testBooks(NOW)
  const changes = memoryChanges()
  accounts = await openAccounts(books.store, clock, changes)
  sessions = workspaceSessions(accounts, openSessions(books.store, clock, changes))
  await accounts.createWorkspace('acme')
  ;({ key } = await accounts.createKey('acme', { name: 'website' }))
  ;({ key: limitedKey } = await accounts.createKey('acme', {
    allowedEndpoints: ['/rerank'],
    requestsPerMinute: 5,
    tokensPerMinute: 40,
  }))
})
after(() => books.close())

function stage({ isDraining = false, unauthenticatedPerMinute = 2 } = {}) {
  const refused: Refusal[] = []
  const lines: { readonly line: object; readonly notes: object; readonly failure: unknown }[] = []
  const api = publicApi({
    accounts,
    sessions,
    clock,
    rateLimiter: memoryRateLimiter(clock),
    limits: { requestsPerMinute: 3, unauthenticatedPerMinute },
    isDraining: () => isDraining,
    refusals: { add: (it: Refusal) => void refused.push(it) },
    telemetry: {
      requestOver: (line: object, notes: object, failure: unknown) => void lines.push({ line, notes, failure }),
    },
    spending: {
      headers: () => ({ 'X-Spend-Limit': '5.00' }),
      spent: async () => 0n,
      spentByKey: async () => ({ day: undefined, month: undefined }),
    },
    readiness: () => ({ isReady: true }),
    audit: books.store,
    reader: books.store,
    audio: {},
    files: undefined,
  } as unknown as PublicParts)

  /** As the listener does. */
  async function serve(request: string, headers: Readonly<Record<string, string>> = {}, body?: object) {
    const { exchange, answered } = exchangeFor(request, { headers, ...(body ? { body } : {}) })
    let error: ApiError | undefined
    try {
      await api.answer(exchange)
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown
      error = thrown
      exchange.sendError(error, {}, api.errorBody?.(exchange, error))
    }
    api.over(exchange, undefined)
    return { exchange, answered, error, code: error?.code, headers: api.headers(exchange) }
  }
  return { api, refused, lines, serve }
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

describe('the caller of the public listener', () => {
  it('sends its key in either header; with both, Authorization counts', async () => {
    const codes = async (headers: Readonly<Record<string, string>>) =>
      (await stage().serve('GET /api/v1/key', headers)).code
    for (const right of [bearer(key), { authorization: `bearer   ${key} ` }, { 'x-api-key': key }])
      assert.equal(await codes(right), undefined)
    assert.equal(await codes({ ...bearer('weir_wrong'), 'x-api-key': key }), 'invalid_api_key')
    for (const none of [{}, { 'x-api-key': '' }, { authorization: '' }, { authorization: `Basic ${key}` }])
      assert.equal(await codes({ ...none }), 'missing_api_key', JSON.stringify(none))
    assert.equal(await codes({ authorization: 'x', 'x-api-key': key }), 'missing_api_key')
  })

  it('learns whether its key is mistyped or not valid any more', async () => {
    const mistyped = await stage().serve('GET /api/v1/key', bearer('weir_x'))
    assert.match(mistyped.error?.message ?? '', /mistyped or incomplete/)
    const { key: other, id } = await accounts.createKey('acme')
    await accounts.revokeKey(id)
    const revoked = await stage().serve('GET /api/v1/key', bearer(other))
    assert.match(revoked.error?.message ?? '', /may have been revoked, or it has expired/)
    assert.equal(revoked.exchange.caller, undefined)
  })

  it('may be a member who is signed in, unless it also sends a key; some routes need a session', async () => {
    const { serve } = stage({ unauthenticatedPerMinute: 9 })
    const token = (await sessions.signInWithKey(key, CALLER_ADDRESS))?.token
    const cookie = { cookie: `weir_session=${token}` }
    const member = await serve('GET /api/v1/key', cookie)
    assert.deepEqual([member.code, member.exchange.caller?.workspace.name], [undefined, 'acme'])
    assert.equal((await serve('GET /api/v1/key', { ...cookie, authorization: 'x' })).code, 'missing_api_key')
    assert.equal((await serve('GET /console/api/session', cookie)).code, undefined)
    const { code, error } = await serve('GET /console/api/session', bearer(key))
    assert.equal(code, 'missing_api_key')
    assert.match(error?.message ?? '', /needs a session, not a key/)
  })

  it('from an address that its key does not allow counts like one without a key, and the log names the key', async () => {
    const { key: elsewhere, id } = await accounts.createKey('acme', { allowedAddresses: ['10.0.0.0/8'] })
    const { serve, lines } = stage()
    const { code, exchange, headers } = await serve('GET /api/v1/key', bearer(elsewhere))
    assert.deepEqual([code, exchange.caller, headers['X-RateLimit-Limit']], ['key_not_allowed', undefined, '2'])
    assert.deepEqual(lines[0]?.notes, { key_id: id, code: 'key_not_allowed' })
  })

  it('may use a key only on the endpoints that it allows', async () => {
    const { serve } = stage()
    assert.equal((await serve('POST /api/v1/embeddings', bearer(limitedKey), {})).code, 'key_not_allowed')
    assert.equal((await serve('GET /api/v1/key', bearer(limitedKey))).code, undefined)
  })
})

describe('a change by a member', () => {
  it('is on record with the person, the key or the session that made it', async () => {
    const { serve } = stage()
    const workspaceId = accounts.workspace('acme').id
    const person = { id: 'p', issuer: 'https://id.test', subject: 'ada', name: 'Ada', email: null }
    const options = { address: CALLER_ADDRESS, ms: 1000 }
    const link = await sessions.signInWithLink((await sessions.issueLink('acme')).secret, CALLER_ADDRESS)
    const unnamed = await accounts.createKey('acme')
    const name = (await sessions.find(link?.token ?? ''))?.session.name
    for (const [opened, actor] of [
      [await sessions.signInWithKey(key, CALLER_ADDRESS), 'key website'],
      [await sessions.signInWithKey(unnamed.key, CALLER_ADDRESS), unnamed.id],
      [
        await sessions.signInPerson(person, [{ role: 'workspace_admin', workspaceId }], options),
        'workspace admin (Ada, ada)',
      ],
      [link, name],
    ] as const) {
      const { serve: another } = stage()
      const { id } = await accounts.createKey('acme')
      const own = { cookie: `weir_session=${opened?.token}`, 'x-weir-console': '1' }
      const { exchange, code } = await another(`DELETE /console/api/keys/${id}`, own)
      assert.equal(code, undefined)
      const [entry] = await books.store.auditLog({ limit: 1 })
      assert.deepEqual(
        [entry?.action, entry?.subject, entry?.actor, entry?.requestId],
        ['revokeKey', id, `${actor} of acme from ${CALLER_ADDRESS}`, exchange.requestId],
      )
    }
    const member = await sessions.signInPerson(person, [{ role: 'member', workspaceId }], options)
    const own = { cookie: `weir_session=${member.token}`, 'x-weir-console': '1' }
    assert.equal((await serve(`DELETE /console/api/keys/${unnamed.id}`, own)).code, 'role_not_allowed')
    const { 'x-weir-console': _, ...foreign } = own
    assert.equal((await serve(`DELETE /console/api/keys/${unnamed.id}`, foreign)).code, 'missing_api_key')
  })
})

describe('what the public listener counts', () => {
  const resets = String((NOW + 10_000) / 1000)
  const rateOf = ({ headers }: { headers: Record<string, string> }) =>
    ['Limit', 'Remaining', 'Reset'].map((name) => headers[`X-RateLimit-${name}`])

  it('is each request of a workspace, also one without a route, up to its limit', async () => {
    const { serve } = stage()
    assert.deepEqual(rateOf(await serve('GET /api/v1/key', bearer(key))), ['3', '2', resets])
    assert.equal((await serve('GET /api/v1/none', bearer(key))).code, 'unknown_url')
    const { answered: refused } = await serve('PUT /api/v1/key', bearer(key))
    assert.deepEqual([refused.status, refused.headers['Allow']], [405, 'GET'])
    const { error, headers, answered } = await serve('GET /api/v1/key', bearer(key))
    assert.deepEqual([error?.code, error?.retryAfter], ['rate_limit_exceeded', 10])
    assert.match(
      error?.message ?? '',
      /^Too many requests in this minute: the workspace may send 3\. Try again in 10 s/,
    )
    assert.deepEqual([rateOf({ headers }), answered.headers['Retry-After']], [['3', '0', resets], '10'])
  })

  it('is each request without a valid key, by its address', async () => {
    const { serve } = stage()
    assert.equal((await serve('GET /api/v1/key')).code, 'missing_api_key')
    assert.equal((await serve('GET /nothing', bearer('weir_wrong'))).code, 'invalid_api_key')
    const { error } = await serve('GET /api/v1/key')
    assert.equal(error?.code, 'rate_limit_exceeded')
    assert.match(error?.message ?? '', /your address without a valid key may send 2/)
    assert.equal((await serve('GET /api/v1/key', bearer(key))).code, undefined)
  })

  it('is no health check and no page, but each attempt to sign in', async () => {
    const { serve } = stage()
    for (let count = 0; count < 3; count++) {
      assert.deepEqual(rateOf(await serve('GET /healthz')), ['2', '2', resets])
      assert.equal((await serve('GET /')).answered.status, 302)
    }
    const own = { 'x-weir-console': '1' }
    const signIn = async () => (await serve('POST /console/api/session', own, { key: 'weir_wrong' })).code
    assert.deepEqual([await signIn(), await signIn(), await signIn()].at(-1), 'rate_limit_exceeded')
  })

  it('is shown with the tokens of the key under the names of OpenAI’s API', async () => {
    const { serve } = stage()
    const { headers, exchange } = await serve('GET /api/v1/key', bearer(limitedKey))
    exchange.countTokens(15)
    const tokens = {
      'x-ratelimit-limit-requests': '3',
      'x-ratelimit-remaining-requests': '2',
      'x-ratelimit-reset-requests': '10s',
      'x-ratelimit-limit-tokens': '40',
      'x-ratelimit-remaining-tokens': '40',
      'x-ratelimit-reset-tokens': '10s',
    }
    const { 'X-RateLimit-Limit': _l, 'X-RateLimit-Remaining': _r, 'X-RateLimit-Reset': _e, ...shown } = headers
    assert.deepEqual(shown, tokens)
    const next = (await serve('GET /api/v1/key', bearer(limitedKey))).headers
    assert.equal(next['x-ratelimit-remaining-tokens'], '25')
    exchange.countTokens(25)
    // Tokens are gone: only a request that takes some is refused.
    assert.equal((await serve('GET /api/v1/key', bearer(limitedKey))).code, undefined)
    const { serve: another } = stage()
    const spent = await another('GET /api/v1/key', bearer(limitedKey))
    spent.exchange.countTokens(40)
    const { code, error } = await another('POST /api/v1/rerank', bearer(limitedKey), {})
    assert.equal(code, 'rate_limit_exceeded')
    assert.match(error?.message ?? '', /Too many tokens in this minute: this API key may use 40 tokens per minute/)
  })
})

describe('the headers of the public listener', () => {
  it('have the spend limit of a workspace that has one', async () => {
    const { serve } = stage()
    assert.equal('X-Spend-Limit' in (await serve('GET /api/v1/key', bearer(key))).headers, false)
    await accounts.createWorkspace('limited')
    await accounts.setSpendLimit('limited', { amount: parseAud('5')!, isSoft: true })
    const { key: other } = await accounts.createKey('limited')
    assert.equal((await serve('GET /api/v1/key', bearer(other))).headers['X-Spend-Limit'], '5.00')
  })

  it('end the connection while the replica drains, which takes no requests but answers health checks', async () => {
    const { serve } = stage({ isDraining: true })
    const { code, headers } = await serve('GET /api/v1/key', bearer(key))
    assert.deepEqual([code, headers['Connection']], ['service_unavailable', 'close'])
    const token = (await sessions.signInWithKey(key, CALLER_ADDRESS))?.token
    const member = await serve('GET /console/api/session', { cookie: `weir_session=${token}` })
    assert.equal(member.code, 'service_unavailable', 'a browser gets another replica too')
    const alive = await serve('GET /healthz')
    assert.deepEqual([alive.code, alive.headers['Connection']], [undefined, 'close'])
    assert.equal('Connection' in (await stage().serve('GET /healthz')).headers, false)
  })
})

describe('a refusal of the public listener', () => {
  it('is recorded with the caller, the endpoint and the field that it is about', async () => {
    const { serve, refused, lines } = stage()
    const { exchange } = await serve('POST /api/v1/embeddings', bearer(key), { model: 5 })
    const workspaceId = accounts.workspace('acme').id
    const of = { requestId: exchange.requestId, at: NOW, workspaceId, keyId: exchange.caller?.keyId, model: '' }
    const wrong = { code: 'invalid_type', httpStatus: 400, param: 'model' }
    assert.deepEqual(
      refused.map(({ reason: _reason, ...rest }) => rest),
      [{ ...of, endpoint: '/embeddings', ...wrong }],
    )
    const line = {
      request_id: exchange.requestId,
      method: 'POST',
      path: '/api/v1/embeddings',
      status: 400,
      workspace: 'acme',
      key_id: exchange.caller?.keyId,
    }
    assert.deepEqual(lines, [{ line, notes: { code: 'invalid_type' }, failure: undefined }])
  })

  it('has no caller without a valid key, and no endpoint and no field of the caller’s own words', async () => {
    const { serve, refused } = stage({ unauthenticatedPerMinute: 9 })
    await serve('POST /api/v1/embeddings', bearer('weir_wrong'), {})
    await serve('GET /api/v1/secret-words', bearer(key))
    const seen = refused.map(({ workspaceId, keyId, endpoint, param, code }) => [
      workspaceId === '' && keyId === '',
      endpoint,
      param,
      code,
    ])
    assert.deepEqual(seen, [
      [true, '/embeddings', '', 'invalid_api_key'],
      [false, '', '', 'unknown_url'],
    ])
  })

  it('is not recorded for an open route, a lookup without a result, or a request that has a row in the ledger', async () => {
    const { api, serve, refused } = stage({ unauthenticatedPerMinute: 9 })
    await serve('POST /console/api/session', { 'x-weir-console': '1' }, { key: 'weir_wrong' })
    const over = (request: string, error: ApiError, change: (exchange: Exchange) => void = () => {}) => {
      const { exchange } = exchangeFor(request)
      exchange.refusal = error
      change(exchange)
      api.over(exchange, undefined)
    }
    over('GET /api/v1/batches/none', new ApiError('not_found', 'There is none.'))
    over('POST /api/v1/embeddings', new ApiError('queue_full', 'Full.'), (exchange) => (exchange.isOnRecord = true))
    assert.deepEqual(refused, [])
    const notes = { model: 'meta/x' }
    over('POST /api/v1/embeddings', new ApiError('queue_full', 'Full.'), (exchange) => (exchange.notes = notes))
    over('POST /api/v1/embeddings', new ApiError('invalid_value', 'No.', { param: '__proto__' }))
    over('POST /api/v1/embeddings', new ApiError('invalid_value', 'No.', { param: 'input[0].text' }))
    assert.deepEqual(
      refused.map(({ model, param }) => [model, param]),
      [
        ['meta/x', ''],
        ['', ''],
        ['', 'input'],
      ],
    )
  })
})
