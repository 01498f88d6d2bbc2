import { ApiError } from '../core/errors.ts'
import type { IncomingRequest } from './incoming-request.ts'

/** More than real clients and proxies together send. Node ignores those above its own limit. */
export const MAX_HEADERS = 200

/** A name or an address, and perhaps a port. */
const HOST = /^(?:[\w.~%!$&'()*+;=-]*|\[[\w.:%-]+\])(?::\d*)?$/

/** Refuses a head that Node accepts, but that another server on the way may understand in another way. */
export function requireProperHead({ version, headerLines, headers: { host } }: IncomingRequest): void {
  if (headerLines.length > 2 * MAX_HEADERS) {
    throw new ApiError('headers_too_large', `The request has too many headers: at most ${MAX_HEADERS} are allowed.`)
  }
  if (host === undefined && version !== '1.0') throw new ApiError('invalid_value', 'The request has no Host header.')
  if (host !== undefined && (!HOST.test(host) || hasSecondHost(headerLines))) {
    throw new ApiError('invalid_value', 'The request must have one Host header, with a name or an address.')
  }
}

function hasSecondHost(lines: readonly string[]): boolean {
  let count = 0
  for (let at = 0; at < lines.length; at += 2) {
    if (lines[at]?.length === 4 && lines[at]?.toLowerCase() === 'host') count++
  }
  return count > 1
}
