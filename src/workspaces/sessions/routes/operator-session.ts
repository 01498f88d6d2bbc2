import { hash, timingSafeEqual } from 'node:crypto'
import { Type } from 'typebox'
import { isOperatorRole, type OperatorRole } from '../../../shared/roles.ts'
import { personText } from '../session-store.ts'
import { OPERATOR, type ConsoleSession, type Sessions } from '../sessions.ts'
import { ApiError } from '../../../shared/errors.ts'
import { cookieHeaders, isOwnPage, sessionToken } from '../../../server/console/session-cookie.ts'
import { readSmallBody } from '../../../server/console/session-route.ts'
import type { Exchange } from '../../../server/exchange.ts'
import type { OpenRoute } from '../../../server/route.ts'

/** Signing in to the operator's console, with the token or a one-time link. */

export interface OperatorSessionParts {
  readonly operatorToken: string
  readonly operatorSessions: Sessions
}

const signInSchema = Type.Object({
  token: Type.Optional(Type.String({ minLength: 1, maxLength: 1000 })),
  link: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
})

/** Compares in constant time. */
export function isOperatorToken(
  given: string,
  { operatorToken }: Pick<OperatorSessionParts, 'operatorToken'>,
): boolean {
  return timingSafeEqual(hash('sha256', given, 'buffer'), hash('sha256', operatorToken, 'buffer'))
}

/** The session that a request may use; undefined if it has none. */
export async function operatorSession(
  exchange: Exchange,
  { operatorSessions }: OperatorSessionParts,
): Promise<ConsoleSession | undefined> {
  const session = await operatorSessions.find(sessionToken(exchange, 'weir_operator') ?? '')
  return session?.owner === OPERATOR ? session : undefined
}

/** A session that the token or a link opened may do everything. */
export function rolesOf({ person, roles }: ConsoleSession): readonly OperatorRole[] {
  return person ? roles.map(({ role }) => role).filter(isOperatorRole) : ['operator']
}

/** Who it is, for the audit log. */
export function operatorText({ name, person }: ConsoleSession, roles: readonly OperatorRole[]): string {
  return person ? `${roles.join(' and ')} (${personText(person)})` : `operator (${name.replace('_', ' ')})`
}

/** Not documented, because only the console calls them. Programs use the token. */
export function operatorSessionRoutes(parts: OperatorSessionParts): readonly OpenRoute[] {
  const { operatorSessions: sessions } = parts
  const route = (method: OpenRoute['method'], answer: OpenRoute['answer']): OpenRoute => ({
    method,
    path: '/console/api/session',
    access: 'open',
    operation: undefined,
    answer,
  })
  return [
    route('GET', async (exchange) => {
      const found = await operatorSession(exchange, parts)
      if (!found) throw new ApiError('missing_api_key', 'Sign in to the console.')
      const { person, expiresAt } = found
      exchange.sendJson(
        JSON.stringify({
          expires_at: new Date(expiresAt).toISOString(),
          person: person && personText(person),
          roles: rolesOf(found),
        }),
      )
    }),
    route('POST', async (exchange) => {
      if (!isOwnPage(exchange))
        throw new ApiError('missing_api_key', 'Sign in from the console: send X-Weir-Console: 1.')
      const { token, link } = await readSmallBody(exchange, signInSchema)
      const isAllowed =
        token === undefined ? (await sessions.redeem(link ?? '')) === OPERATOR : isOperatorToken(token.trim(), parts)
      if (!isAllowed) {
        throw new ApiError(
          'invalid_api_key',
          token === undefined
            ? 'This link has been used or has expired. Run weir console for a new one, or sign in with the token.'
            : 'The operator token is wrong.',
        )
      }
      const opened = await sessions.open({ owner: OPERATOR, keyHash: null, address: exchange.address })
      const body = JSON.stringify({
        expires_at: new Date(opened.expiresAt).toISOString(),
        person: null,
        roles: ['operator'],
      })
      exchange.send(200, 'application/json', body, cookieHeaders(exchange, 'weir_operator', opened.token))
    }),
    route('DELETE', async (exchange) => {
      await sessions.end(sessionToken(exchange, 'weir_operator') ?? '')
      exchange.send(200, 'application/json', '{"signed_out":true}', cookieHeaders(exchange, 'weir_operator', undefined))
    }),
  ]
}
