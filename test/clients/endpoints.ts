import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, before, beforeEach, type TestContext } from 'node:test'
import { roomyLimits } from '../support/chat-stage.ts'
import { scriptedEngine, type EngineCallSeen, type Script, type ScriptedEngine } from '../support/scripted-engine.ts'
import { speechEngine, type SpeechEngine } from '../support/speech-engine.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

/** The real service with a model for every endpoint, and the engines behind them. */
export interface Endpoints {
  readonly weir: TestWeir
  /** Serves every model except the audio model. */
  readonly engine: ScriptedEngine
  readonly speech: SpeechEngine
}

export const slugs = {
  chat: 'meta/test-8b',
  seeing: 'meta/test-vision',
  embedding: 'baai/test-embed',
  documents: 'baai/test-rerank',
  passages: 'nvidia/test-ranking',
  images: 'sd/test-images',
  audio: 'openai/test-whisper',
} as const

/** Started once for a test file, and reset before each test. */
export function endpoints(): Endpoints {
  let scene: Endpoints | undefined
  const closers: (() => Promise<void>)[] = []
  before(async () => {
    scene = await open((close) => closers.push(close))
  })
  after(async () => {
    for (const close of closers.toReversed()) await close()
  })
  beforeEach(() => {
    if (!scene) return
    scene.engine.script = normal
    scene.engine.calls.length = 0
    scene.speech.calls.length = 0
  })
  const ready = (): Endpoints => scene ?? assert.fail('the service is not up')
  return {
    get weir() {
      return ready().weir
    },
    get engine() {
      return ready().engine
    },
    get speech() {
      return ready().speech
    },
  }
}

/** The same for a single test, so that it can run concurrently with others. */
export function ownEndpoints(t: TestContext): Promise<Endpoints> {
  return open((close) => t.after(close))
}

async function open(whenOver: (close: () => Promise<void>) => void): Promise<Endpoints> {
  const engine = await scriptedEngine()
  whenOver(() => engine.close())
  const speech = await speechEngine()
  whenOver(() => speech.close())
  const model = (id: string, categories: readonly string[], changes: object = {}, kind = 'openai', at = engine.url) =>
    modelEntry([], {
      id,
      aliases: [id.slice(id.indexOf('/') + 1)],
      categories,
      serverless: { engine: { kind, urls: [at], model: 'engine-name' }, limits: roomyLimits },
      ...changes,
    })
  const speechParameters = ['language', 'prompt', 'response_format', 'temperature', 'timestamp_granularities']
  const audioModel = { supported_parameters: speechParameters, pricing: { per_audio_minute: '0.006' } }
  const imageModel = { supported_parameters: ['seed', 'quality', 'style'], pricing: { per_image: '0.04' } }
  engine.script = normal
  const weir = await startWeir({
    server: { port: 0, admin_port: 0, drain_ms: 500 },
    rate_limit: { requests_per_minute: 100_000 },
    files: { kind: 'local' },
    models: [
      model(slugs.chat, ['llm']),
      model(slugs.seeing, ['llm', 'vision']),
      model(slugs.embedding, ['embedding'], { supported_parameters: ['dimensions'] }),
      model(slugs.documents, ['reranker'], { rerank_schema: 'documents' }),
      model(slugs.passages, ['reranker'], { rerank_schema: 'passages' }, 'nim'),
      model(slugs.images, ['image'], imageModel),
      model(slugs.audio, ['audio'], audioModel, 'openai', speech.url),
    ],
  })
  whenOver(() => weir.stop())
  return { weir, engine, speech }
}

/** Makes the engine fail its first call with this status. */
export function failOnce({ engine }: Endpoints, status: number): void {
  engine.script = (call) => (engine.calls.length === 1 ? { refuse: { status, body: {} } } : normal(call))
}

/** A normal answer for each endpoint, in the format of common servers. */
function normal(call: EngineCallSeen): Script {
  const answers: Readonly<Record<string, (call: EngineCallSeen, response: ServerResponse) => void>> = {
    '/v1/completions': completion,
    '/v1/embeddings': embeddings,
    '/v1/rerank': rerank,
    '/v1/ranking': ranking,
  }
  const handle = answers[call.path]
  return handle ? { handle } : {}
}

function json(response: ServerResponse, body: object): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function completion({ body }: EngineCallSeen, response: ServerResponse): void {
  const usage = { prompt_tokens: 4, completion_tokens: 3, total_tokens: 7 }
  if (body['stream'] !== true) {
    json(response, { choices: [{ index: 0, text: ' a river through', finish_reason: 'length' }], usage })
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const send = (chunk: object): void => void response.write(`data: ${JSON.stringify(chunk)}\n\n`)
  for (const text of [' a', ' river', ' through']) send({ choices: [{ index: 0, text, finish_reason: null }] })
  send({ choices: [{ index: 0, text: '', finish_reason: 'length' }] })
  send({ choices: [], usage })
  response.end('data: [DONE]\n\n')
}

/** The vector of the text at this position. Its numbers are exact in float32. */
export function vectorOf(index: number): number[] {
  return [index + 0.5, -1, 0.25]
}

function embeddings({ body }: EngineCallSeen, response: ServerResponse): void {
  const texts = [body['input']].flat()
  const data = texts.map((_, index) => ({
    index,
    embedding:
      body['encoding_format'] === 'base64'
        ? Buffer.from(new Float32Array(vectorOf(index)).buffer).toString('base64')
        : vectorOf(index),
  }))
  json(response, { data, usage: { prompt_tokens: 2 * texts.length } })
}

/** A query, its documents, and the expected ranking, best first. */
export const ranked = {
  query: 'What is a weir?',
  documents: ['A city in Tasmania.', 'A low dam across a river.', 'A kind of fish trap.'],
  results: [
    { index: 1, score: 0.875 },
    { index: 2, score: 0.5 },
    { index: 0, score: 0.125 },
  ],
} as const

function rerank({ body }: EngineCallSeen, response: ServerResponse): void {
  assert.deepEqual(body['documents'], ranked.documents)
  const results = ranked.results.map(({ index, score }) => ({ index, relevance_score: score }))
  json(response, { results, usage: { prompt_tokens: 30, total_tokens: 30 } })
}

function ranking({ body }: EngineCallSeen, response: ServerResponse): void {
  assert.equal((body['passages'] as unknown[]).length, ranked.documents.length)
  json(response, {
    rankings: [
      { index: 1, logit: 4.5 },
      { index: 2, logit: 0 },
      { index: 0, logit: -6.25 },
    ],
    usage: { prompt_tokens: 30, total_tokens: 30 },
  })
}

export async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const list: Item[] = []
  for await (const item of items) list.push(item)
  return list
}

/** The reason that the promise rejects with. */
export async function reasonOf(attempt: PromiseLike<unknown>): Promise<unknown> {
  return Promise.resolve(attempt).then(
    () => assert.fail('the call should have failed'),
    (reason: unknown) => reason,
  )
}

/** An engine that stops answering after this many tokens. */
export function holding(afterTokens = 0): Script {
  return { hold: { afterTokens, until: new Promise<void>(() => {}) } }
}
