import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { Errors } from 'typebox/schema'
import { errorTable } from '../../src/core/errors.ts'
import { publicResources, type PublicParts } from '../../src/http/public/public-api.ts'
import { roomyLimits } from '../support/chat-stage.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

interface Schema {
  readonly type?: string
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly additionalProperties?: boolean | Schema
}
interface Media {
  readonly content: Readonly<Record<string, { readonly schema: Schema }>>
}
interface Answer extends Media {
  readonly description: string
  readonly headers: Readonly<Record<string, { readonly description: string; readonly schema: Schema }>>
}
interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly parameters?: readonly { name: string; in: string; required: boolean; description: string; schema: Schema }[]
  readonly requestBody?: Media & { readonly required: boolean }
  readonly responses: Readonly<Record<string, Answer>>
}
interface Document {
  readonly openapi: string
  readonly info: { readonly title: string; readonly version: string }
  readonly servers: readonly { readonly url: string }[]
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>>; readonly securitySchemes: object }
}

let engine: ScriptedEngine
let speech: Server
let weir: TestWeir
let document: Document
/** Of a settled request. */
let requestId: string

before(async () => {
  engine = await scriptedEngine()
  // Whatever it is sent, it has heard a greeting.
  speech = createServer((request, response) => void request.resume().on('end', () => response.end('{"text":"Hello"}')))
  await new Promise<void>((resolve) => speech.listen(0, '127.0.0.1', resolve))
  const speechUrl = `http://127.0.0.1:${(speech.address() as AddressInfo).port}/v1`
  const engineAt = (url: string) => ({ kind: 'openai', urls: [url], model: 'engine-name' })
  const serverless = { engine: engineAt(engine.url), limits: roomyLimits }
  const model = (id: string, changes: object): object => modelEntry([], { id, aliases: [], serverless, ...changes })
  weir = await startWeir({
    server: { port: 0, admin_port: 0, max_body_bytes: 4096 },
    rate_limit: { requests_per_minute: 100_000 },
    models: [
      modelEntry([engine.url]),
      model('meta/embed', { categories: ['embedding'], pricing: { input_per_million: '0.10' } }),
      model('meta/images', {
        categories: ['image'],
        pricing: { per_image: '0.04', image_prices: [{ size: '512x512', per_image: '0.01' }] },
      }),
      model('meta/speech', { categories: ['audio'], serverless: { ...serverless, engine: engineAt(speechUrl) } }),
      model('meta/mute', { categories: ['audio'], serverless: {} }),
      model('meta/documents', { categories: ['reranker'], rerank_schema: 'documents' }),
      model('meta/passages', {
        categories: ['reranker'],
        rerank_schema: 'passages',
        serverless: { ...serverless, engine: { ...serverless.engine, kind: 'nim' } },
      }),
      model('meta/reserved', { serverless: undefined, dedicated: [{ workspace: 'acme', per_hour: '12.50' }] }),
      model('meta/without', { serverless: {} }),
    ],
  })
  const chat = await weir.chat({})
  await chat.text()
  requestId = chat.headers.get('x-request-id') ?? ''
  document = (await (await weir.call('/openapi.json', { key: null })).json()) as Document
})
after(async () => {
  await weir.stop()
  await engine.close()
  speech.close()
})

/** Every operation as [method, path, operation]. */
function operations(): [string, string, Operation][] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]): [string, string, Operation] => [method, path, operation]),
  )
}

/** Every schema anywhere in the document, with those inside it. */
function schemas(): Schema[] {
  const found = Object.values(document.components.schemas)
  for (const [, , { requestBody, responses, parameters }] of operations()) {
    const answers = Object.values(responses)
    const media = [requestBody, ...answers].flatMap((it) => Object.values(it?.content ?? {}))
    const headers = answers.flatMap((answer) => Object.values(answer.headers))
    for (const { schema } of [...media, ...headers, ...(parameters ?? [])]) found.push(schema)
  }
  // Those that are added on the way are looked into as well.
  for (const { properties, anyOf, items, additionalProperties: more } of found) {
    found.push(...Object.values(properties ?? {}), ...(anyOf ?? []))
    if (items) found.push(items)
    if (typeof more === 'object') found.push(more)
  }
  return found
}

function resolved(schema: Schema): Schema {
  if (schema.$ref === undefined) return schema
  const name = schema.$ref.replace('#/components/schemas/', '')
  return document.components.schemas[name] ?? assert.fail(`${schema.$ref} leads nowhere`)
}

describe('GET /openapi.json', () => {
  it('[V1, C1] is an OpenAPI 3.1 document of what stands below /api/v1', () => {
    assert.equal(document.openapi, '3.1.0')
    assert.deepEqual(document.servers, [{ url: '/api/v1' }])
    assert.ok(document.info.title && document.info.version)
    for (const need of document.security) {
      for (const name of Object.keys(need)) assert.ok(name in document.components.securitySchemes, name)
    }
  })

  it('has operations of the right structure', () => {
    const ids = operations().map(([, , { operationId }]) => operationId)
    assert.equal(new Set(ids).size, ids.length, 'an id is there twice')
    for (const [method, path, operation] of operations()) {
      assert.ok(path.startsWith('/') && ['get', 'post'].includes(method), path)
      assert.match(operation.operationId, /^[a-zA-Z]+$/)
      assert.ok(operation.summary)
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1])
      const declared = (operation.parameters ?? []).filter((it) => it.in === 'path')
      assert.deepEqual(
        declared.map(({ name, required }) => [name, required]),
        inPath.map((name) => [name, true]),
      )
      for (const parameter of operation.parameters ?? []) {
        assert.ok(['query', 'path'].includes(parameter.in) && parameter.description && parameter.schema)
      }
      assert.equal(operation.requestBody !== undefined, method === 'post')
      assert.ok(operation.responses['200'])
      for (const [status, answer] of Object.entries(operation.responses)) {
        assert.match(status, /^[2-5]\d\d$/)
        assert.ok(answer.description, `${path} ${status}`)
        for (const name of ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'X-Request-Id']) {
          assert.ok(answer.headers[name], `${path} ${status} ${name}`)
        }
      }
    }
  })

  it('has schemas that are JSON Schema and nothing of the library that made them', () => {
    const types = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object', 'null', undefined])
    assert.ok(schemas().length > 100)
    for (const schema of schemas()) {
      assert.ok(types.has(schema.type), schema.type)
      for (const name of schema.required ?? []) assert.ok(schema.properties?.[name], name)
      for (const key of Object.keys(schema)) assert.match(key, /^[a-zA-Z$]+$/)
      if (schema.$ref !== undefined) resolved(schema)
    }
  })

  it('documents every route there is, and no other', () => {
    // The routes are asked for and never run, so any parts will do.
    const anything: object = new Proxy({}, { get: () => anything })
    const routes = Object.entries(publicResources(anything as PublicParts)).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method} ${path}`),
    )
    const documented = operations().map(([method, path]) => `${method.toUpperCase()} ${path}`)
    assert.deepEqual(documented.sort(), routes.sort())
  })

  it('documents every code that a caller can meet', () => {
    const answers = operations().flatMap(([, , { responses }]) => Object.values(responses))
    // Those of the operator's own API, and those that no path has.
    const elsewhere = ['conflict', 'not_found', 'unknown_url', 'method_not_allowed']
    const known = new Set([...answers.flatMap(({ description }) => description.split(', ')), ...elsewhere])
    for (const code of Object.keys(errorTable)) assert.ok(known.has(code), code)
  })
})

/** What each documented operation is asked, so that it answers 200. */
const asks: Readonly<Record<string, { path?: string; body?: object; form?: Record<string, string>; engine?: object }>> =
  {
    'post /chat/completions': { body: { model: 'meta/test-8b', messages: [{ role: 'user', content: 'Hi' }] } },
    'post /completions': {
      body: { model: 'meta/test-8b', prompt: 'Once' },
      engine: {
        choices: [{ index: 0, text: ' upon', finish_reason: 'stop' }],
        usage: { prompt_tokens: 1, completion_tokens: 1 },
      },
    },
    'post /embeddings': {
      body: { model: 'meta/embed', input: ['one', 'two'] },
      engine: { data: [0, 1].map((index) => ({ index, embedding: [0.5, -1] })), usage: { prompt_tokens: 2 } },
    },
    'post /rerank': {
      body: { model: 'meta/documents', query: 'q', documents: ['a', 'b'], return_documents: true },
      engine: { results: [0, 1].map((index) => ({ index, relevance_score: 0.5 })), usage: { total_tokens: 4 } },
    },
    'post /reranking': {
      body: { model: 'meta/passages', query: { text: 'q' }, passages: [{ text: 'a' }, { text: 'b' }] },
      engine: { rankings: [0, 1].map((index) => ({ index, logit: -2.5 })), usage: { prompt_tokens: 4 } },
    },
    'post /images/generations': { body: { model: 'meta/images', prompt: 'A weir', n: 2 } },
    'post /audio/transcriptions': { form: { model: 'meta/speech' } },
    'post /audio/translations': { form: { model: 'meta/speech' } },
    'get /models': { path: '/models?scope=catalog' },
    'get /models/detail': { path: '/models/detail?slug=meta/test-8b' },
    'get /models/{slug}': { path: '/models/meta/reserved' },
    'get /queue/status': {},
    'get /usage': { path: '/usage?group_by=model' },
    'get /usage/{request_id}': {
      get path() {
        return `/usage/${requestId}`
      },
    },
  }

async function ask(method: string, path: string, changes: { body?: unknown; key?: string | null } = {}) {
  const asking = asks[`${method} ${path}`] ?? assert.fail(`how to ask ${path}?`)
  const { body, form, engine: answer, path: asked = path } = asking
  engine.script = answer
    ? {
        handle: (_call, response) =>
          void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer)),
      }
    : {}
  const sent = 'body' in changes ? changes.body : (body ?? form)
  const content = form && typeof sent === 'object' ? recording(sent as typeof form) : jsonText(sent)
  const response = await weir.call(asked, {
    method: method.toUpperCase(),
    ...(content === undefined ? {} : { body: content }),
    ...(typeof content === 'object' ? {} : { headers: { 'content-type': 'application/json' } }),
    ...(changes.key === undefined ? {} : { key: changes.key }),
  })
  engine.script = {}
  return response
}

function jsonText(sent: unknown): string | undefined {
  return typeof sent === 'string' ? sent : JSON.stringify(sent)
}

/** A form with a tenth of a second of silence. */
function recording(fields: Readonly<Record<string, string>>): FormData {
  const samples = 800
  const head = Buffer.from('RIFF....WAVEfmt ....................data....', 'latin1')
  head.writeUInt32LE(36 + samples, 4)
  head.writeUInt32LE(16, 16)
  // PCM of one channel, 8000 samples and bytes a second, 8 bits each.
  for (const [index, value] of [1, 1, 8000, 0, 8000, 0, 1, 8].entries()) head.writeUInt16LE(value, 20 + 2 * index)
  head.writeUInt32LE(samples, 40)
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.append(name, value)
  form.append('file', new Blob([new Uint8Array(head), new Uint8Array(samples).fill(128)]), 'silence.wav')
  return form
}

/** What a value has that its schema does not speak of. */
function undocumented(schema: Schema, value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => undocumented(schema.items ?? {}, item, `${path}[]`))
  if (typeof value !== 'object' || value === null) return []
  const meant = schema.anyOf?.find((option) => option.properties) ?? schema
  return Object.entries(value).flatMap(([name, item]) => {
    const property = meant.properties?.[name]
    return property ? undocumented(property, item, `${path}.${name}`) : [`${path}.${name}`]
  })
}

describe('a documented operation', () => {
  it('[L1, L3, Q8, E1] answers as documented: every field is of its type, and none is unknown', async () => {
    assert.deepEqual(
      operations()
        .map(([method, path]) => `${method} ${path}`)
        .sort(),
      Object.keys(asks).sort(),
    )
    for (const [method, path, operation] of operations()) {
      const response = await ask(method, path)
      const body: unknown = await response.json()
      assert.equal(response.status, 200, `${path} ${JSON.stringify(body)}`)
      const documented = operation.responses['200'] ?? assert.fail()
      const schema = documented.content['application/json']?.schema ?? assert.fail()
      const [isValid, problems] = Errors(schema, body)
      assert.ok(isValid, `${path} ${JSON.stringify(problems)}`)
      assert.deepEqual(undocumented(schema, body), [], path)
      for (const name of Object.keys(documented.headers)) {
        assert.ok(response.headers.has(name), `${path} has no ${name}`)
      }
    }
  })

  it('would be found out if it did not', async () => {
    const schema = document.paths['/queue/status']?.['get']?.responses['200']?.content['application/json']?.schema
    const body = (await (await ask('get', '/queue/status')).json()) as { data: Record<string, unknown>[] }
    assert.ok(schema && body.data[0])
    body.data[0]['queue_depth'] = '0'
    assert.equal(Errors(schema, body)[0], false)
    body.data[0]['more'] = 1
    assert.deepEqual(undocumented(schema, body), ['.data[].more'])
  })

  it('[X1, X2] refuses as documented: the status is listed, the body is the one shape of errors', async () => {
    const post = (path: string, body: unknown) => ask('post', path, { body })
    for (const [method, path, operation] of operations()) {
      const refusals: [status: number, response: Promise<Response>][] = [
        [401, ask(method, path, { key: null })],
        [401, ask(method, path, { key: 'weir_wrong' })],
      ]
      const { body, form } = asks[`${method} ${path}`] ?? {}
      if (form) {
        refusals.push(
          [415, post(path, '{}')],
          [400, post(path, {})],
          [400, post(path, { ...form, temperature: '9' })],
          [404, post(path, { ...form, model: 'meta/nothing' })],
          [503, post(path, { ...form, model: 'meta/mute' })],
        )
      } else if (method === 'post') {
        refusals.push(
          [400, post(path, '{')],
          [400, post(path, {})],
          [400, post(path, { ...body, model: 'meta/test-8b', messages: 5, prompt: 5, input: 5, query: 5 })],
          [404, post(path, { ...body, model: 'meta/nothing' })],
          [403, post(path, { ...body, model: 'meta/reserved' })],
          [413, post(path, { ...body, more: 'x'.repeat(5000) })],
          [503, post(path, { ...body, model: 'meta/without' })],
        )
      }
      for (const [expected, answer] of refusals) {
        const response = await answer
        const body = (await response.json()) as { error: { code: keyof typeof errorTable } }
        // A model of another category is refused for that first.
        const isElsewhere = body.error.code === 'wrong_endpoint'
        assert.equal(response.status, isElsewhere ? 400 : expected, `${path} ${JSON.stringify(body)}`)
        const documented = operation.responses[String(response.status)]
        assert.ok(documented, `${path} does not document ${response.status}`)
        assert.ok(documented.description.split(', ').includes(body.error.code), `${path} ${body.error.code}`)
        const [isValid, problems] = Errors(resolved(documented.content['application/json']?.schema ?? {}), body)
        assert.ok(isValid, JSON.stringify(problems))
        const { retryAfter } = errorTable[body.error.code]
        assert.equal(response.headers.has('retry-after'), retryAfter !== null)
      }
    }
  })

  it('takes the request that it documents', () => {
    for (const [method, path, { requestBody }] of operations()) {
      const schema = requestBody?.content['application/json']?.schema
      if (!schema) continue
      const { body } = asks[`${method} ${path}`] ?? {}
      assert.deepEqual(Errors(schema, body), [true, []], path)
      assert.equal(Errors(schema, { ...body, model: 5 })[0], false)
    }
  })
})

describe('the docs page', () => {
  it('is served without a key, names every path, parameter and error, and fetches nothing from elsewhere', async () => {
    const home = await weir.call(`${weir.service.url}/`, { key: null })
    assert.equal(home.url, `${weir.service.url}/docs`, 'the home page leads to it')
    assert.match(home.headers.get('content-type') ?? '', /^text\/html/)
    const page = await home.text()
    for (const [, path, { parameters, requestBody }] of operations()) {
      assert.ok(page.includes(path), path)
      const fields = Object.values(requestBody?.content ?? {})[0]?.schema.properties ?? {}
      for (const name of [...Object.keys(fields), ...(parameters ?? []).map((it) => it.name)]) {
        assert.ok(page.includes(`<code>${name}</code>`), `${path} ${name}`)
      }
    }
    for (const code of Object.keys(errorTable)) assert.ok(page.includes(`<code>${code}</code>`), code)
    assert.doesNotMatch(page, /<script|<link|<img|@import|url\(|undefined|\[object/)
    const anchors = [...page.matchAll(/href="#([^"]+)"/g)].map((match) => match[1])
    assert.ok(anchors.length > operations().length)
    for (const anchor of anchors) assert.ok(page.includes(`id="${anchor}"`), anchor)
  })
})
