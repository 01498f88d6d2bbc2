import type { Accounts } from '../../workspaces/accounts.ts'
import { recorded, type Doer } from '../../operate/audit/recorded.ts'
import { personText } from '../../workspaces/sessions/session-store.ts'
import type { SignedIn, WorkspaceSessions } from '../../workspaces/sessions/workspace-sessions.ts'
import { isWellFormedKey } from '../../workspaces/keys/api-key.ts'
import { counted } from '../../shared/counts.ts'
import { ApiError } from '../../shared/errors.ts'
import { reasonOf } from '../../billing/refused-requests/refusals.ts'
import type { Caller } from '../../workspaces/workspace.ts'
import type { AuditStore } from '../../operate/audit/audit-store.ts'
import type { Clock } from '../../shared/clock.ts'
import type { Refusals } from '../../billing/refused-requests/refusal-store.ts'
import {
  tighter,
  type Allowance,
  type RateDecision,
  type RateLimiter,
  type RateSubject,
  type RateView,
  type TokenRates,
} from '../../workspaces/rate-limits/rate-limit.ts'
import type { SpendView } from '../../workspaces/spend-limits/spending.ts'
import type { Telemetry } from '../../operate/telemetry/telemetry.ts'
import type { Tracing } from '../../operate/telemetry/tracing.ts'
import { sessionToken } from '../console/session-cookie.ts'
import type { Exchange } from '../exchange.ts'
import type { OpenRoute, PathParameters, Route } from '../route.ts'
import { refuseUnrouted, readQuery, requireRole, routeTable } from '../router.ts'
import type { Application } from '../server.ts'
import type { RequestHeaders } from '../incoming-request.ts'
import { BASE } from '../key-route.ts'
import { publicRoutes, type PublicRouteParts } from './public-routes.ts'

/** The public listener: identifies the caller, applies the rate limit, and calls the route. */
export interface PublicParts extends PublicRouteParts {
  readonly accounts: Accounts
  readonly sessions: WorkspaceSessions
  readonly rateLimiter: RateLimiter
  readonly telemetry: Telemetry
  readonly tracing: Tracing | undefined
  readonly refusals: Refusals
  readonly audit: AuditStore
  readonly clock: Clock
  readonly spending: SpendView
  /** True while this replica takes no new work. Health checks and documents are still answered. */
  isDraining(): boolean
  readonly limits: PublicRouteParts['limits'] & {
    readonly requestsPerMinute: number
    readonly unauthenticatedPerMinute: number
  }
}

export function publicApi(parts: PublicParts): Application {
  const { accounts, sessions, rateLimiter, limits, telemetry, tracing, refusals, clock, spending } = parts
  const routes = routeTable(publicRoutes(parts))

  const rateOf = (address: string): Promise<RateView> =>
    rateLimiter.peek(addressSubject(address), limits.unauthenticatedPerMinute)

  /** Counts the request. Callers without a valid key or session are counted by address. */
  function count(exchange: Exchange, caller: Caller | undefined, takesTokens: boolean): Promise<RateDecision> {
    if (!caller) return rateLimiter.take(addressSubject(exchange.address), limits.unauthenticatedPerMinute)
    const { id, requestsPerMinute } = caller.workspace
    return rateLimiter.take(
      { kind: 'workspace', id },
      requestsPerMinute ?? limits.requestsPerMinute,
      caller.rules?.rate,
      tokenRates(caller, takesTokens),
    )
  }

  /** Identifies the caller by its key or console session, and counts the request. */
  async function admitted(exchange: Exchange, takesTokens: boolean): Promise<Admitted> {
    const { headers } = exchange.request
    const key = keyIn(headers)
    const token = headers.authorization === undefined ? sessionToken(exchange, 'weir_session') : undefined
    const session = key === undefined && token !== undefined ? await sessions.find(token) : undefined
    const identified = key === undefined ? session?.caller : await accounts.authenticate(key)
    // A stolen key must not use up the allowance of its workspace, so it counts by address like any unknown caller.
    const isElsewhere = identified?.rules?.allowsAddress(exchange.address) === false
    const caller = isElsewhere ? undefined : identified
    const decided = await count(exchange, caller, takesTokens)
    exchange.caller = caller
    exchange.rate = decided
    requireAccepted(decided, caller && 'the workspace')
    if (isElsewhere) throw wrongAddress(exchange, identified)
    if (!caller) throw key === undefined ? missingKey() : invalidKey(key)
    return { caller, session }
  }

  /** By the person, the name of the key that signed in, or of the session if there was neither. */
  async function memberOf({ address, requestId }: Exchange, signedIn: SignedIn): Promise<Doer> {
    const { caller, hasKey, role, session } = signedIn
    const key = hasKey ? await accounts.key(caller.keyId) : undefined
    const person = session.person && `${role.replace('_', ' ')} (${personText(session.person)})`
    const who = person ?? (key?.name ? `key ${key.name}` : caller.keyId)
    return { actor: `${who} of ${caller.workspace.name} from ${address}`, requestId }
  }

  async function countUnauthenticated(exchange: Exchange): Promise<void> {
    const decision = await count(exchange, undefined, false)
    exchange.rate = decision
    requireAccepted(decision, undefined)
  }

  async function answerUnauthenticated(
    exchange: Exchange,
    route: OpenRoute,
    parameters: PathParameters,
  ): Promise<void> {
    if (route.isCounted) await countUnauthenticated(exchange)
    else exchange.rate = await rateOf(exchange.address)
    return route.answer(exchange, parameters)
  }

  function requireAccepted(decision: RateDecision, owner: 'the workspace' | undefined): void {
    const { full, secondsLeft } = decision
    if (!full) return
    const whose = full.isOfKey ? 'this API key' : (owner ?? 'your address without a valid key')
    const allowed =
      full.unit === 'requests' ? `may send ${full.limit}` : `may use ${counted(full.limit, 'token')} per minute`
    throw new ApiError(
      'rate_limit_exceeded',
      `Too many ${full.unit} in this minute: ${whose} ${allowed}. Try again in ${secondsLeft} s.`,
      { retryAfter: secondsLeft },
    )
  }

  /**
   * Records a request that was refused before it reached an engine. Routes without a key are left out: health checks
   * and pages are requested all the time. A lookup that finds nothing is an answer, not a refusal.
   */
  function noteRefusal(exchange: Exchange, error: ApiError): void {
    const match = routes.find(exchange.method, exchange.path)
    const route = match.kind === 'found' ? match.route : undefined
    if (exchange.isOnRecord || error.code === 'not_found' || (route && route.access !== 'key')) return
    const { caller, notes } = exchange
    refusals.add({
      requestId: exchange.requestId,
      at: clock.now(),
      workspaceId: caller?.workspace.id ?? '',
      keyId: caller?.keyId ?? '',
      endpoint: route?.path.replace(BASE, '') ?? '',
      model: typeof notes['model'] === 'string' ? notes['model'] : '',
      code: error.code,
      httpStatus: error.status,
      param: knownField(route, error.param),
      reason: reasonOf(error),
    })
  }

  return {
    async answer(exchange) {
      const match = routes.find(exchange.method, exchange.path)
      if (match.kind !== 'found') {
        await admitted(exchange, false)
        return refuseUnrouted(exchange, match)
      }
      const { route, parameters } = match
      if (route.access === 'open') return answerUnauthenticated(exchange, route, parameters)
      if (route.access === 'key') tracing?.begin(exchange, route.path)
      if (parts.isDraining()) throw new ApiError('service_unavailable', 'This replica is draining. Try again.')
      const { caller, session } = await admitted(exchange, isInference(route))
      if (session) requireRole(route, [session.role])
      if (route.access === 'key') {
        if (route.endpoint !== undefined) requireEndpoint(caller, route.endpoint)
        return route.answer({ exchange, parameters, query: readQuery(route.operation?.query, exchange.query), caller })
      }
      if (!session) throw new ApiError('missing_api_key', 'Sign in to the console: this needs a session, not a key.')
      return route.answer(exchange, parameters, session, async (action, act) =>
        recorded(parts, await memberOf(exchange, session), action, act),
      )
    },
    rateOf,
    headers({ rate, caller }) {
      const allowance = rate?.allowance()
      return {
        ...(allowance && {
          'X-RateLimit-Limit': String(allowance.limit),
          'X-RateLimit-Remaining': String(allowance.remaining),
          'X-RateLimit-Reset': String(allowance.resetAt),
        }),
        ...(rate?.tokens && headersForSdks(rate, clock.now())),
        // Close the connection so that the client reconnects to another replica.
        ...(parts.isDraining() ? { Connection: 'close' } : undefined),
        ...(caller?.workspace.spendLimit ? spending.headers(caller.workspace) : undefined),
      }
    },
    errorBody(exchange, error) {
      const [route] = routes.at(exchange.path)
      return route?.operation?.errorShape?.body(error, exchange.requestId) ?? error.body()
    },
    over(exchange, failure) {
      const { refusal, notes } = exchange
      const line = {
        request_id: exchange.requestId,
        method: exchange.method,
        path: exchange.path,
        status: exchange.status,
        workspace: exchange.caller?.workspace.name,
        key_id: exchange.caller?.keyId,
      }
      telemetry.requestOver(line, refusal ? { ...notes, code: refusal.code } : notes, failure)
      if (refusal) noteRefusal(exchange, refusal)
      tracing?.over(exchange)
    },
  }
}

interface Admitted {
  readonly caller: Caller
  /** The console session, if the request came with one. */
  readonly session: SignedIn | undefined
}

/** The field that an error is about; '' unless the route has such a field, since a caller may send any name. */
function knownField(route: Route | undefined, param: string | null): string {
  const schema = route?.operation?.request?.schema ?? route?.operation?.query
  const name = /^\w{1,64}/.exec(param ?? '')?.[0] ?? ''
  return schema && 'properties' in schema && Object.hasOwn(schema.properties ?? {}, name) ? name : ''
}

/** Other routes take no tokens: they show the limits of tokens, and are not refused by them. */
function isInference(route: { readonly path: string; readonly endpoint?: string | undefined }): boolean {
  return route.endpoint !== undefined && route.path.endsWith(route.endpoint)
}

function tokenRates({ workspace, rules }: Caller, isChecked: boolean): TokenRates | undefined {
  const [limit, key] = [workspace.tokensPerMinute ?? undefined, rules?.tokenRate]
  return limit === undefined && !key ? undefined : { limit, key, isChecked }
}

/** By the names of OpenAI's API. */
function headersForSdks(rate: RateView, nowMs: number): Record<string, string> {
  const [ofWorkspace, ofKey] = [rate.tokens?.allowanceOfSubject(), rate.tokens?.allowanceOfKey()]
  const tokens = ofWorkspace ? tighter(ofWorkspace, ofKey) : ofKey
  const of = (unit: string, { limit, remaining, resetAt }: Allowance): Record<string, string> => ({
    [`x-ratelimit-limit-${unit}`]: String(limit),
    [`x-ratelimit-remaining-${unit}`]: String(remaining),
    [`x-ratelimit-reset-${unit}`]: `${Math.max(0, Math.ceil(resetAt - nowMs / 1000))}s`,
  })
  return { ...of('requests', rate.allowance()), ...(tokens && of('tokens', tokens)) }
}

function addressSubject(address: string): RateSubject {
  return { kind: 'address', id: address }
}

/** The key that a request carries. Clients of /messages send it in a different header. */
function keyIn({ authorization, 'x-api-key': other }: RequestHeaders): string | undefined {
  if (authorization !== undefined) return /^bearer +(\S+) *$/i.exec(authorization)?.[1]
  return typeof other === 'string' && other !== '' ? other : undefined
}

/** The log names the key, because its owner should know that it is used elsewhere. */
function wrongAddress(exchange: Exchange, { keyId }: Caller): ApiError {
  exchange.notes = { key_id: keyId }
  return new ApiError('key_not_allowed', `This API key may not be used from ${exchange.address}.`)
}

function requireEndpoint({ rules }: Caller, endpoint: string): void {
  if (rules?.allowsEndpoint(endpoint) !== false) return
  throw new ApiError('key_not_allowed', `This API key may not be used on ${endpoint}.`)
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
