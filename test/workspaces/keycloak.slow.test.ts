import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { freePort } from '../support/free-port.ts'
import { testBrowser, type TestBrowser } from '../support/identity-provider.ts'
import { missingKeycloak, PASSWORD, startKeycloak, throughKeycloak, type Keycloak } from '../support/keycloak.ts'
import { startWeir, type TestWeir } from '../support/weir.ts'

/** Signing in through a real Keycloak, which is set up as docs/guides/sign-in.md describes. */

const SECRET = 'a-client-secret-of-the-test'
const scopes = ['openid', 'profile', 'email', 'groups']
const roles = [
  { group: 'staff', role: 'operator' },
  { group: 'accounting', role: 'finance' },
  { group: 'acme', role: 'member', workspace: 'default' },
  { group: 'acme-leads', role: 'workspace_admin', workspace: 'default' },
]
const people = {
  ada: ['acme'],
  grace: ['acme', 'acme-leads', 'accounting'],
  joan: ['staff'],
  eve: ['visitors'],
}

/** Keycloak's mapper "Group Membership", without full paths. */
const groupMapper = (inToken: boolean) => ({
  name: 'groups',
  protocol: 'openid-connect',
  protocolMapper: 'oidc-group-membership-mapper',
  config: {
    'claim.name': 'groups',
    'full.path': 'false',
    'id.token.claim': String(inToken),
    'userinfo.token.claim': 'true',
  },
})

describe('signing in through Keycloak', { skip: missingKeycloak }, () => {
  let keycloak: Keycloak
  const services: TestWeir[] = []

  before(async () => {
    keycloak = await startKeycloak()
    await keycloak.create('client-scopes', {
      name: 'groups',
      protocol: 'openid-connect',
      protocolMappers: [groupMapper(true)],
    })
    for (const name of new Set(Object.values(people).flat())) await keycloak.create('groups', { name })
    for (const [username, groups] of Object.entries(people)) {
      await keycloak.create('users', {
        username,
        enabled: true,
        firstName: username,
        lastName: 'Example',
        email: `${username}@example.com`,
        credentials: [{ type: 'password', value: PASSWORD, temporary: false }],
        groups,
      })
    }
  })
  after(async () => {
    for (const it of services) await it.stop()
    await keycloak.stop()
  })

  /** A client of its own in Keycloak, and a service that uses it. */
  async function stage(clientId: string, client: object, oidc: object): Promise<{ url: string; operatorUrl: string }> {
    const [port, operatorPort] = [await freePort(), await freePort()]
    const [url, operatorUrl] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${operatorPort}`]
    await keycloak.create('clients', {
      clientId,
      standardFlowEnabled: true,
      directAccessGrantsEnabled: false,
      // Keycloak refuses a sign-in without PKCE.
      attributes: { 'pkce.code.challenge.method': 'S256' },
      redirectUris: [url, operatorUrl].map((it) => `${it}/console/api/sign-in/callback`),
      ...client,
    })
    const provider = { issuer: keycloak.issuer, client_id: clientId, name: 'Example ID', roles }
    const weir = await startWeir(
      {
        server: { port, admin_port: operatorPort },
        models: [],
        sign_in: { oidc: { ...provider, public_url: url, operator_url: operatorUrl, ...oidc } },
      },
      { OIDC_SECRET: SECRET, WRONG_SECRET: 'another-secret-of-the-test' },
    )
    services.push(weir)
    return { url, operatorUrl }
  }

  async function signedIn(consoleUrl: string, person: keyof typeof people) {
    const browser = testBrowser()
    const response = await browser.go(await throughKeycloak(browser, consoleUrl, person))
    return { browser, response }
  }

  async function sessionOf(browser: TestBrowser, consoleUrl: string): Promise<Record<string, unknown>> {
    return (await (await browser.go(`${consoleUrl}/console/api/session`)).json()) as Record<string, unknown>
  }

  it('gives the roles of the groups in the identity token, in both consoles', async () => {
    const confidential = {
      secret: SECRET,
      defaultClientScopes: ['basic', 'profile', 'email', 'groups'],
    }
    const { url, operatorUrl } = await stage('weir', confidential, { scopes, client_secret_env: 'OIDC_SECRET' })
    const member = await signedIn(url, 'ada')
    assert.deepEqual([member.response.status, member.response.headers.get('location')], [302, '/console'])
    const session = await sessionOf(member.browser, url)
    assert.deepEqual([session['person'], session['role']], ['ada Example, ada@example.com', 'member'])
    const lead = await signedIn(url, 'grace')
    assert.equal((await sessionOf(lead.browser, url))['role'], 'workspace_admin')

    const finance = await signedIn(operatorUrl, 'grace')
    assert.deepEqual((await sessionOf(finance.browser, operatorUrl))['roles'], ['finance'])
    const operator = await signedIn(operatorUrl, 'joan')
    assert.deepEqual((await sessionOf(operator.browser, operatorUrl))['roles'], ['operator'])

    const visitor = await signedIn(url, 'eve')
    assert.equal(visitor.response.status, 403)
    assert.equal(visitor.browser.cookie('weir_session'), undefined)
    assert.equal((await signedIn(operatorUrl, 'ada')).response.status, 403)

    const again = await member.browser.go(await throughSession(member.browser, url))
    assert.equal(again.status, 302, 'Keycloak asks for no password while its own session lasts')
  })

  /** Without a page: Keycloak knows the browser. */
  async function throughSession(browser: TestBrowser, consoleUrl: string): Promise<string> {
    const begun = await browser.go(`${consoleUrl}/console/api/sign-in`)
    const answer = await browser.go(begun.headers.get('location') ?? '')
    return answer.headers.get('location') ?? assert.fail(await answer.text())
  }

  it('finds groups that only the userinfo endpoint has, as a public client', async () => {
    const client = {
      publicClient: true,
      defaultClientScopes: ['basic', 'profile', 'email'],
      protocolMappers: [groupMapper(false)],
    }
    const { url } = await stage('weir-public', client, { scopes: scopes.slice(0, 3) })
    const { browser } = await signedIn(url, 'ada')
    assert.equal((await sessionOf(browser, url))['role'], 'member')
  })

  it('shows the reason of Keycloak where the secret is wrong', async () => {
    const client = { secret: SECRET, defaultClientScopes: ['basic', 'groups'] }
    const { url } = await stage('weir-mistaken', client, {
      scopes: ['openid', 'groups'],
      client_secret_env: 'WRONG_SECRET',
    })
    const { response } = await signedIn(url, 'ada')
    assert.equal(response.status, 400)
    assert.match(await response.text(), /Example ID refused the sign-in: .*client/i)
  })
})
