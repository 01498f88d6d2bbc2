import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { allParameters, clip } from '../support/audio-stage.ts'
import { roomyLimits } from '../support/chat-stage.ts'
import { scriptedEngine, type EngineCallSeen, type Script } from '../support/scripted-engine.ts'
import { speechEngine, transcription } from '../support/speech-engine.ts'
import { ERROR, kinds, parentSent, spansAfterStop, traceCollector } from '../support/trace-collector.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const CALLER_SPAN = '00f067aa0ba902b7'

/** A request of a caller, and the operation that its spans are named for. */
interface Case {
  readonly path: string
  readonly model: string
  readonly operation: string
  /** undefined: it uploads a recording. */
  readonly body?: object
}

const messages = [{ role: 'user', content: 'Hi' }]
const generations: readonly (Case & { readonly body: object })[] = [
  { path: '/chat/completions', model: 'test/chat', operation: 'chat', body: { messages } },
  { path: '/responses', model: 'test/chat', operation: 'chat', body: { input: 'Hi' } },
  { path: '/messages', model: 'test/chat', operation: 'chat', body: { messages, max_tokens: 10 } },
  { path: '/completions', model: 'test/chat', operation: 'text_completion', body: { prompt: 'Hi' } },
]
const reranked = { query: { text: 'Hi' }, passages: [{ text: 'a' }] }
const painted = { prompt: 'Hi', response_format: 'b64_json' }
const cases: readonly Case[] = [
  ...generations,
  ...generations.map((it) => ({ ...it, body: { ...it.body, stream: true } })),
  { path: '/embeddings', model: 'test/embedder', operation: 'embeddings', body: { input: 'Hi' } },
  { path: '/rerank', model: 'test/reranker', operation: 'rerank', body: { query: 'Hi', documents: ['a', 'b'] } },
  { path: '/reranking', model: 'test/ranker', operation: 'rerank', body: reranked },
  { path: '/images/generations', model: 'test/painter', operation: 'generate_content', body: painted },
  { path: '/audio/transcriptions', model: 'test/listener', operation: 'transcription' },
  { path: '/audio/translations', model: 'test/listener', operation: 'translation' },
]

/** A service with a model for every endpoint, each with two addresses. The first call of every request fails. */
async function stage(t: TestContext, endpoint: string) {
  const [engines, speakers] = await Promise.all([
    Promise.all([scriptedEngine(), scriptedEngine()]),
    Promise.all([speechEngine(), speechEngine()]),
  ])
  const seen: Pick<EngineCallSeen, 'headers'>[] = []
  const isFirst = (call: Pick<EngineCallSeen, 'headers'>): boolean => {
    seen.push(call)
    return seen.filter((it) => it.headers['x-request-id'] === call.headers['x-request-id']).length === 1
  }
  for (const engine of engines) {
    engine.script = (call) => (isFirst(call) ? { refuse: { status: 500, body: {} } } : answerTo(call))
  }
  for (const speaker of speakers) {
    speaker.answer = (call) => (isFirst(call) ? { status: 500, body: {} } : { body: transcription })
  }
  const model = (id: string, category: string, changes: object = {}, kind = 'openai'): object => {
    const urls = (category === 'audio' ? speakers : engines).map(({ url }) => url)
    return modelEntry([], {
      id,
      aliases: [],
      categories: [category],
      supported_parameters: allParameters,
      serverless: { engine: { kind, urls, model: 'engine-name' }, limits: roomyLimits },
      ...changes,
    })
  }
  const weir = await startWeir({
    tracing: { endpoint },
    models: [
      model('test/chat', 'llm'),
      model('test/embedder', 'embedding'),
      model('test/reranker', 'reranker', { rerank_schema: 'documents' }),
      model('test/ranker', 'reranker', { rerank_schema: 'passages' }, 'nim'),
      model('test/painter', 'image', { pricing: { per_image: '0.04' } }),
      model('test/listener', 'audio', { pricing: { per_audio_minute: '0.006' } }),
    ],
  })
  t.after(async () => {
    await weir.stop()
    for (const it of [...engines, ...speakers]) await it.close()
  })
  return { weir, seen }
}

function answerTo(call: EngineCallSeen): Script {
  const { input, documents, passages: ranked } = call.body as Record<string, unknown[]>
  const answer =
    (input && { data: input.map((_, index) => ({ index, embedding: [0.5] })) }) ??
    (documents && { results: documents.map((_, index) => ({ index, relevance_score: 0.5 })) }) ??
    (ranked && { rankings: ranked.map((_, index) => ({ index, logit: 0 })) })
  return answer ? { handle: (_, response) => void response.end(JSON.stringify(answer)) } : {}
}

function send(weir: TestWeir, { path, model, body }: Case): Promise<Response> {
  const traceparent = `00-${TRACE}-${CALLER_SPAN}-01`
  if (body) {
    const headers = { traceparent, 'content-type': 'application/json' }
    return weir.call(path, { method: 'POST', headers, body: JSON.stringify({ model, ...body }) })
  }
  const form = new FormData()
  form.append('model', model)
  form.append('file', new Blob([new Uint8Array(clip('plain.wav'))]), 'recording.wav')
  return weir.call(path, { method: 'POST', headers: { traceparent }, body: form })
}

describe('the trace of a request', () => {
  it('leads from the caller to both calls of an engine, on every endpoint, whole and streamed', async (t) => {
    const collected = await traceCollector(t)
    const { weir, seen } = await stage(t, collected.url)
    const ids: string[] = []
    for (const it of cases) {
      const answer = await send(weir, it)
      assert.equal(answer.status, 200, `${it.path}: ${await answer.text()}`)
      ids.push(answer.headers.get('x-request-id') ?? '')
    }
    const spans = await spansAfterStop(weir, collected)
    for (const [index, { path, model, operation }] of cases.entries()) {
      const server = spans.find(({ attributes }) => attributes['weir.request.id'] === ids[index])
      assert.equal(server?.attributes['http.route'], `/api/v1${path}`)
      assert.deepEqual([server.kind, server.traceId, server.parentSpanId], [kinds.SERVER, TRACE, CALLER_SPAN], path)
      assert.equal(server.status.code ?? 0, 0, `${path}: the caller got its answer`)
      const children = spans.filter(({ parentSpanId }) => parentSpanId === server.spanId)
      const calls = children.filter(({ kind }) => kind === kinds.CLIENT)
      assert.deepEqual(new Set([server, ...calls].map(({ name }) => name)), new Set([`${operation} ${model}`]))
      const sent = seen.filter(({ headers }) => headers['x-request-id'] === ids[index]).map(parentSent)
      assert.deepEqual(
        sent,
        calls.map(({ spanId }) => ({ traceId: TRACE, spanId, flags: '01' })),
        path,
      )
      assert.deepEqual(
        calls.map(({ status, attributes }) => [status.code ?? 0, attributes['error.type']]),
        [
          [ERROR, '500'],
          [0, undefined],
        ],
        path,
      )
      assert.deepEqual(
        children
          .map(({ name }) => name)
          .filter((name) => !name.startsWith(operation))
          .toSorted(),
        ['queue wait', 'settlement'],
      )
    }
  })
})
