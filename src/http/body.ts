import { isUtf8 } from 'node:buffer'
import { ApiError, CallerLeft } from '../core/errors.ts'
import { hasRepeatedName, scanObject, type Scan } from '../core/json-scan.ts'
import type { Exchange } from './exchange.ts'

/** Room before the body for the fields that Weir puts in front of it: see core/forward.ts. */
export const HEADROOM = 256
const FIRST_BYTES = 65_536
const MAX_DEPTH = 100
const MAX_VALUES = 250_000

export interface JsonBody {
  /** The body behind `HEADROOM` free bytes, so that nothing has to be copied to put fields in front of it. */
  readonly bytes: Buffer
  readonly scan: Scan
  readonly value: Readonly<Record<string, unknown>>
}

export async function readJsonObject(exchange: Exchange, maxBytes: number): Promise<JsonBody> {
  requireJson(exchange)
  const bytes = await readBody(exchange, maxBytes)
  if (!isUtf8(bytes.subarray(HEADROOM))) throw new ApiError('invalid_json', 'The body is not valid UTF-8.')
  const scan = scanObject(bytes, HEADROOM)
  if (scan.depth > MAX_DEPTH) throw new ApiError('invalid_json', `The body is nested deeper than ${MAX_DEPTH} levels.`)
  if (scan.values > MAX_VALUES) throw new ApiError('invalid_json', `The body holds more than ${MAX_VALUES} values.`)
  const value = parse(bytes.toString('utf8', HEADROOM))
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ApiError('invalid_json', 'The body must be a JSON object.')
  }
  refuseRepeated(scan, value)
  return { bytes, scan, value: value as Record<string, unknown> }
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

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    // V8 quotes what it could not read; a prompt has no place in an error or a log.
    const position = /position \d+/.exec((cause as Error).message)?.[0]
    throw new ApiError('invalid_json', `The body is not valid JSON${position ? ` (at ${position})` : ''}.`)
  }
}

/** Parsers differ on which of two equal names wins, and what is checked must be what the engine reads. */
function refuseRepeated(scan: Scan, value: unknown): void {
  if (!hasRepeatedName(value, scan.names)) return
  const names = new Set<string>()
  for (const { name } of scan.fields) {
    if (names.has(name)) throw new ApiError('invalid_json', `The field "${name.slice(0, 64)}" is given twice.`)
    names.add(name)
  }
  throw new ApiError('invalid_json', 'An object in the body has the same name twice.')
}

/** Reads the whole body before anything else happens: an unread one hides that its caller has left. */
function readBody(exchange: Exchange, maxBytes: number): Promise<Buffer> {
  const { request } = exchange
  const declared = Number(request.headers['content-length'] ?? Number.NaN)
  const tooLarge = (): ApiError =>
    new ApiError('request_too_large', `The body is larger than the ${maxBytes} bytes that are allowed.`)
  if (declared > maxBytes) return Promise.reject(tooLarge())
  return new Promise((resolve, reject) => {
    // A declared length is a claim: memory is taken as the bytes arrive.
    let bytes: Buffer = Buffer.allocUnsafe(HEADROOM + Math.min(declared || FIRST_BYTES, FIRST_BYTES))
    let end = HEADROOM
    const take = (chunk: Buffer): void => {
      if (end + chunk.length - HEADROOM > maxBytes) {
        request.off('data', take)
        request.resume()
        return reject(tooLarge())
      }
      if (end + chunk.length > bytes.length) bytes = grown(bytes, end, chunk.length)
      end += chunk.copy(bytes, end)
    }
    const finish = (): void => {
      // Whoever listens on keeps the first buffer, and the request may wait for minutes.
      request.off('data', take).off('end', finish).off('close', cutOff)
      resolve(fitted(bytes, end))
    }
    /** Without an end before it, a request that closes was cut off, and has been answered (408) already. */
    const cutOff = (): void => reject(new CallerLeft())
    request.on('data', take).on('end', finish).on('close', cutOff)
    exchange.onGone(cutOff)
  })
}

/** A first buffer may be much larger than the body, and is held as long as the request. */
function fitted(bytes: Buffer, used: number): Buffer {
  return used > bytes.length / 2 ? bytes.subarray(0, used) : Buffer.from(bytes.subarray(0, used))
}

function grown(bytes: Buffer, used: number, more: number): Buffer {
  const larger = Buffer.allocUnsafe(Math.max(bytes.length * 2, used + more))
  bytes.copy(larger, 0, 0, used)
  return larger
}
