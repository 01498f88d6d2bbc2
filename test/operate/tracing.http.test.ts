import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { allParameters, audioStage } from '../support/audio-stage.ts'
import { chatStage, roomyLimits } from '../support/chat-stage.ts'
import { scriptedEngine, type EngineCallSeen, type ScriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry, OPERATOR_TOKEN, startWeir, type TestWeir } from '../support/weir.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const CALLER_SPAN = '00f067aa0ba902b7'
const SAMPLED = { traceparent: `00-${TRACE}-${CALLER_SPAN}-01`, tracestate: 'vendor=1,other=2' }
const SERVER = 2
const CLIENT = 3
const ERROR = 2

/** A span as OTLP has it, with its attributes as an object. */
interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly status: { readonly code?: number }
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly events: readonly { readonly name: string }[]
  readonly attributes: Readonly<Record<string, unknown>>
}

interface OtlpBody {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly OtlpAttribute[] }
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<Span, 'attributes'> & { attributes: OtlpAttribute[] })[]
    }[]
  }[]
}

interface OtlpAttribute {
  readonly key: string
  readonly value: Readonly<Record<string, unknown>>
}

interface Collector {
  readonly url: string
  readonly spans: Span[]
  /** Everything received, as text. */
  text(): string
}

/** Receives spans by OTLP over HTTP. */
async function collector(t: TestContext): Promise<Collector> {
  const spans: Span[] = []
  const bodies: string[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      assert.equal(request.url, '/v1/traces')
      bodies.push(Buffer.concat(chunks).toString())
      const { resourceSpans } = JSON.parse(bodies.at(-1)!) as OtlpBody
      for (const span of resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans))) {
        const attributes = span.attributes.map(({ key, value }) => [key, Object.values(value)[0]])
        spans.push({ ...span, attributes: Object.fromEntries(attributes) as Span['attributes'] })
      }
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans, text: () => bodies.join('\n') }
}

/** Everything that is left is sent when a service stops. */
async function spansAfterStop(weir: TestWeir, { spans }: Collector): Promise<readonly Span[]> {
  await weir.stop()
  return spans
}

function named(spans: readonly Span[], name: string, kind?: number): Span {
  const found = spans.find((span) => span.name === name && (kind === undefined || span.kind === kind))
  assert.ok(found, `there is a span ${name} among ${spans.map((it) => it.name).join(', ')}`)
  return found
}

/** The parent span in the request to the engine. */
function parentSent({ headers }: Pick<EngineCallSeen, 'headers'>): { traceId: string; spanId: string; flags: string } {
  const [version, traceId = '', spanId = '', flags = ''] = String(headers['traceparent']).split('-')
  assert.equal(version, '00')
  return { traceId, spanId, flags }
}

describe('traces', () => {
  it('show a streamed chat from the caller over the queue and the engine to its settlement', async (t) => {
    const collected = await collector(t)
    const { weir, engine } = await chatStage(t, {
      script: { promptTokens: 10, cachedTokens: 4 },
      config: { tracing: { endpoint: collected.url } },
    })
    const question = 'What did the fox say to the heron?'
    const messages = [{ role: 'user', content: question }]
    const answer = await weir.chat(
      { stream: true, max_tokens: 50, messages },
      { headers: { 'content-type': 'application/json', ...SAMPLED } },
    )
    const text = await answer.text()
    const [call] = engine.calls
    assert.ok(call)
    const spans = await spansAfterStop(weir, collected)
    assert.deepEqual(spans.map(({ name }) => name).sort(), [
      'chat meta/test-8b',
      'chat meta/test-8b',
      'queue wait',
      'settlement',
    ])
    const server = named(spans, 'chat meta/test-8b', SERVER)
    const client = named(spans, 'chat meta/test-8b', CLIENT)
    const children = [client, named(spans, 'queue wait'), named(spans, 'settlement')]
    assert.deepEqual([server.traceId, server.parentSpanId], [TRACE, CALLER_SPAN])
    for (const child of children) {
      assert.deepEqual([child.traceId, child.parentSpanId], [TRACE, server.spanId], child.name)
      const begins = BigInt(child.startTimeUnixNano)
      assert.ok(begins <= BigInt(child.endTimeUnixNano), `${child.name} ends after it begins`)
      // The times of rows are whole milliseconds.
      assert.ok(begins >= BigInt(server.startTimeUnixNano) - 1_000_000n, `${child.name} begins within its parent`)
    }
    assert.deepEqual(parentSent(call), { traceId: TRACE, spanId: client.spanId, flags: '01' })
    assert.equal(call.headers['tracestate'], 'vendor=1,other=2')
    const requestId = answer.headers.get('x-request-id')
    assert.equal(call.headers['x-request-id'], requestId)
    assert.deepEqual(server.attributes, {
      'http.request.method': 'POST',
      'http.route': '/api/v1/chat/completions',
      'http.response.status_code': 200,
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'meta/test-8b',
      'gen_ai.request.max_tokens': 50,
      'gen_ai.response.model': 'meta/test-8b',
      'gen_ai.response.id': requestId,
      'gen_ai.usage.input_tokens': 10,
      'gen_ai.usage.cache_read.input_tokens': 4,
      'gen_ai.usage.output_tokens': 3,
      'weir.request.id': requestId,
      'weir.workspace': 'default',
      'weir.lane': 'meta/test-8b',
      'weir.outcome': 'completed',
    })
    assert.deepEqual(
      server.events.map(({ name }) => name),
      ['first token'],
    )
    assert.equal(client.attributes['server.address'], '127.0.0.1')
    assert.equal(client.attributes['http.response.status_code'], 200)
    const sent = collected.text()
    const words = [
      question,
      weir.key,
      ...[...text.matchAll(/"content":"([^"]+)"/g)].map(([, content]) => `"${content}"`),
    ]
    for (const word of words) assert.ok(!sent.includes(word), `nothing of the content is sent: ${word}`)
    assert.match(sent, /"service.name","value":{"stringValue":"weir"}/)
  })

  it('have a span for each attempt, with the error of the failed one', async (t) => {
    const collected = await collector(t)
    const [broken, sound] = await Promise.all([scriptedEngine(), scriptedEngine()])
    t.after(() => Promise.all([broken.close(), sound.close()]))
    broken.script = { refuse: { status: 500, body: {} } }
    const { weir } = await chatStage(t, {
      model: {
        serverless: {
          engine: { kind: 'openai', urls: [broken.url, sound.url], model: 'engine-name' },
          limits: roomyLimits,
        },
      },
      config: { tracing: { endpoint: collected.url } },
    })
    const calls = (): readonly EngineCallSeen[] => [...broken.calls, ...sound.calls]
    // The first address may be either.
    while (broken.calls.length === 0) await (await weir.chat({})).text()
    const spans = await spansAfterStop(weir, collected)
    const clients = spans.filter(({ kind }) => kind === CLIENT)
    assert.deepEqual(
      clients.map(({ spanId }) => spanId).sort(),
      calls()
        .map((call) => parentSent(call).spanId)
        .sort(),
    )
    const failed = clients.filter(({ status }) => status.code === ERROR)
    assert.deepEqual(
      failed.map(({ spanId, attributes }) => [spanId, attributes['error.type']]),
      broken.calls.map((call) => [parentSent(call).spanId, '500']),
    )
    const [{ parentSpanId } = { parentSpanId: '' }] = failed
    const server = spans.find(({ spanId }) => spanId === parentSpanId)
    assert.equal(server?.kind, SERVER)
    assert.equal(server?.status.code ?? 0, 0, 'the caller got its answer')
    assert.equal(clients.filter((it) => it.parentSpanId === parentSpanId).length, 2)
  })

  it('name the error of a request that failed or was refused', async (t) => {
    const collected = await collector(t)
    const { weir, engine } = await chatStage(t, { config: { tracing: { endpoint: collected.url } } })
    await (await weir.chat({ temperature: 9 })).text()
    await (await weir.chat({}, { key: 'weir_no' })).text()
    engine.script = { refuse: { status: 500, body: {} } }
    await (await weir.chat({})).text()
    const servers = (await spansAfterStop(weir, collected)).filter(({ kind }) => kind === SERVER)
    const facts = servers.map(({ name, status, attributes }) => [
      name,
      attributes['http.response.status_code'],
      attributes['error.type'],
      status.code ?? 0,
    ])
    assert.deepEqual(facts, [
      ['chat meta/test-8b', 400, 'invalid_value', 0],
      ['chat', 401, 'invalid_api_key', 0],
      ['chat meta/test-8b', 502, 'upstream_error', ERROR],
    ])
  })

  it('reach the engine of every JSON endpoint', async (t) => {
    const collected = await collector(t)
    const engine = await scriptedEngine()
    const { weir, cases } = await allEndpoints(t, engine, collected.url)
    for (const [path, body] of cases) {
      engine.calls.length = 0
      const answer = await weir.call(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...SAMPLED },
        body: JSON.stringify(body),
      })
      assert.equal(answer.status, 200, `${path}: ${await answer.text()}`)
      const [call] = engine.calls
      assert.ok(call, path)
      assert.equal(call.headers['x-request-id'], answer.headers.get('x-request-id'), path)
      const { traceId, flags } = parentSent(call)
      assert.deepEqual([traceId, flags], [TRACE, '01'], path)
      cases.set(path, { ...body, spanSent: parentSent(call).spanId })
    }
    const spans = await spansAfterStop(weir, collected)
    for (const [path, { spanSent }] of cases) {
      const server = spans.find((it) => it.kind === SERVER && it.attributes['http.route'] === `/api/v1${path}`)
      const client = spans.find(({ spanId }) => spanId === spanSent)
      assert.equal(client?.parentSpanId, server?.spanId, path)
      assert.equal(server?.parentSpanId, CALLER_SPAN, path)
      assert.match(server?.name ?? '', /^(chat|text_completion|embeddings|rerank|generate_content) \S+$/, path)
    }
  })

  it('reach the engine of an upload', async (t) => {
    const collected = await collector(t)
    const { weir, engine, send } = await audioStage(t, { config: { tracing: { endpoint: collected.url } } })
    const answer = await send({})
    assert.equal(answer.status, 200, await answer.text())
    const headers = engine.calls[0]!.headers as Record<string, string>
    const spans = await spansAfterStop(weir, collected)
    const server = named(spans, 'transcription openai/whisper-test', SERVER)
    const client = named(spans, 'transcription openai/whisper-test', CLIENT)
    assert.equal(server.parentSpanId ?? '', '', 'the caller has no trace')
    assert.deepEqual([client.parentSpanId, client.traceId], [server.spanId, server.traceId])
    assert.equal(parentSent({ headers }).spanId, client.spanId)
    assert.equal(headers['x-request-id'], answer.headers.get('x-request-id'))
  })

  it('reach an engine on a unix socket', async (t) => {
    const collected = await collector(t)
    const folder = mkdtempSync(join(tmpdir(), 'weir-traces-'))
    const engine = await scriptedEngine({ socketPath: join(folder, 'engine.sock') })
    t.after(async () => {
      await engine.close()
      rmSync(folder, { recursive: true })
    })
    const { weir } = await chatStage(t, {
      engine: { urls: [engine.url] },
      config: { tracing: { endpoint: collected.url } },
    })
    assert.equal((await weir.chat({})).status, 200)
    const client = named(await spansAfterStop(weir, collected), 'chat meta/test-8b', CLIENT)
    assert.equal(client.attributes['server.address'], engine.url)
    assert.equal(parentSent(engine.calls[0]!).spanId, client.spanId)
  })

  it('leave out what the caller or the setting does not sample, also from the metrics, and pass that decision on', async (t) => {
    const collected = await collector(t)
    const { weir, engine } = await chatStage(t, { config: { tracing: { endpoint: collected.url, sample: 0 } } })
    await (await weir.chat({})).text()
    const unsampled = { 'content-type': 'application/json', traceparent: `00-${TRACE}-${CALLER_SPAN}-00` }
    await (await weir.chat({}, { headers: unsampled })).text()
    await (await weir.chat({}, { headers: { 'content-type': 'application/json', ...SAMPLED } })).text()
    const scraped = await fetch(`${weir.adminUrl}/metrics`, {
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, accept: 'application/openmetrics-text; version=1.0.0' },
    })
    assert.equal(scraped.headers.get('content-type'), 'application/openmetrics-text; version=1.0.0; charset=utf-8')
    const exemplars = [...(await scraped.text()).matchAll(/^(\w+)_bucket.* (\d+) # \{trace_id="(\w+)"\}/gm)]
    assert.deepEqual([...new Set(exemplars.map(([, , , traceId]) => traceId))], [TRACE])
    assert.ok(exemplars.some(([, name]) => name === 'gen_ai_server_request_duration_seconds'))
    const spans = await spansAfterStop(weir, collected)
    assert.deepEqual(
      engine.calls.map((call) => parentSent(call).flags),
      ['00', '00', '01'],
    )
    assert.equal(parentSent(engine.calls[1]!).traceId, TRACE)
    assert.deepEqual([...new Set(spans.map(({ traceId }) => traceId))], [TRACE])
    assert.equal(spans.filter(({ kind }) => kind === SERVER).length, 1)
  })

  it('begin anew where the header of the caller is not valid', async (t) => {
    const collected = await collector(t)
    const { weir, engine } = await chatStage(t, { config: { tracing: { endpoint: collected.url } } })
    const wrong = [
      `ff-${TRACE}-${CALLER_SPAN}-01`,
      `00-${'0'.repeat(32)}-${CALLER_SPAN}-01`,
      `00-${TRACE}-${'0'.repeat(16)}-01`,
      `00-${TRACE.toUpperCase()}-${CALLER_SPAN}-01`,
      `00-${TRACE}-${CALLER_SPAN}-01-more`,
      'x'.repeat(5000),
    ]
    for (const traceparent of wrong) {
      await (await weir.chat({}, { headers: { 'content-type': 'application/json', traceparent } })).text()
    }
    assert.equal(engine.calls.length, wrong.length)
    for (const call of engine.calls) assert.notEqual(parentSent(call).traceId, TRACE)
    const spans = await spansAfterStop(weir, collected)
    for (const span of spans.filter(({ kind }) => kind === SERVER)) assert.equal(span.parentSpanId ?? '', '')
  })

  it('hold up neither requests nor a stop if the collector is away', async (t) => {
    const { weir } = await chatStage(t, { config: { tracing: { endpoint: 'http://127.0.0.1:9' } } })
    assert.equal((await weir.chat({})).status, 200)
    await weir.stop()
  })
})

describe('without a collector', () => {
  it('engines get the id of the request, and the trace of the caller as it is', async (t) => {
    const { weir, engine } = await chatStage(t, { config: {} })
    const first = await weir.chat({}, { headers: { 'content-type': 'application/json', ...SAMPLED } })
    await first.text()
    await (await weir.chat({})).text()
    await (
      await weir.chat({}, { headers: { 'content-type': 'application/json', tracestate: `a=${'x'.repeat(600)}` } })
    ).text()
    const seen = engine.calls.map(({ headers }) => [headers['traceparent'], headers['tracestate']])
    assert.deepEqual(seen, [
      [SAMPLED.traceparent, SAMPLED.tracestate],
      [undefined, undefined],
      [undefined, undefined],
    ])
    assert.equal(engine.calls[0]!.headers['x-request-id'], first.headers.get('x-request-id'))
  })
})

/** A service with a model for every JSON endpoint, and a request for each. */
async function allEndpoints(
  t: TestContext,
  engine: ScriptedEngine,
  endpoint: string,
): Promise<{ weir: TestWeir; cases: Map<string, Record<string, unknown>> }> {
  engine.script = (call) => {
    const { input, documents, passages } = call.body as Record<string, unknown[]>
    const answer =
      (input && { data: input.map((_, index) => ({ index, embedding: [0.5] })) }) ??
      (documents && { results: documents.map((_, index) => ({ index, relevance_score: 0.5 })) }) ??
      (passages && { rankings: passages.map((_, index) => ({ index, logit: 0 })) })
    return answer ? { handle: (_, response) => void response.end(JSON.stringify(answer)) } : {}
  }
  const entry = (id: string, category: string, kind = 'openai', changes: object = {}): object =>
    modelEntry([], {
      id,
      aliases: [],
      categories: [category],
      supported_parameters: allParameters,
      pricing: { input_per_million: '0.20', output_per_million: '0.60', per_image: '0.04' },
      serverless: { engine: { kind, urls: [engine.url], model: 'engine-name' }, limits: roomyLimits },
      ...changes,
    })
  const weir = await startWeir({
    tracing: { endpoint },
    models: [
      entry('test/chat', 'llm'),
      entry('test/embedder', 'embedding'),
      entry('test/reranker', 'reranker', 'openai', { rerank_schema: 'documents' }),
      entry('test/ranker', 'reranker', 'nim', { rerank_schema: 'passages' }),
      entry('test/painter', 'image'),
    ],
  })
  t.after(async () => {
    await weir.stop()
    await engine.close()
  })
  const messages = [{ role: 'user', content: 'Hi' }]
  const cases = new Map<string, Record<string, unknown>>([
    ['/chat/completions', { model: 'test/chat', messages }],
    ['/responses', { model: 'test/chat', input: 'Hi' }],
    ['/messages', { model: 'test/chat', messages, max_tokens: 10 }],
    ['/completions', { model: 'test/chat', prompt: 'Hi' }],
    ['/embeddings', { model: 'test/embedder', input: 'Hi' }],
    ['/rerank', { model: 'test/reranker', query: 'Hi', documents: ['a', 'b'] }],
    ['/reranking', { model: 'test/ranker', query: { text: 'Hi' }, passages: [{ text: 'a' }] }],
    ['/images/generations', { model: 'test/painter', prompt: 'Hi', response_format: 'b64_json' }],
  ])
  return { weir, cases }
}
