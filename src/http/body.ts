import { ApiError, CallerLeft } from '../core/errors.ts'
import { HEADROOM, parseJsonObject, type JsonBody } from '../core/json/json-body.ts'
import type { Exchange } from './exchange.ts'

const FIRST_BYTES = 65_536

export async function readJsonObject(exchange: Exchange, maxBytes: number): Promise<JsonBody> {
  requireJson(exchange)
  return parseJsonObject(await readBody(exchange, maxBytes))
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

/** Reads the whole body before anything else happens: an unread body hides that the caller has disconnected. */
function readBody(exchange: Exchange, maxBytes: number): Promise<Buffer> {
  const { request } = exchange
  const declared = Number(request.headers['content-length'] ?? Number.NaN)
  const tooLarge = (): ApiError =>
    new ApiError('request_too_large', `The body is too large: at most ${maxBytes} bytes are allowed.`)
  if (declared > maxBytes) return Promise.reject(tooLarge())
  return new Promise((resolve, reject) => {
    // The declared length is only a claim, so memory is allocated as the bytes arrive.
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
      // A listener left behind would retain the first buffer, and the request may wait for minutes.
      request.off('data', take).off('end', finish).off('close', cutOff)
      stopWatching()
      resolve(fitted(bytes, end))
    }
    /** A request that closes before its end was cut off, and has already been answered with 408. */
    const cutOff = (): void => reject(new CallerLeft())
    request.on('data', take).on('end', finish).on('close', cutOff)
    const stopWatching = exchange.onGone(cutOff)
  })
}

/** The first buffer may be much larger than the body, and lives as long as the request. */
function fitted(bytes: Buffer, used: number): Buffer {
  return used > bytes.length / 2 ? bytes.subarray(0, used) : Buffer.from(bytes.subarray(0, used))
}

function grown(bytes: Buffer, used: number, more: number): Buffer {
  const larger = Buffer.allocUnsafe(Math.max(bytes.length * 2, used + more))
  bytes.copy(larger, 0, 0, used)
  return larger
}
