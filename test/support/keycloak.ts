import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import type { TestBrowser } from './identity-provider.ts'
import { eventually } from './waiting.ts'

/** Where `npm run install:keycloak` installs it. */
const directory =
  process.env['WEIR_KEYCLOAK_DIR'] ??
  join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'weir', 'keycloak')
const program = join(directory, 'bin', 'kc.sh')

/** For a suite's `skip`: false if it is here, otherwise the reason. */
export const missingKeycloak = !existsSync(program) && `${program} not found; npm run install:keycloak installs it`

/** The first start builds it, which takes minutes beside busy programs. */
const READY_WITHIN_MS = 900_000
const ADMIN = { username: 'admin', password: 'a-password-of-the-test' }
const REALM = 'example'
export const PASSWORD = 'correct horse'

/** A Keycloak in memory, with one realm. */
export interface Keycloak {
  readonly issuer: string
  /** Creates something in the realm, as its administrators do. */
  create(collection: 'clients' | 'client-scopes' | 'groups' | 'users', item: object): Promise<void>
  stop(): Promise<void>
}

export async function startKeycloak(): Promise<Keycloak> {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const options = ['--db=dev-mem', '--http-host=127.0.0.1', `--http-port=${port}`]
  // A group of its own, because the script starts Java.
  const child = spawn(program, ['start-dev', ...options], {
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      KC_BOOTSTRAP_ADMIN_USERNAME: ADMIN.username,
      KC_BOOTSTRAP_ADMIN_PASSWORD: ADMIN.password,
      JAVA_OPTS_KC_HEAP: '-Xms64m -Xmx400m',
    },
  })
  const ended = once(child, 'exit')
  let log = ''
  child.stdout.on('data', (piece: Buffer) => (log = (log + piece.toString()).slice(-4000)))
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, 'SIGKILL')
    await ended
  }

  /** The token is short-lived. */
  async function call(path: string, body: object): Promise<void> {
    const form = new URLSearchParams({ client_id: 'admin-cli', grant_type: 'password', ...ADMIN })
    const signedIn = await fetch(`${origin}/realms/master/protocol/openid-connect/token`, {
      method: 'POST',
      body: form,
    })
    const { access_token: token } = (await signedIn.json()) as { access_token: string }
    const answer = await fetch(`${origin}/admin/realms${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (answer.status !== 201) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  }

  try {
    const isReady = async (): Promise<boolean> => {
      if (child.exitCode !== null) throw new Error(`Keycloak ended:\n${log}`)
      const answer = await fetch(`${origin}/realms/master`).catch(() => undefined)
      return answer?.status === 200
    }
    await eventually('Keycloak is ready', isReady, READY_WITHIN_MS)
    await call('', { realm: REALM, enabled: true })
  } catch (error) {
    await stop()
    throw error
  }
  return {
    issuer: `${origin}/realms/${REALM}`,
    create: (collection, item) => call(`/${REALM}/${collection}`, item),
    stop,
  }
}

/** Signs in at Keycloak's own page, and returns the address that it sends the browser back to. */
export async function throughKeycloak(browser: TestBrowser, consoleUrl: string, username: string): Promise<string> {
  const begun = await browser.go(`${consoleUrl}/console/api/sign-in`)
  const page = await (await browser.go(begun.headers.get('location') ?? '')).text()
  const [, action] = /<form[^>]* action="([^"]+)"/.exec(page) ?? []
  if (action === undefined) throw new Error(`There is no form on the page: ${page}`)
  const body = new URLSearchParams({ username, password: PASSWORD })
  const answer = await browser.go(action.replaceAll('&amp;', '&'), { method: 'POST', body })
  const back = answer.headers.get('location')
  if (back === null) throw new Error(`Keycloak let ${username} not in: ${answer.status} ${await answer.text()}`)
  return back
}
