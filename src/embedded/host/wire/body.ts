import type { IncomingMessage } from 'node:http'
import { ApiError } from '../../../core/errors.ts'
import { boundaryOf, multipartParser } from '../../../core/multipart.ts'
import { isJsonObject, type JsonObject } from '../runtime/json-value.ts'

/** The service has lower limits of its own. This one keeps a stray caller from filling the memory. */
const MAX_BODY_BYTES = 256 * 1024 * 1024

export async function readJson(request: IncomingMessage): Promise<JsonObject> {
  const body = Buffer.concat(await Array.fromAsync(chunksOf(request)))
  let value: unknown
  try {
    value = JSON.parse(body.toString('utf8'))
  } catch {
    throw new ApiError('invalid_json', 'The request body is not valid JSON.')
  }
  if (!isJsonObject(value)) throw new ApiError('invalid_json', 'The request body must be a JSON object.')
  return value
}

export interface HostForm {
  /** A field that was sent more than once is a list. */
  readonly fields: JsonObject
  /** The field `file`, if there is one. */
  readonly file: Buffer | undefined
}

export async function readForm(request: IncomingMessage): Promise<HostForm> {
  const boundary = boundaryOf(request.headers['content-type'])
  if (boundary === undefined) {
    throw new ApiError('unsupported_media_type', 'Send the body as multipart/form-data with a boundary.')
  }
  const parts: { readonly name: string; readonly pieces: Buffer[] }[] = []
  const parser = multipartParser(boundary, {
    begin: (name) => parts.push({ name, pieces: [] }),
    data: (bytes) => parts.at(-1)?.pieces.push(Buffer.from(bytes)),
    end() {},
  })
  for await (const chunk of chunksOf(request)) parser.push(chunk)
  parser.finish()
  const fields: JsonObject = {}
  let file: Buffer | undefined
  for (const { name, pieces } of parts) {
    const content = Buffer.concat(pieces)
    if (name === 'file') file = content
    else fields[name] = Object.hasOwn(fields, name) ? [fields[name] ?? [], String(content)].flat() : String(content)
  }
  return { fields, file }
}

async function* chunksOf(request: IncomingMessage): AsyncGenerator<Buffer> {
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > MAX_BODY_BYTES) throw new ApiError('request_too_large', 'The request body is too large.')
    yield chunk
  }
}
