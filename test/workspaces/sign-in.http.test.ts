import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { after, before, describe, it } from 'node:test'
import { commandLine } from '../support/command-line.ts'
import { freePort } from '../support/free-port.ts'
import {
  CLIENT,
  identityProvider,
  testBrowser,
  type TestBrowser,
  type TestProvider,
} from '../support/identity-provider.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually } from '../support/waiting.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

/** Signing in to both consoles through a real OpenID provider. */

let engine: ScriptedEngine
let provider: TestProvider
let weir: TestWeir
let url: string
let operatorUrl: string

const rules = [
  { group: 'staff', role: 'operator' },
  { group: 'accounting', role: 'finance' },
  { group: 'auditors', role: 'viewer' },
  { group: 'acme', role: 'member', workspace: 'default' },
  { group: 'acme-leads', role: 'workspace_admin', workspace: 'default' },
  { group: 'other', role: 'member', workspace: 'other' },
  { group: 'gone', role: 'member', workspace: 'gone' },
]
const OWN = { 'x-weir-console': '1', 'content-type': 'application/json' }

const settings = (issuer: string, more: object = {}) => ({
  rate_limit: { requests_per_minute: 100_000, unauthenticated_per_minute: 100_000 },
  models: [modelEntry([engine.url])],
  server: { port: Number(new URL(url).port), admin_port: Number(new URL(operatorUrl).port) },
  sign_in: {
    oidc: {
      issuer,
      client_id: CLIENT.id,
      client_secret_env: 'OIDC_SECRET',
      name: 'Example ID',
      scopes: ['openid', 'profile', 'email', 'groups'],
      public_url: `${url}/`,
      operator_url: operatorUrl,
      roles: rules,
      ...more,
    },
  },
})

before(async () => {
  engine = await scriptedEngine()
  url = `http://127.0.0.1:${await freePort()}`
  operatorUrl = `http://127.0.0.1:${await freePort()}`
  provider = await identityProvider([url, operatorUrl].map((it) => `${it}/console/api/sign-in/callback`))
  weir = await startWeir(settings(provider.issuer), { OIDC_SECRET: CLIENT.secret })
  await weir.admin('POST', '/admin/v1/workspaces', { name: 'other' })
})
after(async () => {
  await weir.stop()
  await provider.close()
  await engine.close()
})

function be(groups: readonly string[] | string | undefined, more: object = {}): void {
  provider.person = {
    sub: 'ada',
    name: 'Ada Lovelace',
    email: 'ada@example.com',
    ...(groups ? { groups } : {}),
    ...more,
  }
}

/** Goes through the whole sign-in. */
async function signedIn(console: string, returnTo?: string): Promise<{ browser: TestBrowser; response: Response }> {
  const browser = testBrowser()
  const callback = await browser.toCallback(console, returnTo === undefined ? {} : { returnTo })
  return { browser, response: await browser.go(callback) }
}

async function json(response: Response): Promise<Record<string, unknown>> {
  return (await response.json()) as Record<string, unknown>
}

/** The page where people sign in, with the reason. */
async function assertShown(response: Response, status: number, reason: RegExp): Promise<void> {
  const text = await response.text()
  assert.equal(response.status, status, text)
  assert.match(response.headers.get('content-type') ?? '', /^text\/html/)
  assert.match(response.headers.get('content-security-policy') ?? '', /^default-src 'none'/)
  assert.equal(response.headers.get('cache-control'), 'no-store')
  assert.match(/ data-problem="([^"]*)"/.exec(text)?.[1] ?? '', reason)
}

describe('signing in through the provider', () => {
  it('opens a session of the workspace, with PKCE, state and nonce', async () => {
    be(['acme'])
    const browser = testBrowser()
    const begun = await browser.go(`${url}/console/api/sign-in?return=${encodeURIComponent('/console/usage?days=7')}`)
    assert.equal(begun.status, 302)
    const address = new URL(begun.headers.get('location') ?? '')
    assert.equal(address.origin, provider.issuer)
    const { searchParams: sent } = address
    assert.deepEqual(
      [sent.get('response_type'), sent.get('code_challenge_method'), sent.get('redirect_uri')],
      ['code', 'S256', `${url}/console/api/sign-in/callback`],
    )
    for (const name of ['code_challenge', 'state', 'nonce']) assert.match(sent.get(name) ?? '', /^[\w-]{43}$/)
    const cookie = begun.headers.get('set-cookie') ?? ''
    assert.match(cookie, /^weir_sign_in=[\w-]+; Path=\/console\/api\/sign-in; HttpOnly; SameSite=Lax; Max-Age=600$/)

    const { browser: member, response } = await signedIn(url, '/console/usage?days=7')
    assert.deepEqual([response.status, response.headers.get('location')], [302, '/console/usage?days=7'])
    assert.match(
      response.headers.getSetCookie().find((it) => it.startsWith('weir_session=')) ?? '',
      /^weir_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/,
    )
    assert.equal(member.cookie('weir_sign_in'), undefined, 'the attempt is over')
    const session = await json(await member.go(`${url}/console/api/session`))
    assert.deepEqual(
      [session['workspace'], session['person'], session['role'], session['key_id'], session['workspaces']],
      ['default', 'Ada Lovelace, ada@example.com', 'member', null, ['default']],
    )
    const left = Date.parse(String(session['expires_at'])) - Date.now()
    assert.ok(left > 7.9 * 3_600_000 && left <= 8 * 3_600_000, `${left} ms`)
  })

  it('opens a session of the operator, with the roles of all groups', async () => {
    be(['accounting', 'auditors', 'acme', 'unknown'])
    const { browser, response } = await signedIn(operatorUrl)
    assert.deepEqual([response.status, response.headers.get('location')], [302, '/console'])
    const session = await json(await browser.go(`${operatorUrl}/console/api/session`))
    assert.deepEqual([session['person'], session['roles']], ['Ada Lovelace, ada@example.com', ['finance', 'viewer']])
    assert.equal((await browser.go(`${operatorUrl}/admin/v1/queues`)).status, 200)
    const refused = await browser.go(`${operatorUrl}/admin/v1/catalog/reload`, { method: 'POST', headers: OWN })
    assert.equal(refused.status, 403)
  })

  it('reads groups from the identity token, also if it is a single one, and works with a public client', async (t) => {
    const [own, admin] = [`http://127.0.0.1:${await freePort()}`, await freePort()]
    const provided = await identityProvider([`${own}/console/api/sign-in/callback`], { inToken: true, isPublic: true })
    t.after(() => provided.close())
    const { client_secret_env: _, ...oidc } = settings(provided.issuer).sign_in.oidc
    const second = await startWeir({
      ...settings(provided.issuer),
      server: { port: Number(new URL(own).port), admin_port: admin },
      sign_in: { oidc: { ...oidc, public_url: own, roles: rules.slice(3, 5), session_hours: 2 } },
    })
    t.after(() => second.stop())
    provided.person = { sub: 'bob', groups: 'acme-leads' }
    const { browser, response } = await signedIn(own)
    assert.equal(response.status, 302)
    const session = await json(await browser.go(`${own}/console/api/session`))
    assert.deepEqual([session['person'], session['role']], ['bob', 'workspace_admin'])
    assert.ok(Date.parse(String(session['expires_at'])) - Date.now() <= 2 * 3_600_000)
    assert.equal((await fetch(`${second.adminUrl}/console/api/sign-in`)).status, 404, 'the operator has no rule')
  })

  it('leads only to pages of the console', async () => {
    be(['acme'])
    for (const returnTo of [
      'https://evil.example/console/',
      '//evil.example/console/',
      '/\\evil.example/console/',
      '/console/../api/v1/models',
      '/console/..//evil.example',
      '/console/api/session',
      '/consoles',
      'javascript:alert(1)',
    ]) {
      const { response } = await signedIn(url, returnTo)
      assert.equal(response.headers.get('location'), '/console', returnTo)
    }
  })
})

describe('a sign-in is refused', () => {
  it('with another state than that of this browser, and then nothing is left to try again with', async () => {
    be(['acme'])
    const browser = testBrowser()
    const callback = new URL(await browser.toCallback(url))
    const forged = new URL(callback)
    forged.searchParams.set('state', 'a'.repeat(43))
    await assertShown(await browser.go(forged.href), 400, /does not belong to this sign-in/)
    await assertShown(await browser.go(callback.href), 400, /began in another browser/)
    assert.equal(browser.cookie('weir_session'), undefined)
  })

  it('in another browser than the one that began it', async () => {
    be(['acme'])
    const callback = await testBrowser().toCallback(url)
    const victim = testBrowser()
    await assertShown(await victim.go(callback), 400, /began in another browser/)
    await victim.go(`${url}/console/api/sign-in`)
    await assertShown(await victim.go(callback), 400, /does not belong to this sign-in/)
    for (const kept of ['not json', '{}', '{"nonce":"a","verifier":"b","returnTo":"/console"}']) {
      const headers = { cookie: `weir_sign_in=${Buffer.from(kept).toString('base64url')}` }
      await assertShown(await fetch(callback, { headers }), 400, /began in another browser/)
    }
    assert.equal(victim.cookie('weir_session'), undefined)
  })

  it('with the identity of another sign-in', async () => {
    be(['acme'])
    const browser = testBrowser()
    const callback = await browser.toCallback(url, { nonce: 'b'.repeat(43) })
    await assertShown(await browser.go(callback), 400, /does not belong to this sign-in/)
  })

  it('with a code that has expired, or was used before', async () => {
    be(['acme'])
    const slow = testBrowser()
    provider.codeSeconds = 1
    const callback = await slow.toCallback(url)
    provider.codeSeconds = 60
    await sleep(2100)
    await assertShown(await slow.go(callback), 400, /Example ID refused the sign-in/)

    const browser = testBrowser()
    const again = await browser.toCallback(url)
    const attempt = browser.cookie('weir_sign_in') ?? ''
    assert.equal((await browser.go(again)).status, 302)
    const replayed = await fetch(again, { headers: { cookie: `weir_sign_in=${attempt}` }, redirect: 'manual' })
    await assertShown(replayed, 400, /Example ID refused the sign-in/)
    assert.deepEqual(
      replayed.headers.getSetCookie().filter((it) => it.startsWith('weir_session=')),
      [],
    )
  })

  it('with the words of the provider', async () => {
    const browser = testBrowser()
    const begun = await browser.go(`${url}/console/api/sign-in`)
    const state = new URL(begun.headers.get('location') ?? '').searchParams.get('state') ?? ''
    const answer = new URLSearchParams({
      error: 'access_denied',
      error_description: 'Your account is locked <b>',
      state,
      iss: provider.issuer,
    })
    const response = await browser.go(`${url}/console/api/sign-in/callback?${answer.toString()}`)
    await assertShown(response, 400, /Example ID refused the sign-in: Your account is locked &#60;b&#62;\./)
  })

  it('without a group of this console, with what is missing', async () => {
    be(['unknown'])
    await assertShown((await signedIn(url)).response, 403, /needs one of .*acme.*acme-leads.*other/)
    be(['acme'])
    await assertShown((await signedIn(operatorUrl)).response, 403, /needs one of .*staff.*accounting.*auditors/)
    be(undefined)
    await assertShown((await signedIn(url)).response, 403, /no claim &#34;groups&#34;/)
    be(['gone'])
    await assertShown((await signedIn(url)).response, 403, /&#34;gone&#34;, which does not exist/)
  })
})

describe('a provider that is away', () => {
  it('keeps no one from starting the service or calling it, and is tried again', async (t) => {
    const port = await freePort()
    const [own, admin] = [`http://127.0.0.1:${await freePort()}`, await freePort()]
    const away = `http://127.0.0.1:${port}`
    const second = await startWeir(
      {
        ...settings(away, { public_url: own }),
        server: { port: Number(new URL(own).port), admin_port: admin },
      },
      { OIDC_SECRET: CLIENT.secret },
    )
    t.after(() => second.stop())
    const shown = await fetch(`${own}/console/api/sign-in`, { redirect: 'manual' })
    await assertShown(shown, 503, /Example ID cannot be reached/)
    assert.equal((await second.chat({})).status, 200)
    assert.match(await (await fetch(`${own}/console`)).text(), / data-provider="Example ID"/)
    const key = await fetch(`${own}/console/api/session`, {
      method: 'POST',
      headers: OWN,
      body: JSON.stringify({ key: second.key }),
    })
    assert.equal(key.status, 200, 'a key signs in as before')
    const back = await identityProvider([`${own}/console/api/sign-in/callback`], { port })
    t.after(() => back.close())
    back.person = { sub: 'ada', groups: ['acme'] }
    assert.equal((await signedIn(own)).response.status, 302)
  })
})

describe('a person in a workspace', () => {
  it('uses models without a key, and the ledger names them, whatever the session is', async () => {
    be(['acme'])
    const chat = async (): Promise<string> => {
      const { browser } = await signedIn(url)
      const response = await browser.go(`${url}/api/v1/chat/completions`, {
        method: 'POST',
        headers: OWN,
        body: JSON.stringify({ model: 'meta/test-8b', messages: [{ role: 'user', content: 'Hi' }] }),
      })
      assert.equal(response.status, 200)
      await response.arrayBuffer()
      return (await weir.ledger()).at(-1)?.keyId ?? ''
    }
    const [first, second] = [await chat(), await chat()]
    assert.match(first, /^person_[0-9a-f]{16}$/)
    assert.equal(second, first)
  })

  it('changes to another of their workspaces, with the role there', async () => {
    be(['other', 'acme-leads'])
    const { browser } = await signedIn(url)
    const session = await json(await browser.go(`${url}/console/api/session`))
    assert.deepEqual([session['workspace'], session['workspaces']], ['default', ['default', 'other']])
    const moved = await browser.go(`${url}/console/api/session/workspace`, {
      method: 'PUT',
      headers: OWN,
      body: '{"workspace":"other"}',
    })
    assert.deepEqual([moved.status, (await json(moved))['role']], [200, 'member'])
    const refused = await browser.go(`${url}/console/api/keys`, { method: 'POST', headers: OWN, body: '{"name":"x"}' })
    assert.equal(refused.status, 403)
    const elsewhere = await browser.go(`${url}/console/api/session/workspace`, {
      method: 'PUT',
      headers: OWN,
      body: '{"workspace":"gone"}',
    })
    assert.equal(elsewhere.status, 404)
  })
})

describe('the audit log', () => {
  it('names the person, in both consoles, and a name cannot look like someone else', async () => {
    be(['staff', 'acme-leads'], { name: 'Eve) of default\nfrom (127.0.0.1' })
    const { browser } = await signedIn(url)
    await browser.go(`${url}/console/api/keys`, { method: 'POST', headers: OWN, body: '{"name":"by a person"}' })
    const { browser: operator } = await signedIn(operatorUrl)
    await operator.go(`${operatorUrl}/admin/v1/accounts/reload`, { method: 'POST', headers: OWN })
    let actors: readonly string[] = []
    await eventually('both are on record', async () => {
      const { data } = (await json(await weir.admin('GET', '/admin/v1/audit-log?limit=2'))) as {
        data: { actor: string; outcome: string }[]
      }
      actors = data.map(({ actor }) => actor)
      return data.every(({ outcome }) => outcome === 'done')
    })
    const eve = 'Eve  of default from  127.0.0.1, ada@example.com'
    assert.deepEqual(actors, [`operator (${eve}) from 127.0.0.1`, `workspace admin (${eve}) of default from 127.0.0.1`])
  })
})

describe('sessions', () => {
  const sessions = async () =>
    (await json(await weir.admin('GET', '/admin/v1/sessions?limit=500')))['data'] as {
      id: string
      console: string
      workspace: string | null
      who: string
      roles: string[]
      started: string
      last_used: string
      expires_at: string
      address: string
    }[]
  const statusOf = async (browser: TestBrowser, console: string): Promise<number> =>
    (await browser.go(`${console}/console/api/session`)).status

  it('are listed with who, role and times, and the operator ends them, on record', async () => {
    be(['auditors', 'acme'], { sub: 'grace', name: 'Grace Hopper', email: 'grace@example.com' })
    const [member, viewer] = [await signedIn(url), await signedIn(operatorUrl)]
    const [second, first] = await sessions()
    assert.ok(first && second)
    const { id, started, last_used: used, expires_at: expires, ...rest } = first
    assert.deepEqual(rest, {
      console: 'workspace',
      workspace: 'default',
      who: 'Grace Hopper, grace@example.com',
      roles: ['member'],
      address: '127.0.0.1',
    })
    assert.equal(started, used)
    assert.equal(Date.parse(expires) - Date.parse(started), 8 * 3_600_000)
    assert.deepEqual([second.console, second.workspace, second.roles], ['operator', null, ['viewer']])
    const byViewer = await viewer.browser.go(`${operatorUrl}/admin/v1/sessions/${id}`, {
      method: 'DELETE',
      headers: OWN,
    })
    assert.equal(byViewer.status, 403)
    const ended = await weir.admin('DELETE', `/admin/v1/sessions/${id}`)
    assert.deepEqual([ended.status, (await json(ended))['who']], [200, first.who])
    assert.deepEqual([await statusOf(member.browser, url), await statusOf(viewer.browser, operatorUrl)], [401, 200])
    assert.equal((await weir.admin('DELETE', `/admin/v1/sessions/${id}`)).status, 404)
    assert.equal((await weir.admin('DELETE', `/admin/v1/sessions/${second.id}`)).status, 200)
    assert.equal(await statusOf(viewer.browser, operatorUrl), 401)
  })

  it('are listed and ended by their own people, and by no one else', async () => {
    be(['acme'], { sub: 'grace', name: 'Grace Hopper' })
    const [one, two] = [await signedIn(url), await signedIn(url)]
    be(['acme'], { sub: 'mallory' })
    const mallory = await signedIn(url)
    const own = async ({ browser }: { browser: TestBrowser }) =>
      (await json(await browser.go(`${url}/console/api/sessions`)))['data'] as { id: string; is_current: boolean }[]
    const [newer, older] = await own(one)
    assert.deepEqual([newer?.is_current, older?.is_current], [false, true])
    const end = (who: { browser: TestBrowser }, id = '') =>
      who.browser.go(`${url}/console/api/sessions/${id}`, { method: 'DELETE', headers: OWN })
    assert.equal((await own(mallory)).length, 1)
    assert.equal((await end(mallory, newer?.id)).status, 404)
    assert.equal(await statusOf(two.browser, url), 200)
    assert.equal((await end(one, newer?.id)).status, 200)
    assert.deepEqual([await statusOf(two.browser, url), await statusOf(one.browser, url)], [401, 200])
  })

  it('are listed and ended by commands, and a running service notices at once', async () => {
    be(['acme'], { sub: 'grace', name: 'Grace Hopper' })
    const { browser } = await signedIn(url)
    const run = (...args: readonly string[]) =>
      commandLine(['sessions', ...args, '--config', weir.configFile, '--data', weir.dataDir], {
        environment: { OIDC_SECRET: CLIENT.secret },
      })
    const { data } = JSON.parse((await run('list', '--json')).stdout) as { data: { id: string; who: string }[] }
    const [newest] = data
    assert.equal(newest?.who, 'Grace Hopper, ada@example.com')
    assert.match((await run('list')).stdout, /ID +WHO +CONSOLE +ROLE +LAST USED +EXPIRES +ADDRESS\n/)
    assert.equal(await statusOf(browser, url), 200)
    const ended = await run('end', newest.id)
    assert.match(ended.stdout, /^The session console_\w+ of Grace Hopper, ada@example.com has ended\.\n$/)
    assert.equal(await statusOf(browser, url), 401)
    assert.equal((await run('end', newest.id)).code, 1)
    const log = (await json(await weir.admin('GET', '/admin/v1/audit-log?limit=2')))['data'] as {
      title: string
      actor: string
      before: string | null
    }[]
    assert.match(log[1]?.actor ?? '', /^command by /)
    assert.deepEqual([log[1]?.title, /Grace Hopper/.test(log[1]?.before ?? '')], ['End a session', true])
  })
})
