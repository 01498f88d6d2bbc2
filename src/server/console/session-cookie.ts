import type { Exchange } from '../exchange.ts'

/**
 * The cookie of a console session. Scripts cannot read it, and browsers do not send it for other sites. A request that
 * changes something must also carry a header that no other site can add.
 */
export const CONSOLE_HEADER = 'x-weir-console'

/** Both listeners may have the same host name, and cookies ignore ports, so each console has a cookie of its own. */
export type CookieName = 'weir_session' | 'weir_operator'

/** The token of the session that a request may use; undefined if another site may have made the request. */
export function sessionToken(exchange: Exchange, name: CookieName): string | undefined {
  return isOwnPage(exchange) ? readCookie(exchange, name) : undefined
}

export function isOwnPage({ method, request: { headers } }: Exchange): boolean {
  const site = headers['sec-fetch-site']
  const isOwn = site === undefined || site === 'same-origin' || site === 'none'
  const changesNothing = method === 'GET' || method === 'HEAD'
  return isOwn && (changesNothing || headers[CONSOLE_HEADER] !== undefined)
}

/** The cookies of a console: of the session, and of a sign-in that is not finished. */
export interface SignInCookies {
  readonly session: CookieName
  readonly attempt: 'weir_sign_in' | 'weir_operator_sign_in'
}

/** How long a person may take at the identity provider. */
const ATTEMPT_SECONDS = 600

function readCookie({ request }: Exchange, name: string): string | undefined {
  for (const pair of (request.headers.cookie ?? '').split(';')) {
    const [key, value] = pair.split('=', 2)
    if (key?.trim() === name && value !== undefined && value !== '') return value.trim()
  }
  return undefined
}

/** What the browser has kept of a sign-in. It returns from another site, so that may have made the request. */
export function readAttempt(exchange: Exchange, { attempt }: SignInCookies): string | undefined {
  const value = readCookie(exchange, attempt)
  return value === undefined ? undefined : Buffer.from(value, 'base64url').toString()
}

/** `value` undefined: the browser deletes it. `Lax`, because the browser returns from another site. */
export function attemptHeader(
  { attempt }: SignInCookies,
  url: string,
  path: string,
  value: string | undefined,
): string {
  return [
    `${attempt}=${Buffer.from(value ?? '').toString('base64url')}`,
    `Path=${path}`,
    'HttpOnly',
    'SameSite=Lax',
    ...(url.startsWith('https:') ? ['Secure'] : []),
    `Max-Age=${value === undefined ? 0 : ATTEMPT_SECONDS}`,
  ].join('; ')
}

/** `value` undefined: the browser deletes it. */
export function sessionHeader(exchange: Exchange, name: CookieName, value: string | undefined): string {
  return [
    `${name}=${value ?? ''}`,
    'Path=/',
    'HttpOnly',
    'SameSite=Strict',
    ...(exchange.request.isEncrypted ? ['Secure'] : []),
    ...(value === undefined ? ['Max-Age=0'] : []),
  ].join('; ')
}

export function cookieHeaders(exchange: Exchange, name: CookieName, value: string | undefined): Record<string, string> {
  return { 'Set-Cookie': sessionHeader(exchange, name, value), 'Cache-Control': 'no-store' }
}
