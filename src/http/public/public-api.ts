import type { IncomingHttpHeaders } from 'node:http'
import type { Accounts } from '../../accounts/accounts.ts'
import type { SignedIn, WorkspaceSessions } from '../../accounts/workspace-sessions.ts'
import type { SpendControl } from '../../billing/spending.ts'
import { isWellFormedKey } from '../../core/api-key.ts'
import { ApiError } from '../../core/errors.ts'
import { secondsLeft } from '../../core/rate-window.ts'
import type { Caller } from '../../ports/accounts.ts'
import type { Clock } from '../../ports/clock.ts'
import type { RateDecision, RateLimiter, RateSubject, RateView } from '../../ports/rate-limit.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import { sessionToken } from '../console/session-cookie.ts'
import type { Exchange } from '../exchange.ts'
import { refuseUnrouted, routeTable } from '../router.ts'
import type { Application } from '../server.ts'
import { publicRoutes, type PublicRouteParts } from './public-routes.ts'

/** The public listener: who calls, whether the rate limit allows it, and which route answers. */
export interface PublicParts extends PublicRouteParts {
  readonly accounts: Accounts
  readonly sessions: WorkspaceSessions
  readonly rateLimiter: RateLimiter
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly spending: SpendControl
  readonly limits: PublicRouteParts['limits'] & {
    readonly requestsPerMinute: number
    readonly unauthenticatedPerMinute: number
  }
}

export function publicApi(parts: PublicParts): Application {
  const { accounts, sessions, rateLimiter, limits, clock, telemetry, spending } = parts
  const routes = routeTable(publicRoutes(parts))

  const look = (address: string): Promise<RateView> =>
    rateLimiter.look(addressSubject(address), limits.unauthenticatedPerMinute)

  /**
   * Identifies the caller, by a key or by the session of a console, and counts the request. Callers without either are
   * counted by their address.
   */
  async function admit(
    exchange: Exchange,
  ): Promise<{ readonly caller: Caller; readonly session: SignedIn | undefined }> {
    const { headers } = exchange.request
    const key = keyIn(headers)
    const hasKey = headers.authorization !== undefined || key !== undefined
    const session = hasKey ? undefined : sessions.find(sessionToken(exchange, 'weir_session') ?? '')
    const caller = key === undefined ? session?.caller : accounts.authenticate(key)
    const decision = await (caller
      ? rateLimiter.take(
          { kind: 'workspace', id: caller.workspace.id },
          caller.workspace.requestsPerMinute ?? limits.requestsPerMinute,
        )
      : rateLimiter.take(addressSubject(exchange.address), limits.unauthenticatedPerMinute))
    exchange.caller = caller
    exchange.rate = decision
    requireAccepted(decision)
    if (caller) return { caller, session }
    throw key === undefined ? missingKey() : invalidKey(key)
  }

  async function countStranger(exchange: Exchange): Promise<void> {
    const decision = await rateLimiter.take(addressSubject(exchange.address), limits.unauthenticatedPerMinute)
    exchange.rate = decision
    requireAccepted(decision)
  }

  function requireAccepted({ accepted }: RateDecision): void {
    if (accepted) return
    const seconds = secondsLeft(clock.now())
    throw new ApiError('rate_limit_exceeded', `Too many requests in this minute. Try again in ${seconds} s.`, {
      retryAfter: seconds,
    })
  }

  return {
    async answer(exchange) {
      const match = routes.find(exchange.method, exchange.path)
      if (match.kind === 'found' && match.route.access === 'open') {
        if (match.route.isCounted) await countStranger(exchange)
        else exchange.rate = await look(exchange.address)
        return match.route.answer(exchange, match.parameters)
      }
      const { caller, session } = await admit(exchange)
      if (match.kind !== 'found') return refuseUnrouted(exchange, match)
      if (match.route.access === 'session') {
        if (!session) throw new ApiError('missing_api_key', 'Sign in to the console: this needs a session, not a key.')
        return match.route.answer(exchange, match.parameters, session)
      }
      return match.route.answer(exchange, match.parameters, caller)
    },
    look,
    headers({ rate, caller }) {
      const allowance = rate?.allowance()
      return {
        ...(allowance && {
          'X-RateLimit-Limit': String(allowance.limit),
          'X-RateLimit-Remaining': String(allowance.remaining),
          'X-RateLimit-Reset': String(allowance.resetAt),
        }),
        ...(caller?.workspace.spendLimit ? spending.headers(caller.workspace) : undefined),
      }
    },
    errorBody(exchange, error) {
      const [route] = routes.at(exchange.path)
      return route?.operation?.errorShape?.body(error, exchange.requestId) ?? error.body()
    },
    over(exchange, failure) {
      const line = {
        request_id: exchange.requestId,
        method: exchange.method,
        path: exchange.path,
        status: exchange.status,
        workspace: exchange.caller?.workspace.name,
        key_id: exchange.caller?.keyId,
        ...exchange.notes,
      }
      telemetry.requestOver(line, failure)
    },
  }
}

function addressSubject(address: string): RateSubject {
  return { kind: 'address', id: address }
}

/** The key that a request carries. The clients of /messages send it in a header of their own. */
function keyIn({ authorization, 'x-api-key': other }: IncomingHttpHeaders): string | undefined {
  if (authorization !== undefined) return /^bearer +(\S+) *$/i.exec(authorization)?.[1]
  return typeof other === 'string' && other !== '' ? other : undefined
}

function missingKey(): ApiError {
  return new ApiError(
    'missing_api_key',
    'Send your API key in the header Authorization: Bearer <API_KEY>, or in the header x-api-key.',
  )
}

function invalidKey(key: string): ApiError {
  return new ApiError(
    'invalid_api_key',
    isWellFormedKey(key)
      ? 'The API key is not valid. It may have been revoked, or it has expired.'
      : 'The API key is mistyped or incomplete.',
  )
}
