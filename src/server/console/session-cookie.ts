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

function readCookie({ request }: Exchange, name: CookieName): string | undefined {
  for (const pair of (request.headers.cookie ?? '').split(';')) {
    const [key, value] = pair.split('=', 2)
    if (key?.trim() === name && value !== undefined && value !== '') return value.trim()
  }
  return undefined
}

/** `value` undefined: the browser deletes it. */
export function cookieHeaders(exchange: Exchange, name: CookieName, value: string | undefined): Record<string, string> {
  const parts = [
    `${name}=${value ?? ''}`,
    'Path=/',
    'HttpOnly',
    'SameSite=Strict',
    ...(exchange.request.isEncrypted ? ['Secure'] : []),
    ...(value === undefined ? ['Max-Age=0'] : []),
  ]
  return { 'Set-Cookie': parts.join('; '), 'Cache-Control': 'no-store' }
}
