import { ApiError, CallerLeft, type ErrorCode } from '../shared/errors.ts'
import { HEADROOM, memoryToParse, parseJsonObject, scanJson, type JsonBody } from '../shared/json/json-body.ts'
import type { Exchange } from './exchange.ts'

/** Counts the memory that a request uses until it ends. */
export interface RequestMemory {
  /** Throws if there is no room for it. */
  holdRequest(bytes: number): void
}

const FIRST_BYTES = 65_536

/** What a route that reads a JSON body may refuse it with. */
export const bodyErrors: readonly ErrorCode[] = [
  'invalid_json',
  'missing_required_parameter',
  'invalid_type',
  'invalid_value',
  'request_timeout',
  'request_too_large',
  'unsupported_media_type',
]

export async function readJsonObject(exchange: Exchange, maxBytes: number): Promise<JsonBody> {
  return parsedObject(exchange, await readJson(exchange, maxBytes))
}

/** The bytes of a JSON body, after `HEADROOM` free ones. */
export function readJson(exchange: Exchange, maxBytes: number): Promise<Buffer> {
  requireJson(exchange)
  return readBody(exchange, maxBytes)
}

export function parsedObject(memory: RequestMemory, bytes: Buffer): JsonBody {
  const scan = scanJson(bytes)
  memory.holdRequest(memoryToParse(bytes.length - HEADROOM, scan.values))
  return parseJsonObject(bytes, scan)
}

function requireJson(exchange: Exchange): void {
  const { 'content-type': type, 'content-encoding': encoding } = exchange.request.headers
  if (!type || !/^application\/json\s*(;|$)/i.test(type)) {
    throw new ApiError(
      'unsupported_media_type',
      'Send the body as JSON, with the header Content-Type: application/json.',
    )
  }
  if (encoding && encoding !== 'identity') {
    throw new ApiError('unsupported_media_type', 'Send the body uncompressed: Content-Encoding is not supported.')
  }
}

/**
 * Reads the whole body before anything else happens: while a body is unread, a disconnect goes unnoticed. Its memory is
 * counted as it arrives, because a declared length is only a claim.
 */
function readBody(exchange: Exchange, maxBytes: number): Promise<Buffer> {
  const { request } = exchange
  const declared = Number(request.headers['content-length'] ?? Number.NaN)
  if (declared > maxBytes) return Promise.reject(tooLarge(maxBytes))
  return new Promise((resolve, reject) => {
    let bytes: Buffer = Buffer.allocUnsafe(HEADROOM)
    let end = HEADROOM
    const take = (chunk: Buffer): void => {
      try {
        const arrived = end + chunk.length - HEADROOM
        if (arrived > maxBytes) throw tooLarge(maxBytes)
        exchange.holdRequest(memoryToParse(arrived, 0))
      } catch (refusal) {
        request.discard()
        reject(refusal)
        return
      }
      if (end + chunk.length > bytes.length) bytes = grown(bytes, end, chunk.length, declared)
      end += chunk.copy(bytes, end)
    }
    const finish = (): void => resolve(fitted(bytes, end))
    // A request that is cut off has already been answered with 408, or its caller has disconnected.
    request.take({ data: take, end: finish, cut: () => reject(new CallerLeft()) })
  })
}

/** Copies the body: the last buffer may be much larger than it, and lives as long as the request. */
function fitted(bytes: Buffer, used: number): Buffer {
  return used > bytes.length / 2 ? bytes.subarray(0, used) : Buffer.from(bytes.subarray(0, used))
}

/** Grows by doubling, but to no more than the declared length. */
function grown(bytes: Buffer, used: number, more: number, declared: number): Buffer {
  const doubled = Math.max(2 * (used + more), FIRST_BYTES)
  const larger = Buffer.allocUnsafe(Math.max(used + more, Math.min(doubled, HEADROOM + (declared || Infinity))))
  bytes.copy(larger, 0, 0, used)
  return larger
}

function tooLarge(maxBytes: number): ApiError {
  return new ApiError('request_too_large', `The body is too large: at most ${maxBytes} bytes are allowed.`)
}
