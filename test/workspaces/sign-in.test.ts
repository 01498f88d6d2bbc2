import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import type { ConsolePage } from '../../src/server/console/console-page.ts'
import type { Exchange } from '../../src/server/exchange.ts'
import type { SignInProvider } from '../../src/shared/sign-in-provider.ts'
import { openIdentityProvider } from '../../src/workspaces/sign-in/identity-provider.ts'
import { signInRoutes } from '../../src/workspaces/sign-in/routes/sign-in.ts'
import {
  personIn,
  rolesIn,
  SignInFailed,
  type Claims,
  type SignInChecks,
} from '../../src/workspaces/sign-in/sign-in.ts'
import { ask, CALLER_ADDRESS } from '../support/route-answer.ts'

const settings: SignInProvider = {
  issuer: 'https://id.test',
  clientId: 'weir',
  clientSecret: () => 'secret',
  name: 'Example ID',
  scopes: ['openid', 'groups'],
  publicUrl: 'https://weir.test',
  operatorUrl: 'http://operator.test',
  groupsClaim: 'groups',
  nameClaim: 'name',
  sessionMs: 1000,
  roles: [
    { group: 'staff', role: 'operator', workspace: undefined },
    { group: 'auditors', role: 'viewer', workspace: undefined },
    { group: 'acme', role: 'member', workspace: 'acme' },
    { group: 'leads', role: 'workspace_admin', workspace: 'acme' },
    { group: 'gone', role: 'member', workspace: 'gone' },
  ],
}
const workspaceId = (name: string): string | undefined => (name === 'acme' ? 'ws_1' : undefined)

describe('a person who signs in', () => {
  it('has an id of their provider and subject, and a name on one line', () => {
    const person = personIn({ sub: 'ada', name: ' Ada\n(admin)\u2028 Lovelace ', email: 'ada@id.test' }, settings)
    const { id, ...rest } = person
    assert.match(id, /^person_[0-9a-f]{16}$/)
    assert.deepEqual(rest, {
      issuer: 'https://id.test',
      subject: 'ada',
      name: 'Ada  admin   Lovelace',
      email: 'ada@id.test',
    })
    assert.equal(personIn({ sub: 'ada' }, settings).id, id)
    assert.notEqual(personIn({ sub: 'ada' }, { ...settings, issuer: 'https://other.test' }).id, id)
    assert.notEqual(personIn({ sub: 'bob' }, settings).id, id)
  })

  it('has another name if there is none, or no name at all', () => {
    const nameOf = (claims: object) => personIn({ sub: ' ', ...claims }, settings)
    assert.equal(nameOf({ name: '()', preferred_username: 'ada' }).name, 'ada')
    assert.deepEqual([nameOf({ name: 5 }).name, nameOf({}).email, nameOf({}).subject], [null, null, ''])
    assert.equal(nameOf({ name: 'x'.repeat(201) }).name?.length, 200)
  })

  it('has the roles of their groups in the console that they sign in to', () => {
    const roles = (groups: unknown, console: 'operator' | 'workspace') =>
      rolesIn({ sub: 'ada', groups }, settings, console, workspaceId)
    assert.deepEqual(roles(['auditors', 'acme', 5], 'operator'), [{ role: 'viewer' }])
    assert.deepEqual(roles(['staff', 'leads', 'acme', 'gone'], 'workspace'), [
      { role: 'member', workspaceId: 'ws_1' },
      { role: 'workspace_admin', workspaceId: 'ws_1' },
    ])
    assert.deepEqual(roles('staff', 'operator'), [{ role: 'operator' }])
    for (const [groups, console, message] of [
      [['acme'], 'operator', /It needs one of "staff", "auditors"\.$/],
      [['staff'], 'workspace', /It needs one of "acme", "leads", "gone"\.$/],
      [['gone'], 'workspace', /the workspace "gone", which does not exist/],
      [undefined, 'workspace', /there is no claim "groups"/],
    ] as const) {
      assert.throws(() => roles(groups, console), { kind: 'forbidden', message })
    }
  })
})

describe('signing in through the identity provider', () => {
  const checks = { state: 's', nonce: 'n', verifier: 'v' }

  function stage(name: 'operator' | 'workspace', claims: Claims | Error = { sub: 'ada', groups: ['staff', 'acme'] }) {
    const calls: unknown[] = []
    const failures: string[] = []
    const session = name === 'operator' ? ('weir_operator' as const) : ('weir_session' as const)
    const attempt = name === 'operator' ? ('weir_operator_sign_in' as const) : ('weir_sign_in' as const)
    const provider = {
      async begin(url: string) {
        calls.push(url)
        return { url: 'https://id.test/authorize', checks }
      },
      async finish(url: URL, given: SignInChecks) {
        calls.push([url.href, given])
        if (claims instanceof Error) throw claims
        return claims
      },
    }
    const page = {
      send: (exchange: Exchange, status: number, problem: string, headers: Record<string, string>) =>
        exchange.send(status, 'text/html', problem, headers),
    } as unknown as ConsolePage
    const routes = signInRoutes(
      { settings, provider, failed: ({ kind }) => void failures.push(kind) },
      {
        name,
        cookies: { session, attempt },
        page,
        workspaceId,
        async open(person, roles, address) {
          calls.push([person.subject, roles, address])
          return { token: 'a-token', expiresAt: 1 }
        },
      },
    )
    const begin = (query = '') => ask(routes, `GET /console/api/sign-in${query}`)
    const finish = (kept: unknown) => {
      const value = Buffer.from(typeof kept === 'string' ? kept : JSON.stringify(kept)).toString('base64url')
      return ask(routes, 'GET /console/api/sign-in/callback?code=c&state=s', {
        headers: { cookie: `${attempt}=${value}` },
      })
    }
    return { routes, calls, failures, begin, finish }
  }

  it('sends the browser to the provider, and keeps the checks in a cookie of that path', async () => {
    const { begin, calls, routes } = stage('workspace')
    const { status, headers } = await begin('?return=/console/keys?x=1')
    const [, value = '', rest] = /^weir_sign_in=([^;]+); (.*)$/.exec(String(headers['Set-Cookie'])) ?? []
    const kept = JSON.parse(Buffer.from(value, 'base64url').toString()) as object
    assert.deepEqual(kept, { ...checks, returnTo: '/console/keys?x=1' })
    assert.equal(rest, 'Path=/console/api/sign-in; HttpOnly; SameSite=Lax; Secure; Max-Age=600')
    assert.deepEqual(
      [status, headers['Location'], headers['Cache-Control']],
      [302, 'https://id.test/authorize', 'no-store'],
    )
    assert.deepEqual(calls, ['https://weir.test/console/api/sign-in/callback'])
    assert.ok(routes.every(({ isCounted, access }) => isCounted && access === 'open'))
    assert.deepEqual(signInRoutes(undefined, {} as never), [])
  })

  it('returns to a page of the console, and to nothing else', async () => {
    const { begin } = stage('workspace')
    for (const [page, expected] of [
      ['/console/keys', '/console/keys'],
      ['', '/console'],
      ['https://evil.test/console/', '/console'],
      ['//evil.test/console/', '/console'],
      ['/console/api/session', '/console'],
      ['/docs', '/console'],
      ['http://[', '/console'],
    ] as const) {
      const { headers } = await begin(`?return=${encodeURIComponent(page)}`)
      const [, value = ''] = /=([^;]+);/.exec(String(headers['Set-Cookie'])) ?? []
      const { returnTo } = JSON.parse(Buffer.from(value, 'base64url').toString()) as { returnTo: string }
      assert.equal(returnTo, expected, page)
    }
  })

  it('opens a session with the roles of that console, and forgets the checks', async () => {
    for (const [name, url, roles, cookies] of [
      ['operator', 'http://operator.test', [{ role: 'operator' }], ['weir_operator_sign_in', 'weir_operator', '']],
      [
        'workspace',
        'https://weir.test',
        [{ role: 'member', workspaceId: 'ws_1' }],
        ['weir_sign_in', 'weir_session', '; Secure'],
      ],
    ] as const) {
      const { finish, calls } = stage(name)
      const { status, headers } = await finish({ ...checks, returnTo: '/console/keys' })
      assert.deepEqual([status, headers['Location'], headers['Cache-Control']], [302, '/console/keys', 'no-store'])
      const [attempt, session, secure] = cookies
      assert.deepEqual(headers['Set-Cookie'], [
        `${attempt}=; Path=/console/api/sign-in; HttpOnly; SameSite=Lax${secure}; Max-Age=0`,
        `${session}=a-token; Path=/; HttpOnly; SameSite=Strict`,
      ])
      assert.deepEqual(calls, [
        [`${url}/console/api/sign-in/callback?code=c&state=s`, checks],
        ['ada', roles, CALLER_ADDRESS],
      ])
      const { headers: elsewhere } = await finish({ ...checks, returnTo: 'https://evil.test' })
      assert.equal(elsewhere['Location'], '/console')
    }
  })

  it('needs every check of the browser that began it', async () => {
    const { finish, calls, failures } = stage('workspace')
    const whole = { ...checks, returnTo: '/console' }
    for (const kept of [...Object.keys(whole).map((name) => ({ ...whole, [name]: '' })), 'no JSON', '']) {
      const { status, text } = await finish(kept)
      assert.equal(status, 400)
      assert.match(text, /took too long, or began in another browser/)
    }
    assert.deepEqual([calls, new Set(failures)], [[], new Set(['refused'])])
  })

  it('shows why it failed, with the status of the reason, and forgets the checks', async () => {
    for (const [kind, code] of [
      ['unreachable', 503],
      ['refused', 400],
      ['forbidden', 403],
    ] as const) {
      const { finish, failures } = stage('workspace', new SignInFailed(kind, 'Why.'))
      const { status, text, headers } = await finish({ ...checks, returnTo: '/console' })
      assert.deepEqual([status, text, failures], [code, 'Why.', [kind]])
      assert.match(String(headers['Set-Cookie']), /^weir_sign_in=; .*Max-Age=0$/)
    }
    const broken = stage('workspace', new Error('broken')).finish({ ...checks, returnTo: '/console' })
    await assert.rejects(broken, /^Error: broken$/)
  })
})

describe('the description of the identity provider', () => {
  it('is read once an hour, and again at the next sign-in if it could not be read', async (t) => {
    let reads = 0
    let isDown = false
    const server = createServer((_request, response) => {
      reads++
      const metadata = {
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/keys`,
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256'],
      }
      response.writeHead(isDown ? 500 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(metadata))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.after(() => server.close())
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    let now = Date.UTC(2026, 10, 2)
    const provider = openIdentityProvider({ ...settings, issuer }, { now: () => now, monotonic: () => 0 })
    const begin = () => provider.begin('https://weir.test/callback')
    const [{ url, checks }, again] = await Promise.all([begin(), begin()])
    const { origin, pathname, searchParams } = new URL(url)
    assert.deepEqual([origin, pathname], [issuer, '/authorize'])
    const { code_challenge: challenge, ...rest } = Object.fromEntries(searchParams)
    assert.deepEqual(rest, {
      client_id: 'weir',
      response_type: 'code',
      redirect_uri: 'https://weir.test/callback',
      scope: 'openid groups',
      state: checks.state,
      nonce: checks.nonce,
      code_challenge_method: 'S256',
    })
    assert.ok(challenge && challenge !== checks.verifier)
    assert.notDeepEqual(again.checks, checks)
    assert.equal(reads, 1)
    now += 3_600_000
    await begin()
    assert.equal(reads, 1)
    now += 1
    isDown = true
    await assert.rejects(begin(), { kind: 'unreachable', message: 'Example ID cannot be reached for signing in.' })
    isDown = false
    await begin()
    assert.equal(reads, 3)
  })
})
