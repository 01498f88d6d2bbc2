import type { RequestHeaders } from '../incoming-request.ts'

/** Hosts that are safe to show in code, in any language: a name or an address, and perhaps a port. */
const HOST = /^(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i

/**
 * Where a request was sent to, such as `https://weir.example`. A proxy that ends TLS says so in X-Forwarded-Proto.
 * Callers can set both headers, but then mislead only themselves: the answer goes to nobody else.
 */
export function originOf({ host = '', 'x-forwarded-proto': forwarded }: RequestHeaders): string {
  const scheme = forwarded === 'https' ? 'https' : 'http'
  return `${scheme}://${HOST.test(host) ? host : 'localhost'}`
}
