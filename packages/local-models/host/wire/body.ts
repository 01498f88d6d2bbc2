import type { IncomingMessage } from 'node:http'
import { HostError } from '../runtime/host-error.ts'
import { isJsonObject, type JsonObject } from '../runtime/json-value.ts'

/** The service has lower limits of its own. This one keeps a stray caller from filling the memory. */
const MAX_BODY_BYTES = 256 * 1024 * 1024

export async function readRequestJson(request: IncomingMessage): Promise<JsonObject> {
  const body = await bytesOf(request)
  let value: unknown
  try {
    value = JSON.parse(body.toString('utf8'))
  } catch {
    throw new HostError('invalid_json', 'The request body is not valid JSON.')
  }
  if (!isJsonObject(value)) throw new HostError('invalid_json', 'The request body must be a JSON object.')
  return value
}

export interface HostForm {
  /** A field that was sent more than once is a list. */
  readonly fields: JsonObject
  /** The field `file`, if there is one. */
  readonly file: Buffer | undefined
}

export async function readForm(request: IncomingMessage): Promise<HostForm> {
  const form = await parseForm(await bytesOf(request), request.headers['content-type'] ?? '')
  const fields: JsonObject = {}
  let file: Buffer | undefined
  for (const [name, value] of form) {
    if (typeof value !== 'string') file = Buffer.from(await value.arrayBuffer())
    else fields[name] = Object.hasOwn(fields, name) ? [fields[name] ?? [], value].flat() : value
  }
  return { fields, file }
}

async function parseForm(body: Buffer<ArrayBuffer>, contentType: string): Promise<FormData> {
  try {
    return await new Response(body, { headers: { 'content-type': contentType } }).formData()
  } catch {
    throw new HostError('unsupported_media_type', 'Send the body as multipart/form-data with a boundary.')
  }
}

async function bytesOf(request: IncomingMessage): Promise<Buffer<ArrayBuffer>> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > MAX_BODY_BYTES) throw new HostError('request_too_large', 'The request body is too large.')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
