import type { ConsolePage } from '../../../server/console/console-page.ts'
import {
  attemptHeader,
  readAttempt,
  sessionHeader,
  type SignInCookies,
} from '../../../server/console/session-cookie.ts'
import type { Exchange } from '../../../server/exchange.ts'
import type { OpenRoute } from '../../../server/route.ts'
import type { HeldRole, Person } from '../../sessions/session-store.ts'
import type { OpenedSession } from '../../sessions/sessions.ts'
import { personIn, rolesIn, SignInFailed, type SignIn, type SignInChecks } from '../sign-in.ts'

/** Signing in to a console through the identity provider. Only browsers come here, so it is not documented. */

export interface SignInConsole {
  readonly name: 'operator' | 'workspace'
  readonly cookies: SignInCookies
  readonly page: ConsolePage
  workspaceId(name: string): string | undefined
  open(person: Person, roles: readonly HeldRole[], address: string): Promise<OpenedSession>
}

const PATH = '/console/api/sign-in'
const CALLBACK = `${PATH}/callback`
const statuses = { unreachable: 503, refused: 400, forbidden: 403 } as const

/** What the browser keeps while the person is at the provider. */
interface Attempt extends SignInChecks {
  readonly returnTo: string
}

export function signInRoutes(signIn: SignIn | undefined, console: SignInConsole): readonly OpenRoute[] {
  if (!signIn) return []
  const { settings, provider } = signIn
  const url = (): string => (console.name === 'operator' ? settings.operatorUrl : settings.publicUrl) ?? ''

  async function begin(exchange: Exchange): Promise<void> {
    const returnTo = new URLSearchParams(exchange.query).get('return')
    const { url: address, checks } = await provider.begin(url() + CALLBACK)
    const attempt: Attempt = { ...checks, returnTo: ownPage(returnTo) }
    exchange.send(302, 'text/plain', '', {
      Location: address,
      'Cache-Control': 'no-store',
      'Set-Cookie': attemptHeader(console.cookies, url(), PATH, JSON.stringify(attempt)),
    })
  }

  async function finish(exchange: Exchange): Promise<void> {
    const { returnTo, ...checks } = attemptIn(readAttempt(exchange, console.cookies))
    const claims = await provider.finish(new URL(`${url()}${CALLBACK}?${exchange.query}`), checks)
    const roles = rolesIn(claims, settings, console.name, console.workspaceId)
    const { token } = await console.open(personIn(claims, settings), roles, exchange.address)
    exchange.send(302, 'text/plain', '', {
      Location: ownPage(returnTo),
      'Cache-Control': 'no-store',
      'Set-Cookie': [
        attemptHeader(console.cookies, url(), PATH, undefined),
        sessionHeader(exchange, console.cookies.session, token),
      ],
    })
  }

  /** A failure is shown on the page where people sign in. */
  const shown =
    (work: (exchange: Exchange) => Promise<void>) =>
    async (exchange: Exchange): Promise<void> => {
      try {
        await work(exchange)
      } catch (error) {
        if (!(error instanceof SignInFailed)) throw error
        signIn.failed(error)
        console.page.send(exchange, statuses[error.kind], error.message, {
          'Set-Cookie': attemptHeader(console.cookies, url(), PATH, undefined),
        })
      }
    }

  const route = (path: string, answer: OpenRoute['answer']): OpenRoute => ({
    method: 'GET',
    path,
    access: 'open',
    isCounted: true,
    operation: undefined,
    answer,
  })
  return [route(PATH, shown(begin)), route(CALLBACK, shown(finish))]
}

/** Every check must be there: the provider's library does not check what it is not given. */
function attemptIn(kept: string | undefined): Attempt {
  try {
    const { state, nonce, verifier, returnTo } = JSON.parse(kept ?? '') as Partial<Attempt>
    if (state && nonce && verifier && returnTo) return { state, nonce, verifier, returnTo }
  } catch {
    // It is not what we have sent.
  }
  throw new SignInFailed('refused', 'The sign-in took too long, or began in another browser. Start again.')
}

/** A page of the console, and nothing else: the address comes from a link that anyone may have made. */
function ownPage(path: string | null): string {
  const base = 'http://console'
  const url = URL.parse(path ?? '', base)
  const isOwn = url?.origin === base && url.pathname.startsWith('/console/') && !url.pathname.startsWith('/console/api')
  return isOwn ? url.pathname + url.search : '/console'
}
