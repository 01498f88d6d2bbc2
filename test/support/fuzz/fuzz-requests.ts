import type { Schema } from '../schema-samples.ts'
import { clip } from '../audio-stage.ts'
import { everyAdminRoute, everyPublicRoute, publicDocument } from '../openapi.ts'
import type { Chance } from './chance.ts'
import { changed, changedBytes, jsonText, oddText, oddValue, valueFor } from './odd-values.ts'
import type { WireRequest } from './wire.ts'

/** Generated requests, each kind with its own way of being wrong. */

export type RequestMaker = (chance: Chance, token: string) => WireRequest

const models: Readonly<Record<string, string>> = {
  '/chat/completions': 'fuzz/chat',
  '/completions': 'fuzz/chat',
  '/embeddings': 'fuzz/embedder',
  '/rerank': 'fuzz/reranker',
  '/reranking': 'fuzz/ranker',
  '/images/generations': 'fuzz/painter',
}

const schemas: readonly (readonly [path: string, schema: Schema])[] = Object.entries(publicDocument().paths).flatMap(
  ([path, { post }]) => {
    const schema = post?.requestBody?.content['application/json']?.schema
    return schema ? [[path, schema as Schema] as const] : []
  },
)

interface RequestParts {
  readonly method: string
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

function toWire({ method, target, headers, body }: RequestParts, more: Partial<WireRequest> = {}): WireRequest {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1')
  return { method, bytes: Buffer.concat([head, body]), ...more }
}

function post(path: string, token: string, body: Buffer, contentType = 'application/json'): RequestParts {
  return {
    method: 'POST',
    target: path,
    headers: {
      Host: 'weir.test',
      Authorization: `Bearer ${token}`,
      'Content-Type': contentType,
      'Content-Length': String(body.length),
    },
    body,
  }
}

/** A valid body of the schema, changed up to three times. */
function bodyText(schema: Schema, fixed: object, chance: Chance): string {
  let value: unknown = { ...(valueFor(schema, chance) as object), ...fixed }
  for (let changes = chance.below(4); changes > 0; changes--) value = changed(value, chance)
  const text = jsonText(value)
  // A name given twice, anywhere.
  const brace = text.indexOf('{', chance.below(text.length))
  return chance.is(0.05) && brace >= 0
    ? `${text.slice(0, brace + 1)}"model":1,"x":2,"x":3,${text.slice(brace + 1)}`
    : text
}

function inferenceBody(chance: Chance): readonly [path: string, body: Buffer] {
  const [path, schema] = chance.pick(schemas)
  return [`/api/v1${path}`, Buffer.from(bodyText(schema, { model: models[path] }, chance))]
}

export const jsonBody: RequestMaker = (chance, token) => {
  const [path, body] = inferenceBody(chance)
  return toWire(post(path, token, body))
}

export const rawBody: RequestMaker = (chance, token) => {
  const [path, body] = inferenceBody(chance)
  return toWire(post(path, token, changedBytes(body, chance)))
}

/** The connection ends in the middle of the request. */
export const cutRequest: RequestMaker = (chance, token) => {
  const [path, body] = inferenceBody(chance)
  const whole = chance.is(0.5) ? toWire(post(path, token, body)) : form(chance, token)
  return { ...whole, bytes: whole.bytes.subarray(0, chance.below(whole.bytes.length)), isCut: true }
}

const oddHeaders: readonly (readonly [name: string, values: readonly string[]])[] = [
  [
    'Content-Type',
    ['', 'text/plain', 'application/json; charset=latin1', 'application/json;', 'multipart/form-data', 'x'],
  ],
  ['Content-Encoding', ['gzip', 'identity', 'br, gzip', '']],
  ['Content-Length', ['0', '1', '-1', '1e3', '99999999999', '5, 5', 'x', '']],
  ['Transfer-Encoding', ['chunked', 'gzip, chunked', 'identity', 'x', 'chunked, chunked']],
  ['Expect', ['100-continue', 'x', '']],
  [
    'Authorization',
    ['', 'Bearer', 'Bearer x', 'Basic eDp4', 'bearer  weir_x', 'Bearer \xff', `Bearer ${'x'.repeat(5000)}`],
  ],
  ['Connection', ['close', 'keep-alive', 'upgrade', '']],
  ['Upgrade', ['h2c', 'websocket']],
  ['Host', ['', 'x\ty', '127.0.0.1:1']],
  ['X-Request-Id', ['x', '', 'x'.repeat(20_000)]],
  ['Accept-Encoding', ['gzip', '*']],
  ['Bad Name', ['x']],
  ['Range', ['bytes=0-']],
]

export const oddHeader: RequestMaker = (chance, token) => {
  const [path, body] = inferenceBody(chance)
  const parts = post(path, token, body)
  const [name, values] = chance.pick(oddHeaders)
  const headers = { ...parts.headers, [name]: chance.pick(values) }
  if (name === 'Transfer-Encoding' && chance.is(0.7)) delete (headers as Record<string, string>)['Content-Length']
  // The length may be too long for what is sent, or too short.
  return toWire({ ...parts, headers }, { isCut: true })
}

const publicPaths = [...everyPublicRoute().map(({ path }) => path), '/', '/api', '/api/v1', '/api/v2/models']
const adminPaths = [...everyAdminRoute().map(({ path }) => path), '/admin', '/admin/v1']
const methods = ['GET', 'GET', 'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND']

const oddSegments = [
  'fuzz/chat',
  'victim',
  'default-not',
  '',
  '.',
  '..',
  '%2e%2e',
  '%2F',
  '%00',
  '%',
  '%zz',
  '%E0%A4%A',
  '%F0%9F%99%82',
  '__proto__',
  'constructor',
  'INV-000001',
  "'",
  'a'.repeat(300),
  '%41'.repeat(500),
  '2026-11',
]

const queryNames = [
  'scope',
  'category',
  'mode',
  'supported_parameters',
  'slug',
  'from',
  'to',
  'group_by',
  'limit',
  'cursor',
  'after',
  'format',
  'model',
  'workspace',
  'period',
  '__proto__',
  'expires',
  'signature',
]
const queryValues = [
  'catalog',
  'llm',
  'json',
  'csv',
  'parquet',
  'html',
  'pdf',
  'day',
  'hour',
  'model',
  'victim',
  '0',
  '-1',
  '1e9',
  '99999999999999999999',
  '2026-11-01',
  '2026-02-30',
  '2026-11-01T00:00:00Z',
  '0001-01-01',
  '275760-09-13',
  '2026-11',
  'temperature,seed',
  ',,,',
  ...oddSegments,
]

function oddTarget(path: string, chance: Chance): string {
  const filled = path.replaceAll(/\{\w+\+?\}/g, () => chance.pick(oddSegments))
  const moved = chance.is(0.2) ? changedBytes(Buffer.from(filled), chance).toString('latin1') : filled
  const count = chance.below(4)
  const query = Array.from({ length: count }, () => `${chance.pick(queryNames)}=${chance.pick(queryValues)}`).join('&')
  return count > 0 ? `${moved}?${query}` : moved
}

export const publicTarget: RequestMaker = (chance, token) => target(chance.pick(publicPaths), chance, token)
export const adminTarget: RequestMaker = (chance, token) => target(chance.pick(adminPaths), chance, token)

function target(path: string, chance: Chance, token: string): WireRequest {
  const method = chance.pick(methods)
  const authorization = chance.is(0.9) ? { Authorization: `Bearer ${token}` } : {}
  return toWire(
    {
      method,
      target: oddTarget(path, chance),
      headers: { Host: 'weir.test', ...authorization },
      body: Buffer.alloc(0),
    },
    // A space or line end in the target makes it another request.
    { isLast: true },
  )
}

const adminBodies = everyAdminRoute().flatMap(({ method, path, operation }) => {
  const schema = operation?.request?.schema
  return schema ? [{ method, path, schema: JSON.parse(JSON.stringify(schema)) as Schema }] : []
})

/** Never about the workspace whose key sends the other requests. */
export const adminBody: RequestMaker = (chance, token) => {
  const { method, path, schema } = chance.pick(adminBodies)
  const fixed = {
    ...(schema.properties?.['workspace'] ? { workspace: 'victim' } : {}),
    ...(schema.properties?.['period'] ? { period: chance.pick(['2026-10', '2025-01', '1999-12']) } : {}),
    ...(schema.properties?.['name'] ? { name: `fuzzed ${chance.below(50)}` } : {}),
  }
  const text = Buffer.from(bodyText(schema, fixed, chance))
  const body = chance.is(0.15) ? changedBytes(text, chance) : text
  const place = path.replaceAll('{workspace}', 'victim').replaceAll(/\{\w+\+?\}/g, () => chance.pick(oddSegments))
  return toWire({ ...post(place, token, body), method }, { isLast: true })
}

const boundaries = ['----weir', 'x', "'()+_,-./:=?", 'b'.repeat(70), '"quoted one"']
const clips = ['opus.ogg', 'bare.mp3', 'constant.mp3', 'late-index.m4a', 'live.webm', 'adpcm.wav'].map((name) =>
  clip(name).subarray(0, 8000),
)
const fields: Readonly<Record<string, readonly string[]>> = {
  model: ['fuzz/listener', 'fuzz/listener', 'fuzz/chat', '', '__proto__'],
  language: ['en', 'xx', 'EN', 'english'],
  prompt: ['A weir.', '', 'x'.repeat(70_000)],
  response_format: ['json', 'text', 'srt', 'vtt', 'verbose_json', 'xml'],
  temperature: ['0', '0.5', '1.5', 'NaN', '1e-1', ''],
  'timestamp_granularities[]': ['word', 'segment', 'x'],
  timestamp_granularities: ['word'],
  stream: ['true', 'false', '0', 'x'],
  __proto__2: ['x'],
  '': ['x'],
}

interface Part {
  readonly headers: string
  readonly content: Buffer
}

function part(name: string, content: Buffer | string, chance: Chance, more = ''): Part {
  const shown = chance.is(0.05) ? oddText(chance).replaceAll(/[\r\n"]/g, '') : name
  return { headers: `Content-Disposition: form-data; name="${shown}"${more}`, content: Buffer.from(content) }
}

export const form: RequestMaker = (chance, token) => {
  const recording = chance.pick(clips)
  const sound = chance.is(0.4) ? changedBytes(recording, chance) : recording
  const parts = [
    part('model', chance.pick(fields['model'] ?? []), chance),
    ...Object.entries(fields)
      .slice(1)
      .filter(() => chance.is(0.12))
      .map(([name, values]) => part(name, chance.pick(values), chance)),
    ...(chance.is(0.95) ? [part('file', sound, chance, '; filename="a.ogg"\r\nContent-Type: audio/ogg')] : []),
    ...(chance.is(0.05) ? [part('file', sound, chance, "; filename*=UTF-8''%ff")] : []),
    ...(chance.is(0.02) ? Array.from({ length: 70 }, () => part('x', 'y', chance)) : []),
  ]
  const ordered = chance.is(0.5) ? parts : parts.toReversed()
  const boundary = chance.pick(boundaries)
  const end = chance.is(0.05) ? chance.pick(['\n', '\r', '']) : '\r\n'
  const bare = boundary.replaceAll('"', '')
  const pieces = ordered.flatMap(({ headers, content }) => [
    Buffer.from(`--${bare}${end}${headers}${end}${end}`),
    content,
    Buffer.from(end),
  ])
  const whole = Buffer.concat([...pieces, Buffer.from(`--${bare}--${end}`)])
  const body = chance.is(0.3) ? changedBytes(whole, chance) : whole
  const type = chance.is(0.05)
    ? chance.pick([
        'multipart/form-data',
        'multipart/form-data; boundary=',
        'multipart/mixed; boundary=x',
        'text/plain',
      ])
    : `multipart/form-data; boundary=${boundary}`
  const path = chance.pick(['/api/v1/audio/transcriptions', '/api/v1/audio/translations'])
  return toWire(post(path, token, body, type))
}

/** Something that is hardly HTTP at all. */
export const rawHttp: RequestMaker = (chance, token) => {
  const [path, body] = inferenceBody(chance)
  const { method, bytes } = toWire(post(path, token, body))
  const chunked = `${method} ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`
  const wrong = chance.is(0.5)
    ? changedBytes(bytes.subarray(0, 300), chance)
    : Buffer.concat([
        Buffer.from(chunked),
        changedBytes(Buffer.from(`5\r\n{"mod\r\n0\r\n\r\n${jsonText(oddValue(chance))}`), chance),
      ])
  return { method, bytes: wrong, isCut: true }
}
