import { ApiError } from '../shared/errors.ts'
import type { IncomingRequest } from './incoming-request.ts'

/** More than real clients and proxies together send. Node ignores those above its own limit. */
export const MAX_HEADERS = 200

/** A name or an address, and perhaps a port. */
const HOST = /^(?:[\w.~%!$&'()*+;=-]*|\[[\w.:%-]+\])(?::\d*)?$/

/** Why a head is refused although Node accepts it: another server on the way may interpret it differently. */
export function refusalOfHead({ version, headerLines, headers }: IncomingRequest): ApiError | undefined {
  const { host, 'transfer-encoding': coding } = headers
  if (headerLines.length > 2 * MAX_HEADERS) {
    return new ApiError('headers_too_large', `The request has too many headers: at most ${MAX_HEADERS} are allowed.`)
  }
  if (version !== '1.1' && version !== '1.0') return invalid('The request is not HTTP/1.1 or HTTP/1.0.')
  if (coding !== undefined && (version === '1.0' || coding.toLowerCase() !== 'chunked')) {
    return invalid('The only Transfer-Encoding that a request may have is chunked, in HTTP/1.1.')
  }
  if (host === undefined) return version === '1.0' ? undefined : invalid('The request has no Host header.')
  if (HOST.test(host) && !hasSecondHost(headerLines)) return undefined
  return invalid('The request must have one Host header, with a name or an address.')
}

function invalid(message: string): ApiError {
  return new ApiError('invalid_value', message)
}

function hasSecondHost(lines: readonly string[]): boolean {
  let count = 0
  for (let at = 0; at < lines.length; at += 2) {
    if (lines[at]?.length === 4 && lines[at]?.toLowerCase() === 'host') count++
  }
  return count > 1
}
