import type { IncomingRequest } from '../incoming-request.ts'

/** Hosts that are safe to show in code, in any language: a name or an address, and perhaps a port. */
const HOST = /^(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i

/**
 * The origin that a request was sent to, such as `https://weir.example`. Callers can forge the headers that this is
 * derived from, but mislead only themselves: the answer goes to no other caller.
 */
export function originOf({
  headers: { host = '' },
  isEncrypted,
}: Pick<IncomingRequest, 'headers' | 'isEncrypted'>): string {
  const scheme = isEncrypted ? 'https' : 'http'
  return `${scheme}://${HOST.test(host) ? host : 'localhost'}`
}
