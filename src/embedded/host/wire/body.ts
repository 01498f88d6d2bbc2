import type { IncomingMessage } from 'node:http'
import { EngineError } from '../runtime/engine-model.ts'
import { isObject } from './fields.ts'
import type { Fields } from './fields.ts'

/** The gateway has its own, lower limits; this one only keeps a stray caller from filling memory. */
const bodyBytesMax = 256 * 1024 * 1024

export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > bodyBytesMax) throw new EngineError(413, 'request_too_large', 'The request body is too large.')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

export async function readJson(request: IncomingMessage): Promise<Fields> {
  const body = await readBody(request)
  let value: unknown
  try {
    value = JSON.parse(body.toString('utf8'))
  } catch {
    throw new EngineError(400, 'invalid_json', 'The request body is not valid JSON.')
  }
  if (!isObject(value)) throw new EngineError(400, 'invalid_json', 'The request body must be a JSON object.')
  return value
}
