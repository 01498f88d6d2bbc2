import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { chatStage } from '../support/chat-stage.ts'
import { ERROR, kinds, named, parentSent, spansAfterStop, traceCollector } from '../support/trace-collector.ts'
import { gate } from '../support/waiting.ts'
import { scriptedEngine } from '../support/scripted-engine.ts'
import { OPERATOR_TOKEN } from '../support/weir.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const CALLER_SPAN = '00f067aa0ba902b7'
const SAMPLED = { traceparent: `00-${TRACE}-${CALLER_SPAN}-01`, tracestate: 'vendor=1,other=2' }
const { SERVER, CLIENT } = kinds

describe('traces', () => {
  it('show a streamed chat from the caller over the queue and the engine to its settlement', async (t) => {
    const collected = await traceCollector(t)
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

  it('are whole if the caller leaves in the middle of a stream', async (t) => {
    const collected = await traceCollector(t)
    const go = gate()
    const { weir, engine } = await chatStage(t, {
      script: { hold: { afterTokens: 1, until: go.opened } },
      config: { tracing: { endpoint: collected.url } },
    })
    const caller = new AbortController()
    const answer = await weir.chat({ stream: true }, { signal: caller.signal })
    await answer.body?.getReader().read()
    caller.abort()
    await engine.left(1)
    go.open()
    const spans = await spansAfterStop(weir, collected)
    const server = named(spans, 'chat meta/test-8b', SERVER)
    assert.equal(server.attributes['weir.outcome'], 'caller_left')
    const children = spans.filter(({ parentSpanId }) => parentSpanId === server.spanId)
    assert.deepEqual(children.map(({ name }) => name).sort(), ['chat meta/test-8b', 'queue wait', 'settlement'])
    // Weir has ended the call, so it is no error of the engine.
    assert.equal(named(spans, 'chat meta/test-8b', CLIENT).status.code ?? 0, 0)
  })

  it('name the error of a request that failed or was refused', async (t) => {
    const collected = await traceCollector(t)
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

  it('reach an engine on a unix socket', async (t) => {
    const collected = await traceCollector(t)
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
    const collected = await traceCollector(t)
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
    const collected = await traceCollector(t)
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
