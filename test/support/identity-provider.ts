import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider, type Account, type Configuration } from 'oidc-provider'

/** A real OpenID provider on this machine. Its page asks nothing: pressing the button signs `person` in. */
export interface TestProvider {
  readonly issuer: string
  /** Who signs in next. */
  person: TestPerson
  /** How long a code works, in seconds. */
  codeSeconds: number
  close(): Promise<void>
}

export interface TestPerson {
  readonly sub: string
  readonly name?: string
  readonly email?: string
  readonly groups?: readonly string[] | string
}

export const CLIENT = { id: 'weir', secret: 'a-client-secret-of-the-test' }

/** `inToken`: the identity token has all claims; otherwise only the userinfo endpoint has them. */
export async function identityProvider(
  redirectUrls: readonly string[],
  {
    inToken = false,
    isPublic = false,
    port = 0,
  }: { readonly inToken?: boolean; readonly isPublic?: boolean; readonly port?: number } = {},
): Promise<TestProvider> {
  const server = createServer()
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const it: TestProvider = {
    issuer,
    person: { sub: 'ada', name: 'Ada Lovelace', email: 'ada@example.com', groups: [] },
    codeSeconds: 60,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
  const configuration: Configuration = {
    clients: [
      {
        client_id: CLIENT.id,
        redirect_uris: [...redirectUrls],
        ...(isPublic ? { token_endpoint_auth_method: 'none' } : { client_secret: CLIENT.secret }),
      },
    ],
    claims: { profile: ['name'], email: ['email'], groups: ['groups'] },
    scopes: ['openid', 'profile', 'email', 'groups'],
    conformIdTokenClaims: !inToken,
    pkce: { required: () => true },
    ttl: { AuthorizationCode: () => it.codeSeconds },
    cookies: { keys: ['a-key-of-the-test'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    findAccount: (_, sub): Account => ({ accountId: sub, claims: () => ({ ...it.person, sub }) }),
  }
  const provider = new Provider(issuer, configuration)
  serve(server, provider, it)
  return it
}

function serve(server: Server, provider: Provider, it: TestProvider): void {
  const callback = provider.callback()
  server.on('request', (request, response) => {
    if (!request.url?.startsWith('/interaction/')) return void callback(request, response)
    if (request.method === 'GET') {
      response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' })
      return void response.end(
        `<!doctype html><html lang="en"><title>Test provider</title><h1>Test provider</h1><form method="post"><button>Continue as ${it.person.name}</button></form>`,
      )
    }
    void (async () => {
      const { params } = await provider.interactionDetails(request, response)
      const grant = new provider.Grant({ accountId: it.person.sub, clientId: CLIENT.id })
      grant.addOIDCScope(String(params['scope']))
      const login = { accountId: it.person.sub, remember: false }
      await provider.interactionFinished(request, response, { login, consent: { grantId: await grant.save() } })
    })()
  })
}

/** What a browser does between the two: keeps cookies of all ports of this machine, and follows nothing by itself. */
export interface TestBrowser {
  go(url: string, init?: RequestInit): Promise<Response>
  cookie(name: string): string | undefined
  /** From the button of a console to the address that the provider sends the browser back to. */
  toCallback(consoleUrl: string, options?: { readonly returnTo?: string; readonly nonce?: string }): Promise<string>
}

export function testBrowser(): TestBrowser {
  const jar = new Map<string, { readonly value: string; readonly path: string }>()
  const browser: TestBrowser = {
    async go(url, init = {}) {
      const { pathname } = new URL(url)
      const sent = [...jar].filter(([, { path }]) => pathname.startsWith(path))
      const headers = new Headers(init.headers)
      headers.set('cookie', sent.map(([name, { value }]) => `${name}=${value}`).join('; '))
      const response = await fetch(url, { ...init, headers, redirect: 'manual' })
      for (const text of response.headers.getSetCookie()) keep(text)
      return response
    },
    cookie: (name) => jar.get(name)?.value,
    async toCallback(consoleUrl, { returnTo, nonce } = {}) {
      const query = returnTo === undefined ? '' : `?${new URLSearchParams({ return: returnTo }).toString()}`
      const begun = await browser.go(`${consoleUrl}/console/api/sign-in${query}`)
      const start = new URL(begun.headers.get('location') ?? '')
      if (nonce !== undefined) start.searchParams.set('nonce', nonce)
      let at = start.href
      for (let step = 0; step < 10 && !at.startsWith(`${consoleUrl}/`); step += 1) {
        const method = new URL(at).pathname.startsWith('/interaction/') ? 'POST' : 'GET'
        const response = await browser.go(at, { method })
        const next = response.headers.get('location')
        if (next === null) throw new Error(`${method} ${at}: ${response.status} ${await response.text()}`)
        at = new URL(next, at).href
      }
      return at
    },
  }

  function keep(text: string): void {
    const [pair = '', ...attributes] = text.split(/; */)
    const [name = '', value = ''] = pair.split(/=(.*)/s)
    const of = (wanted: string): string | undefined =>
      attributes.map((it) => it.split('=')).find(([key]) => key?.toLowerCase() === wanted)?.[1]
    const isGone = of('max-age') === '0' || new Date(of('expires') ?? '9999').getTime() < Date.now()
    if (isGone) jar.delete(name)
    else jar.set(name, { value, path: of('path') ?? '/' })
  }

  return browser
}
