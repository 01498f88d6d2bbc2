import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Errors } from 'typebox/schema'
import { errorTable } from '../../src/shared/errors.ts'
import { chatLine } from '../support/batch-lines.ts'
import { sdkOf, submit } from '../support/batches.ts'
import { stageConfig } from '../support/chat-stage.ts'
import { copyToLastMonth, lastMonth, useLastMonth } from '../support/last-month.ts'
import {
  assertDocsPage,
  assertExamples,
  assertPlainSchemas,
  assertServedDocs,
  assertWellFormed,
  everyAdminRoute,
  operationsOf,
  resolved,
  undocumented,
  type ApiDocument,
  type DocumentedOperation,
} from '../support/openapi.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually } from '../support/waiting.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

/** The operator's API, as its own OpenAPI document describes it. */

let engine: ScriptedEngine
let weir: TestWeir
let document: ApiDocument
let requestId: string
let keyId: string
let sessionId: string
let replica: string
/** Of a batch that was cancelled. */
let batchId: string
/** Of an e-mail that could not be sent. */
let deliveryId: string

before(async () => {
  engine = await scriptedEngine()
  const seller = { name: 'Example Pty Ltd', abn: '51 824 753 556', address: '1 Lock Street' }
  const smtp = { host: '127.0.0.1', port: 9, from: 'invoices@example.com' }
  const alerts = { emails: [{ to: 'a@b.example', events: ['webhook.test'] }] }
  const config = stageConfig([engine.url], { config: { seller, smtp, alerts } }) as { models: object[] }
  const run = { command: ['none'], port: 9 }
  const onDemand = modelEntry([], { id: 'on/demand', aliases: [], serverless: { engine: { kind: 'vllm', run } } })
  weir = await startWeir({ ...config, models: [...config.models, onDemand] })
  const chat = await weir.chat({})
  await chat.text()
  requestId = chat.headers.get('x-request-id') ?? assert.fail('no request id')
  await copyToLastMonth(weir, 100)
  await useLastMonth(weir, 'buyer')
  const keys = (await (await weir.admin('GET', '/admin/v1/keys')).json()) as { data: { id: string }[] }
  keyId = keys.data[0]?.id ?? assert.fail('no key')
  await fetch(`${weir.adminUrl}/console/api/session`, {
    method: 'POST',
    headers: { 'x-weir-console': '1', 'content-type': 'application/json' },
    body: JSON.stringify({ token: weir.operatorToken }),
  })
  const sessions = (await (await weir.admin('GET', '/admin/v1/sessions')).json()) as { data: { id: string }[] }
  sessionId = sessions.data[0]?.id ?? assert.fail('no session')
  const lines = Array.from({ length: 500 }, (_, index) => chatLine(index))
  batchId = (await submit(sdkOf(weir), lines)).id
  await sdkOf(weir).batches.cancel(batchId)
  const replicas = (await (await weir.admin('GET', '/admin/v1/replicas')).json()) as { answered_by: string }
  replica = replicas.answered_by
  const tested = await weir.admin('POST', '/admin/v1/alerts/endpoints/mailto:a@b.example/test')
  deliveryId = ((await tested.json()) as { id: string }).id
  const log = async () => (await (await weir.admin('GET', '/admin/v1/alerts/deliveries')).json()) as DeliveryLog
  await eventually(
    'it was tried',
    async () => (await log()).data.every(({ last_error }) => last_error !== null),
    60_000,
  )
  document = (await (await fetch(`${weir.adminUrl}/admin/v1/openapi.json`)).json()) as ApiDocument
})
after(async () => {
  await weir.stop()
  await engine.close()
})

interface DeliveryLog {
  readonly data: readonly { readonly last_error: string | null }[]
}

interface Ask {
  /** `METHOD path`, as documented. */
  readonly operation: string
  /** The path to call, if it differs from the documented one. */
  readonly path?: () => string
  readonly body?: object
}

const month = { workspace: 'default', period: lastMonth.name }
const prices = '/admin/v1/workspaces/{workspace}/prices'

/** Requests that succeed, in an order in which they do: at least one for each operation. */
const everyAsk = (): readonly Ask[] => [
  { operation: 'get /healthz' },
  { operation: 'get /readyz' },
  { operation: 'post /admin/v1/workspaces', body: { name: 'acme' } },
  {
    operation: 'post /admin/v1/workspaces/{workspace}/console-links',
    path: () => '/admin/v1/workspaces/acme/console-links',
  },
  {
    operation: 'patch /admin/v1/workspaces/{workspace}',
    path: () => '/admin/v1/workspaces/acme',
    body: {
      requests_per_minute: 5,
      tokens_per_minute: 9000,
      spend_limit: '250.00',
      spend_limit_kind: 'soft',
      buyer: { name: 'Acme', abn: '51824753556', address: '1 Road', purchase_order: 'PO 7' },
    },
  },
  {
    operation: 'patch /admin/v1/workspaces/{workspace}',
    path: () => '/admin/v1/workspaces/acme',
    body: { requests_per_minute: null, spend_limit: null, buyer: { abn: null } },
  },
  { operation: 'get /admin/v1/workspaces' },
  { operation: 'get /admin/v1/workspaces/{workspace}', path: () => '/admin/v1/workspaces/acme' },
  { operation: 'post /admin/v1/keys', body: { workspace: 'acme' } },
  { operation: 'get /admin/v1/keys' },
  {
    operation: `put ${prices}/{model}`,
    path: () => '/admin/v1/workspaces/acme/prices/meta/test-8b',
    body: {
      input_per_million: '0.10',
      per_image: '0.04',
      image_prices: [{ size: '512x512', quality: 'hd', per_image: '0.01' }],
    },
  },
  { operation: `get ${prices}`, path: () => '/admin/v1/workspaces/acme/prices' },
  { operation: `delete ${prices}/{model}`, path: () => '/admin/v1/workspaces/acme/prices/meta%2Ftest-8b' },
  { operation: 'get /admin/v1/usage', path: () => '/admin/v1/usage?workspace=default' },
  { operation: 'get /admin/v1/usage', path: () => '/admin/v1/usage?group_by=workspace' },
  { operation: 'get /admin/v1/usage', path: () => '/admin/v1/usage?group_by=day&workspace=default' },
  { operation: 'get /admin/v1/usage/cache', path: () => '/admin/v1/usage/cache?workspace=default' },
  { operation: 'get /admin/v1/usage/refused', path: () => '/admin/v1/usage/refused?workspace=default' },
  { operation: 'get /admin/v1/usage/{request_id}', path: () => `/admin/v1/usage/${requestId}` },
  { operation: 'post /admin/v1/invoices/preview', body: month },
  { operation: 'get /admin/v1/invoices/drafts', path: () => `/admin/v1/invoices/drafts?period=${lastMonth.name}` },
  {
    operation: 'post /admin/v1/invoices/drafts/issue',
    body: { period: lastMonth.name, drafts: [{ workspace: 'default', preview_id: 'of another draft' }] },
  },
  { operation: 'post /admin/v1/invoices', body: month },
  { operation: 'post /admin/v1/invoices/credit', body: { ...month, reason: 'A test', requests: ['copy-1'] } },
  { operation: 'post /admin/v1/invoices/credit', body: { ...month, reason: 'A test', all: true } },
  { operation: 'post /admin/v1/invoices/revoke-links' },
  { operation: 'get /admin/v1/invoices' },
  { operation: 'get /admin/v1/invoices/{number}', path: () => '/admin/v1/invoices/ADJ-000002' },
  { operation: 'post /admin/v1/invoices', body: { ...month, workspace: 'buyer' } },
  {
    operation: 'patch /admin/v1/workspaces/{workspace}',
    path: () => '/admin/v1/workspaces/buyer',
    body: { buyer: { email: 'accounts@buyer.example' } },
  },
  {
    operation: 'post /admin/v1/invoices/{number}/email',
    path: () => '/admin/v1/invoices/INV-000002/email',
  },
  {
    operation: 'post /admin/v1/invoices/{number}/payments',
    path: () => '/admin/v1/invoices/INV-000002/payments',
    body: { paid_on: '2026-01-31', reference: 'A test', amount: '0.01' },
  },
  {
    operation: 'delete /admin/v1/invoices/{number}/payments/{payment}',
    path: () => '/admin/v1/invoices/INV-000002/payments/1',
  },
  {
    operation: 'post /admin/v1/usage/{request_id}/correct',
    path: () => `/admin/v1/usage/${requestId}/correct`,
    body: { reason: 'A test' },
  },
  // Now there is a correction among the rows.
  { operation: 'get /admin/v1/usage', path: () => '/admin/v1/usage?workspace=default&limit=10000' },
  { operation: 'get /admin/v1/reconcile' },
  { operation: 'post /admin/v1/accounts/reload' },
  { operation: 'post /admin/v1/catalog/reload' },
  { operation: 'get /metrics' },
  { operation: 'patch /admin/v1/keys/{id}', path: () => `/admin/v1/keys/${keyId}`, body: { name: 'website' } },
  { operation: 'delete /admin/v1/keys/{id}', path: () => `/admin/v1/keys/${keyId}` },
  { operation: 'get /admin/v1/batches' },
  { operation: 'get /admin/v1/batches/{id}', path: () => `/admin/v1/batches/${batchId}` },
  { operation: 'post /admin/v1/batches/{id}/cancel', path: () => `/admin/v1/batches/${batchId}/cancel` },
  { operation: 'get /admin/v1/sessions' },
  { operation: 'delete /admin/v1/sessions/{id}', path: () => `/admin/v1/sessions/${sessionId}` },
  { operation: 'post /admin/v1/engines/drain', body: { url: engine.url } },
  { operation: 'post /admin/v1/engines/orders', body: { lane: 'on/demand', order: 'pin' } },
  { operation: 'get /admin/v1/engines' },
  { operation: 'post /admin/v1/engines/undrain', body: { url: engine.url } },
  { operation: 'post /admin/v1/local-models/download', body: { model: 'weir/starter-vision' } },
  { operation: 'post /admin/v1/local-models/pause', body: { model: 'qwen/qwen3-8b' } },
  { operation: 'post /admin/v1/local-models/remove', body: { model: 'qwen/qwen3-8b' } },
  { operation: 'get /admin/v1/local-models' },
  { operation: 'get /admin/v1/models/{model}', path: () => '/admin/v1/models/meta/test-8b' },
  { operation: 'post /admin/v1/catalog/preview' },
  {
    operation: 'put /admin/v1/queues/{lane}',
    path: () => '/admin/v1/queues/meta/test-8b',
    body: { token_budget: 90_000, max_concurrent_requests: 8, max_queue_depth: 16, max_wait_ms: 5000 },
  },
  { operation: 'get /admin/v1/queues/{lane}', path: () => '/admin/v1/queues/meta/test-8b' },
  { operation: 'delete /admin/v1/queues/{lane}', path: () => '/admin/v1/queues/meta/test-8b' },
  { operation: 'get /admin/v1/queues' },
  {
    operation: 'post /admin/v1/queues/simulate',
    body: {
      lane: 'meta/test-8b',
      limits: { token_budget: 1000, max_concurrent_requests: 1, max_queue_depth: 1, max_wait_ms: 1000 },
      hours: 1,
    },
  },
  {
    operation: 'get /admin/v1/reports/usage',
    path: () => '/admin/v1/reports/usage?from=2026-11-01&to=2026-11-30',
  },
  {
    operation: 'get /admin/v1/reports/latency',
    path: () => '/admin/v1/reports/latency?from=2026-11-01&to=2026-11-30&model=meta/test-8b',
  },
  { operation: 'get /admin/v1/health' },
  { operation: 'get /admin/v1/requests', path: () => '/admin/v1/requests?workspace=default' },
  { operation: 'get /admin/v1/audit-log' },
  { operation: 'get /admin/v1/replicas' },
  // It still answers the operator.
  { operation: 'get /admin/v1/alerts/endpoints' },
  {
    operation: 'post /admin/v1/alerts/endpoints/{name}/test',
    path: () => '/admin/v1/alerts/endpoints/mailto:a@b.example/test',
  },
  { operation: 'get /admin/v1/alerts/deliveries' },
  {
    operation: 'post /admin/v1/alerts/deliveries/{id}/replay',
    path: () => `/admin/v1/alerts/deliveries/${deliveryId}/replay`,
  },
  { operation: 'post /admin/v1/replicas/{name}/drain', path: () => `/admin/v1/replicas/${replica}/drain` },
]

function documented(operation: string): [method: string, path: string, DocumentedOperation] {
  const [method = '', path = ''] = operation.split(' ')
  return [method, path, document.paths[path]?.[method] ?? assert.fail(`${operation} is not documented`)]
}

function send(method: string, path: string, body?: object | string, token: string | null = weir.operatorToken) {
  return fetch(weir.adminUrl + path, {
    method: method.toUpperCase(),
    headers: {
      'content-type': 'application/json',
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
}

describe('GET /admin/v1/openapi.json', () => {
  it('is an OpenAPI 3.1 document of the whole listener', () => {
    assertWellFormed(document)
    assertPlainSchemas(document)
    assert.deepEqual(document.servers, [{ url: '/' }])
  })

  it('documents every route except the documentation itself and what only the console calls', () => {
    const routes = everyAdminRoute().map(({ method, path }) => `${method} ${path.replace('+}', '}')}`)
    const listed = operationsOf(document).map(([method, path]) => `${method.toUpperCase()} ${path}`)
    assert.ok(listed.length > 20)
    const itself = [
      '/docs',
      '/docs/docs.css',
      '/docs/docs.js',
      '/theme/mark.svg',
      '/theme/scheme.js',
      '/admin/v1/openapi.json',
    ].map((path) => `GET ${path}`)
    const console = [
      '/console',
      '/console/{page}',
      '/console/assets/{file}',
      '/console/api/session',
      '/console/api/live',
      '/console/api/sign-in',
      '/console/api/sign-in/callback',
    ].map((path) => `GET ${path}`)
    const signing = ['POST /console/api/session', 'DELETE /console/api/session']
    assert.deepEqual([...listed, ...itself, ...console, ...signing].sort(), routes.sort())
  })

  it('has an example of every request and every answer', () => assertExamples(document, everyAdminRoute()))

  it('shows which operations need no token', () => {
    const open = operationsOf(document).filter(([, , { security }]) => security?.length === 0)
    assert.deepEqual(
      open.map(([, path]) => path),
      ['/healthz', '/readyz'],
    )
  })

  it('needs no token, and reveals nothing about this service', async () => {
    for (const path of ['/docs', '/admin/v1/openapi.json']) {
      const response = await send('get', path, undefined, null)
      assert.equal(response.status, 200)
      const text = await response.text()
      for (const secret of [weir.operatorToken, weir.key, keyId, weir.dataDir, engine.url, 'meta/test-8b']) {
        assert.ok(!text.includes(secret), secret)
      }
    }
  })
})

describe('a documented operation of the operator', () => {
  it('answers as documented: with its status, and every field has its type and there are no others', async () => {
    assert.deepEqual(
      [...new Set(everyAsk().map(({ operation }) => operation))].sort(),
      operationsOf(document)
        .map(([method, path]) => `${method} ${path}`)
        .sort(),
    )
    for (const { operation, path, body } of everyAsk()) {
      const [method, documentedPath, { responses, requestBody }] = documented(operation)
      const schema = requestBody?.content['application/json']?.schema
      assert.equal(schema !== undefined, body !== undefined, operation)
      if (schema) assert.deepEqual(Errors(schema, body), [true, []], operation)
      const response = await send(method, path?.() ?? documentedPath, body)
      const text = await response.text()
      const answer = responses[String(response.status)]
      assert.ok(response.ok && answer, `${operation} ${response.status} ${text}`)
      for (const name of Object.keys(answer.headers)) assert.ok(response.headers.has(name), `${operation} ${name}`)
      const type = response.headers.get('content-type')?.split(';')[0] ?? ''
      const answerSchema = answer.content[type]?.schema ?? assert.fail(`${operation} does not document ${type}`)
      if (type !== 'application/json') continue
      const value: unknown = JSON.parse(text)
      const [isValid, problems] = Errors(answerSchema, value)
      assert.ok(isValid, `${operation} ${JSON.stringify(problems)}`)
      assert.deepEqual(undocumented(answerSchema, value), [], operation)
    }
  })

  it('sends every content type that it documents', async () => {
    const others: readonly (Ask & { readonly type: string })[] = [
      {
        operation: 'get /admin/v1/usage',
        path: () => '/admin/v1/usage?workspace=default&format=csv',
        type: 'text/csv',
      },
      {
        operation: 'get /admin/v1/usage',
        path: () => '/admin/v1/usage?workspace=default&format=jsonl',
        type: 'application/x-ndjson',
      },
      ...(['html', 'pdf'] as const).flatMap((format) => {
        const type = format === 'html' ? 'text/html' : 'application/pdf'
        return [
          {
            operation: 'post /admin/v1/invoices/preview',
            path: () => `/admin/v1/invoices/preview?format=${format}`,
            body: month,
            type,
          },
          {
            operation: 'get /admin/v1/invoices/{number}',
            path: () => `/admin/v1/invoices/INV-000001?format=${format}`,
            type,
          },
        ]
      }),
    ]
    for (const { operation, path, body, type } of others) {
      const [method, documentedPath, { responses }] = documented(operation)
      const response = await send(method, path?.() ?? documentedPath, body)
      await response.arrayBuffer()
      assert.equal(response.headers.get('content-type')?.split(';')[0], type)
      assert.ok(responses['200']?.content[type], `${operation} ${type}`)
    }
    const listed = operationsOf(document).flatMap(([method, path, { responses }]) =>
      Object.keys(responses['200']?.content ?? {})
        .filter((type) => type !== 'application/json')
        .map((type) => `${method} ${path} ${type}`),
    )
    const sent = others.map(({ operation, type }) => `${operation} ${type}`)
    assert.deepEqual(
      listed.sort(),
      ['get /metrics application/openmetrics-text', 'get /metrics text/plain', ...sent].sort(),
    )
  })

  it('refuses as documented: with a listed status and code, and the one error format', async () => {
    for (const { operation, path, body } of everyAsk()) {
      const [method, documentedPath, { security, responses }] = documented(operation)
      if (security?.length === 0) continue
      const target = path?.() ?? documentedPath
      const wrongTypes = Object.fromEntries(Object.keys(body ?? {}).map((name) => [name, 0.5]))
      const refusals: [status: number, answer: () => Promise<Response>][] = [
        [401, () => send(method, target, body, null)],
        [401, () => send(method, target, body, 'wrong')],
      ]
      if (body) {
        refusals.push(
          [400, () => send(method, target, '{')],
          [400, () => send(method, target, wrongTypes)],
          [413, () => send(method, target, { more: 'x'.repeat(2 ** 20) })],
        )
        // An empty price list is fine: every price stays at the list price.
        if (!operation.startsWith('put ')) refusals.push([400, () => send(method, target, {})])
      }
      for (const [status, ask] of refusals) {
        const response = await ask()
        const error = (await response.json()) as { error: { code: keyof typeof errorTable } }
        assert.equal(response.status, status, `${operation} ${JSON.stringify(error)}`)
        const answer = responses[String(status)] ?? assert.fail(`${operation} does not document ${status}`)
        assert.ok(answer.description.split(', ').includes(error.error.code), `${operation} ${error.error.code}`)
        const schema = resolved(document, answer.content['application/json']?.schema ?? {})
        assert.deepEqual(Errors(schema, error), [true, []])
      }
    }
  })

  it('checks its query against the documented parameters', async () => {
    const wrong: readonly [path: string, param: string][] = [
      ['/admin/v1/usage?workspace=default&format=xml', 'format'],
      ['/admin/v1/usage?group_by=colour', 'group_by'],
      ['/admin/v1/usage?workspace=default&limit=0', 'limit'],
      ['/admin/v1/invoices/INV-000001?format=docx', 'format'],
    ]
    for (const [path, param] of wrong) {
      const response = await send('get', path)
      const { error } = (await response.json()) as { error: { code: string; param: string } }
      assert.deepEqual([response.status, error.code, error.param], [400, 'invalid_value', param], path)
    }
  })
})

describe("the docs page of the operator's API", () => {
  it('names every path, parameter and error, and loads nothing from elsewhere', async () => {
    const response = await send('get', '/docs', undefined, null)
    assert.match(response.headers.get('content-type') ?? '', /^text\/html/)
    assertDocsPage(await response.text(), document, Object.keys(errorTable))
  })

  it('has a strict policy, and shows the address by which it was reached', () => assertServedDocs(weir.adminUrl))
})
