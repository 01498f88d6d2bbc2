import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { Errors } from 'typebox/schema'
import { errorTable, waitingHelps } from '../../src/shared/errors.ts'
import { roomyLimits } from '../support/chat-stage.ts'
import {
  assertDocsPage,
  assertExamples,
  assertPlainSchemas,
  assertServedDocs,
  assertWellFormed,
  everyPublicRoute,
  operationsOf,
  resolved,
  undocumented,
  type ApiDocument,
} from '../support/openapi.ts'
import { copyToLastMonth, lastMonth } from '../support/last-month.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

let engine: ScriptedEngine
let speech: Server
let weir: TestWeir
let document: ApiDocument
/** The id of a settled request. */
let requestId: string
/** The id of a key that the caller's key may change. */
let managedId: string
/** The ids of a file that no batch uses, of one that can be deleted, and of a batch that is being cancelled. */
let files = { kept: '', deleted: '', batch: '' }

before(async () => {
  engine = await scriptedEngine()
  // It hears a greeting in everything.
  speech = createServer((request, response) => void request.resume().on('end', () => response.end('{"text":"Hello"}')))
  await new Promise<void>((resolve) => speech.listen(0, '127.0.0.1', resolve))
  const speechUrl = `http://127.0.0.1:${(speech.address() as AddressInfo).port}/v1`
  const engineAt = (url: string) => ({ kind: 'openai', urls: [url], model: 'engine-name' })
  const serverless = { engine: engineAt(engine.url), limits: roomyLimits }
  const model = (id: string, changes: object): object => modelEntry([], { id, aliases: [], serverless, ...changes })
  weir = await startWeir({
    server: { port: 0, admin_port: 0, max_body_bytes: 4096 },
    rate_limit: { requests_per_minute: 100_000, unauthenticated_per_minute: 100_000 },
    seller: { name: 'Example Pty Ltd', abn: '51824753556' },
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
      model('meta/gone', { serverless: { ...serverless, engine: engineAt('http://127.0.0.1:9/v1') } }),
    ],
  })
  // Every header is sent to a caller that has a limit of tokens.
  const limited = await weir.admin('PATCH', '/admin/v1/workspaces/default', { tokens_per_minute: 1_000_000 })
  assert.equal(limited.status, 200, await limited.text())
  const chat = await weir.chat({})
  await chat.text()
  requestId = chat.headers.get('x-request-id') ?? ''
  await copyToLastMonth(weir, 3)
  const issued = await weir.admin('POST', '/admin/v1/invoices', { workspace: 'default', period: lastMonth.name })
  assert.equal(issued.status, 201, await issued.text())
  const keys = (await (await weir.admin('GET', '/admin/v1/keys')).json()) as { data: { id: string }[] }
  await weir.admin('PATCH', `/admin/v1/keys/${keys.data[0]?.id}`, { manage_keys: true })
  managedId = ((await (await ask('post', '/keys')).json()) as { id: string }).id
  const uploaded = async (): Promise<string> => ((await (await ask('post', '/files')).json()) as { id: string }).id
  // Its engine does not answer, so it does not end by itself.
  const [kept, deleted, input] = [await uploaded(), await uploaded(), await uploaded()]
  const request = { input_file_id: input, endpoint: '/v1/chat/completions', completion_window: '24h' }
  const created = (await (await ask('post', '/batches', { body: request })).json()) as { id: string }
  files = { kept, deleted, batch: created.id }
  document = (await (await weir.call('/openapi.json', { key: null })).json()) as ApiDocument
})
after(async () => {
  await weir.stop()
  await engine.close()
  speech.close()
})

const operations = (): ReturnType<typeof operationsOf> => operationsOf(document)
/** test/billing/invoice-rows.http.test.ts asks the operations that a signed link opens. */
const keyed = (): ReturnType<typeof operationsOf> => operations().filter(([, , { security }]) => security === undefined)

describe('GET /openapi.json', () => {
  it('[V1, C1] is an OpenAPI 3.1 document of everything below /api/v1', () => {
    assertWellFormed(document)
    assert.deepEqual(document.servers, [{ url: '/api/v1' }])
  })

  it('lists the rate limit headers on every response, and a body on every POST', () => {
    for (const [method, path, operation] of operations()) {
      assert.ok(['get', 'post', 'patch', 'delete'].includes(method), path)
      const hasBody = method === 'patch' || (method === 'post' && path !== '/batches/{id}/cancel')
      assert.equal(operation.requestBody !== undefined, hasBody)
      for (const [status, answer] of Object.entries(operation.responses)) {
        for (const name of ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'X-Request-Id']) {
          assert.ok(answer.headers[name], `${path} ${status} ${name}`)
        }
        for (const name of ['limit', 'remaining', 'reset'].flatMap((of) => [`${of}-requests`, `${of}-tokens`])) {
          assert.match(
            answer.headers[`x-ratelimit-${name}`]?.description ?? '',
            /Only for a workspace or key with a limit/,
          )
        }
      }
    }
  })

  it('has schemas that are plain JSON Schema', () => assertPlainSchemas(document))

  it('has an example of every request and every answer', () => assertExamples(document, everyPublicRoute()))

  it('documents every route that needs a key, the rows that an invoice links to, and no other', () => {
    const aliases = new Set(['/v1/responses', '/v1/messages', '/v1/messages/count_tokens'])
    const routes = everyPublicRoute()
      .filter(({ path }) => !aliases.has(path))
      .filter(({ access, path }) => access === 'key' || path === '/api/v1/invoices/{number}/rows/{line}')
      .map(({ method, path }) => `${method} ${path.replace('/api/v1', '').replace('+}', '}')}`)
    const documented = operations().map(([method, path]) => `${method.toUpperCase()} ${path}`)
    assert.ok(documented.length > 10)
    assert.deepEqual(documented.sort(), routes.sort())
    assert.deepEqual(
      operations().flatMap(([, path, { security }]) => (security?.length === 0 ? [path] : [])),
      ['/invoices/{number}/rows/{line}'],
    )
  })

  it('documents every code that a caller can get', () => {
    const answers = operations().flatMap(([, , { responses }]) => Object.values(responses))
    // Codes of the operator's API and of the console, and codes that belong to no operation.
    const elsewhere = ['role_not_allowed', 'unknown_url', 'method_not_allowed', 'headers_too_large']
    const known = new Set([...answers.flatMap(({ description }) => description.split(', ')), ...elsewhere])
    for (const code of Object.keys(errorTable)) assert.ok(known.has(code), code)
  })
})

interface Asking {
  readonly path?: string
  readonly body?: object
  readonly form?: Record<string, string>
  /** The file in the form, instead of a recording. */
  readonly content?: string
  readonly engine?: object
  /** Instead of 200. */
  readonly status?: number
}

const fileContent = JSON.stringify({
  custom_id: '1',
  method: 'POST',
  url: '/v1/chat/completions',
  body: { model: 'meta/gone', messages: [{ role: 'user', content: 'Hi' }] },
})

/** A request to each documented operation that it answers without an error. */
const asks: Readonly<Record<string, Asking>> = {
  'post /chat/completions': { body: { model: 'meta/test-8b', messages: [{ role: 'user', content: 'Hi' }] } },
  'post /responses': { body: { model: 'meta/test-8b', input: 'Hi', tools: [{ type: 'web_search' }] } },
  'post /messages': {
    body: {
      model: 'meta/test-8b',
      max_tokens: 10,
      messages: [{ role: 'user', content: 'Hi' }],
      tools: [{ type: 'web_search_20250305', name: 'web_search' }],
    },
  },
  'post /messages/count_tokens': { body: { model: 'meta/test-8b', messages: [{ role: 'user', content: 'Hi' }] } },
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
  'get /usage/cache': {},
  'get /invoices/{number}/lines/{line}': { path: '/invoices/INV-000001/lines/1' },
  'get /usage/refused': {},
  'get /key': {},
  'get /keys': {},
  'post /keys': { body: { name: 'website' }, status: 201 },
  'patch /keys/{id}': {
    get path() {
      return `/keys/${managedId}`
    },
    body: { name: 'other' },
  },
  'delete /keys/{id}': {
    get path() {
      return `/keys/${managedId}`
    },
  },
  'post /files': { form: { purpose: 'batch' }, content: fileContent },
  'get /files': {},
  'get /files/{id}': {
    get path() {
      return `/files/${files.kept}`
    },
  },
  'get /files/{id}/content': {
    get path() {
      return `/files/${files.kept}/content`
    },
  },
  'delete /files/{id}': {
    get path() {
      return `/files/${files.deleted}`
    },
  },
  'post /batches': {
    get body() {
      return { input_file_id: files.kept, endpoint: '/v1/chat/completions', completion_window: '24h' }
    },
  },
  'get /batches': {},
  'get /batches/{id}': {
    get path() {
      return `/batches/${files.batch}`
    },
  },
  'post /batches/{id}/cancel': {
    get path() {
      return `/batches/${files.batch}/cancel`
    },
  },
  'get /usage/{request_id}': {
    get path() {
      return `/usage/${requestId}`
    },
  },
}

async function ask(method: string, path: string, changes: { body?: unknown; key?: string | null } = {}) {
  const asking = asks[`${method} ${path}`] ?? assert.fail(`how to ask ${path}?`)
  const { body, form, content: file, engine: answer, path: asked = path } = asking
  engine.script = answer
    ? {
        handle: (_call, response) =>
          void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer)),
      }
    : {}
  const sent = 'body' in changes ? changes.body : (body ?? form)
  const content = form && typeof sent === 'object' ? formWith(sent as typeof form, file) : jsonText(sent)
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

/** A form with a file, by default a tenth of a second of silence. */
function formWith(fields: Readonly<Record<string, string>>, content: string | undefined): FormData {
  const samples = 800
  const head = Buffer.from('RIFF....WAVEfmt ....................data....', 'latin1')
  head.writeUInt32LE(36 + samples, 4)
  head.writeUInt32LE(16, 16)
  // PCM of one channel, 8000 samples and bytes a second, 8 bits each.
  for (const [index, value] of [1, 1, 8000, 0, 8000, 0, 1, 8].entries()) head.writeUInt16LE(value, 20 + 2 * index)
  head.writeUInt32LE(samples, 40)
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.append(name, value)
  const file = content === undefined ? [new Uint8Array(head), new Uint8Array(samples).fill(128)] : [content]
  form.append('file', new Blob(file), 'silence.wav')
  return form
}

describe('a documented operation', () => {
  it('[L1, L3, Q8, E1] answers as documented: every field has its type, and there are no others', async () => {
    assert.deepEqual(
      keyed()
        .map(([method, path]) => `${method} ${path}`)
        .sort(),
      Object.keys(asks).sort(),
    )
    for (const [method, path, operation] of keyed()) {
      const response = await ask(method, path)
      const body: unknown = await response.json()
      const { status = 200 } = asks[`${method} ${path}`] ?? {}
      assert.equal(response.status, status, `${path} ${JSON.stringify(body)}`)
      const documented = operation.responses[status] ?? assert.fail()
      const schema = documented.content['application/json']?.schema
      if (!schema) {
        assert.ok(documented.content[response.headers.get('content-type') ?? ''], path)
        continue
      }
      const [isValid, problems] = Errors(schema, body)
      assert.ok(isValid, `${path} ${JSON.stringify(problems)}`)
      assert.deepEqual(undocumented(schema, body), [], path)
      for (const name of Object.keys(documented.headers)) {
        assert.ok(response.headers.has(name), `${path} has no ${name}`)
      }
    }
  })

  it('fails this test if it answers anything else', async () => {
    const schema = document.paths['/queue/status']?.['get']?.responses['200']?.content['application/json']?.schema
    const body = (await (await ask('get', '/queue/status')).json()) as { data: Record<string, unknown>[] }
    assert.ok(schema && body.data[0])
    body.data[0]['queue_depth'] = '0'
    assert.equal(Errors(schema, body)[0], false)
    body.data[0]['more'] = 1
    assert.deepEqual(undocumented(schema, body), ['.data[].more'])
  })

  it('[X1, X2] refuses as documented: with a listed status and code, and the one error format', async () => {
    const post = (path: string, body: unknown) => ask('post', path, { body })
    for (const [method, path, operation] of keyed()) {
      const refusals: [status: number, response: Promise<Response>][] = [
        [401, ask(method, path, { key: null })],
        [401, ask(method, path, { key: 'weir_wrong' })],
      ]
      const { body, form } = asks[`${method} ${path}`] ?? {}
      if (path === '/files') {
        if (form)
          refusals.push([415, post(path, '{}')], [400, post(path, {})], [400, post(path, { purpose: 'vision' })])
      } else if (form) {
        refusals.push(
          [415, post(path, '{}')],
          [400, post(path, {})],
          [400, post(path, { ...form, temperature: '9' })],
          [404, post(path, { ...form, model: 'meta/nothing' })],
          [503, post(path, { ...form, model: 'meta/mute' })],
        )
      } else if (path.startsWith('/keys') || path === '/batches') {
        if (body)
          refusals.push([400, ask(method, path, { body: '{' })], [400, ask(method, path, { body: { name: 5 } })])
      } else if (method === 'post' && body) {
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
        // A model of another category is refused for that reason first.
        const isElsewhere = body.error.code === 'wrong_endpoint'
        assert.equal(response.status, isElsewhere ? 400 : expected, `${path} ${JSON.stringify(body)}`)
        const documented = operation.responses[String(response.status)]
        assert.ok(documented, `${path} does not document ${response.status}`)
        assert.ok(documented.description.split(', ').includes(body.error.code), `${path} ${body.error.code}`)
        const [isValid, problems] = Errors(
          resolved(document, documented.content['application/json']?.schema ?? {}),
          body,
        )
        assert.ok(isValid, JSON.stringify(problems))
        const { retryAfter } = errorTable[body.error.code]
        assert.equal(response.headers.has('retry-after'), retryAfter !== null)
        assert.equal(response.headers.get('x-should-retry') === 'false', !waitingHelps(body.error.code))
      }
    }
  })

  it('accepts the request that it documents', () => {
    for (const [method, path, { requestBody }] of operations()) {
      const schema = requestBody?.content['application/json']?.schema
      if (!schema) continue
      const { body } = asks[`${method} ${path}`] ?? {}
      assert.deepEqual(Errors(schema, body), [true, []], path)
      assert.equal(Errors(schema, { ...body, model: 5, name: 5, endpoint: 5 })[0], false)
    }
  })
})

describe('an operation with several content types', () => {
  it('documents each of them, and sends each of them', async () => {
    const chat = { model: 'meta/test-8b', messages: [{ role: 'user', content: 'Hi' }], stream: true }
    const audio = (format: string) => ({ form: { model: 'meta/speech', response_format: format } })
    const requests: [operation: string, type: string, request: { path?: string; body?: object; form?: object }][] = [
      ['get /usage', 'text/csv', { path: '/usage?format=csv' }],
      ['get /usage', 'application/x-ndjson', { path: '/usage?format=jsonl' }],
      ['post /chat/completions', 'text/event-stream', { body: chat }],
      ['post /audio/transcriptions', 'text/plain', audio('text')],
      ['post /audio/transcriptions', 'text/vtt', audio('vtt')],
      ['post /audio/translations', 'text/plain', audio('text')],
      ['post /audio/translations', 'text/vtt', audio('vtt')],
    ]
    for (const [operation, type, { path, body, form }] of requests) {
      const [method = '', documentedPath = ''] = operation.split(' ')
      const response =
        path === undefined ? await ask(method, documentedPath, { body: body ?? form }) : await weir.call(path)
      await response.arrayBuffer()
      assert.equal(response.status, 200, operation)
      assert.equal(response.headers.get('content-type')?.split(';')[0], type)
      assert.ok(document.paths[documentedPath]?.[method]?.responses['200']?.content[type], `${operation} ${type}`)
    }
  })
})

describe('the docs page', () => {
  it('is served without a key, names every path, parameter and error, and loads nothing from elsewhere', async () => {
    const home = await weir.call(`${weir.service.url}/`, { key: null })
    assert.equal(home.url, `${weir.service.url}/docs`, 'the home page leads to it')
    assert.match(home.headers.get('content-type') ?? '', /^text\/html/)
    assertDocsPage(await home.text(), document, Object.keys(errorTable))
  })

  it('has a strict policy, and shows the address by which it was reached', () => assertServedDocs(weir.service.url))
})
