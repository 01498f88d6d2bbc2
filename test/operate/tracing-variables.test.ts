import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { it } from 'node:test'
import { ExportResultCode } from '@opentelemetry/core'
import { openTracing } from '../../src/operate/telemetry/tracing.ts'
import type { Exchange } from '../../src/server/exchange.ts'
import { sampleRow } from '../support/ledger-samples.ts'

/** A request that was refused, as far as traces look at it. */
const exchange = {
  requestId: 'req_1',
  method: 'POST',
  request: { headers: {} },
  notes: {},
  status: 401,
} as unknown as Exchange

it('a trace knows its row until its request is over', async () => {
  const tracing = openTracing(
    { url: '', sampler: 'always_on', share: 1 },
    { version: '1', instance: 'one', engineKind: () => undefined, failed: assert.fail },
    { export: (_spans, done) => done({ code: ExportResultCode.SUCCESS }), shutdown: async () => {} },
  )
  const row = sampleRow(exchange.requestId)
  assert.equal(tracing.settled(row), undefined, 'it has not begun')
  tracing.begin(exchange, '/api/v1/chat/completions')
  assert.match(tracing.settled(row) ?? '', /^[0-9a-f]{32}$/)
  tracing.over(exchange)
  assert.equal(tracing.settled(row), undefined)
  await tracing.close()
})

it("OpenTelemetry's variables give the headers of the exporter and the names of the service", async (t) => {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const received = once(server, 'request').then(async ([request, response]) => {
    const { headers } = request as IncomingMessage
    const body = await text(request as IncomingMessage)
    ;(response as { end(body: string): void }).end('{}')
    return { headers, body }
  })
  const variables = {
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20of-the-test,x-tenant=7',
    OTEL_SERVICE_NAME: 'weir-sydney',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=staging',
  }
  Object.assign(process.env, variables)
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`
  const tracing = openTracing(
    { url, sampler: 'always_on', share: 1 },
    { version: '1', instance: 'one', engineKind: () => undefined, failed: assert.fail },
  )
  for (const name of Object.keys(variables)) delete process.env[name]
  tracing.begin(exchange, '/api/v1/chat/completions')
  tracing.over(exchange)
  await tracing.close()
  const { headers, body } = await received
  assert.deepEqual([headers['authorization'], headers['x-tenant']], ['Bearer of-the-test', '7'])
  const { resourceSpans } = JSON.parse(body) as {
    readonly resourceSpans: readonly {
      readonly resource: { readonly attributes: readonly { key: string; value: { stringValue: string } }[] }
    }[]
  }
  const attributes = resourceSpans[0]?.resource.attributes.map(({ key, value }) => [key, value.stringValue])
  assert.deepEqual(Object.fromEntries(attributes ?? []), {
    'service.name': 'weir-sydney',
    'service.version': '1',
    'service.instance.id': 'one',
    'deployment.environment.name': 'staging',
  })
})
