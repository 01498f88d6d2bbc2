import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { parseCatalog } from '../../src/catalog/file.ts'
import { engineKinds, type EngineKind } from '../../src/catalog/model.ts'
import type { Dialect, GenerationDialect } from '../../src/engines/dialects/dialect.ts'
import { engineQuestions } from '../../src/engines/dialects/engine-questions.ts'
import { dialects } from '../../src/engines/dialects/index.ts'
import { untakenParameters, untakenWarning } from '../../src/engines/dialects/listed-parameters.ts'
import { supportFor, type EngineOperation } from '../../src/engines/dialects/parameter-support.ts'
import { tokenCount } from '../../src/engines/dialects/reading.ts'
import { withoutCounts } from '../../src/engines/dialects/without-counts.ts'

/** What each kind of server is sent, as it was compared with the real servers. A change here is a change on the wire. */
const wire = JSON.parse(
  readFileSync(new URL('../fixtures/dialect-requests/by-kind.json', import.meta.url), 'utf8'),
) as Readonly<Record<EngineKind, object>>

const operations: readonly EngineOperation[] = ['chat', 'completions', 'embeddings', 'ranking', 'images', 'speech']

function wireOf(kind: EngineKind): object {
  const { chat, completions, embeddings, ranking, images, speech }: Dialect = dialects[kind]
  const generated = ({ usageOf, ...plain }: GenerationDialect) => ({
    ...plain,
    readsUsageElsewhere: usageOf !== undefined,
  })
  const texts = { model: 'm', texts: ['a'], dimensions: undefined, base64: true }
  const documents = { model: 'm', query: 'q', documents: ['d'], truncate: true, maxTokensPerDocument: undefined }
  const recording = { model: 'm', task: 'transcribe', language: undefined, prompt: undefined } as const
  const plainSpeech = { ...recording, temperature: undefined, words: false, textOnly: false }
  const spoken = { language: 'en', prompt: 'p', temperature: 0.5, words: true }
  const picture = { model: 'm', prompt: 'p|q', count: 2, size: undefined, parameters: {} }
  const parameters = { seed: 1, steps: 2, negative_prompt: 'n|o', quality: 'hd' }
  const described = {
    chat: chat && generated(chat),
    completions: completions && generated(completions),
    embeddings: embeddings && {
      batchSize: embeddings.batchSize,
      requests: [embeddings.request(texts), embeddings.request({ ...texts, dimensions: 8, base64: false })],
    },
    ranking: ranking && {
      scale: ranking.scale,
      cutsDocuments: ranking.cutsDocuments ?? false,
      batchSize: ranking.batchSize,
      requests: [
        ranking.request(documents),
        ranking.request({ ...documents, truncate: false, maxTokensPerDocument: 9 }),
      ],
    },
    images: images && {
      batchSize: images.batchSize,
      requests: [images.request(picture), images.request({ ...picture, size: '8x8', parameters })],
    },
    speech: speech && {
      transcribesOnly: speech.transcribesOnly ?? false,
      refusesSegments: ['no response_format', 'no such file'].map((text) => speech.refusesSegments(text)),
      requests: [
        speech.request(plainSpeech),
        speech.request({ ...plainSpeech, ...spoken }),
        speech.request({ ...plainSpeech, ...spoken, task: 'translate' }),
        speech.request({ ...plainSpeech, ...spoken, textOnly: true }),
      ],
    },
    parameters: Object.fromEntries(operations.map((it) => [it, supportFor(kind, it)])),
  }
  return JSON.parse(JSON.stringify(described)) as object
}

describe('the request to an engine', () => {
  for (const kind of engineKinds) {
    it(`is what its server accepts: ${kind}`, () => assert.deepEqual(wireOf(kind), wire[kind]))
  }
})

describe('the answer of an engine', () => {
  const headers = {}

  it('has vectors in the order of the texts, whatever order they arrive in', () => {
    const read = dialects.openai.embeddings!.response
    const data = [
      { index: 1, embedding: [2] },
      { index: 0, embedding: 'AAAA' },
    ]
    assert.deepEqual(read({ data, usage: { prompt_tokens: 3 } }, headers), { vectors: ['AAAA', [2]], inputTokens: 3 })
    assert.deepEqual(read({ data: [{ embedding: [1] }, { embedding: [2] }] }, headers)?.vectors, [[1], [2]])
    assert.equal(read({ data: [{ embedding: 5 }] }, headers), undefined)
    assert.equal(read({}, headers), undefined)
  })

  it('has the tokens of text-embeddings-inference in a header', () => {
    const { embeddings, ranking } = dialects.tei
    const counted = { 'x-compute-tokens': '12' }
    assert.deepEqual(embeddings?.response([[1], [2]], counted), { vectors: [[1], [2]], inputTokens: 12 })
    for (const wrong of [{}, { 'x-compute-tokens': '1x' }, { 'x-compute-tokens': ['12'] }]) {
      assert.equal(embeddings?.response([[1]], wrong)?.inputTokens, undefined)
    }
    assert.equal(embeddings?.response([1], counted), undefined)
    const scores = [{ index: 0, score: -1 }]
    assert.deepEqual(ranking?.response(scores, counted), { scores, inputTokens: 12 })
  })

  it('has scores by index, or is invalid', () => {
    const read = dialects.openai.ranking!.response
    const results = [{ index: 2, relevance_score: 0.5 }]
    assert.deepEqual(read({ results, usage: { total_tokens: 4 } }, headers), {
      scores: [{ index: 2, score: 0.5 }],
      inputTokens: 4,
    })
    for (const wrong of [{ index: -1, relevance_score: 1 }, { index: 0 }, { relevance_score: 1 }, 7]) {
      assert.equal(read({ results: [wrong] }, headers), undefined)
    }
    assert.equal(read({}, headers), undefined)
    const data = [{ index: 0, relevance_score: 1, score: 2 }]
    assert.deepEqual(dialects.infinity.ranking?.response({ data }, headers)?.scores, [{ index: 0, score: 1 }])
    assert.deepEqual(dialects.vllm.ranking?.response({ data }, headers)?.scores, [{ index: 0, score: 2 }])
    const rankings = [{ index: 0, logit: 3 }]
    assert.deepEqual(dialects.nim.ranking?.response({ rankings }, headers)?.scores, [{ index: 0, score: 3 }])
    const localai = dialects.localai.ranking?.response({ results, usage: { total_tokens: 4 } }, headers)
    assert.equal(localai?.inputTokens, undefined, 'it counts words')
  })

  it('of SGLang has logits if it counts the tokens of each pair, and probabilities if not', () => {
    const read = dialects.sglang.ranking!.response
    const pair = (index: number, tokens?: number) => ({ index, score: 1, meta_info: { prompt_tokens: tokens } })
    const counted = read([pair(0, 3), pair(1, 4)], headers)
    assert.deepEqual([counted?.inputTokens, counted?.scale], [7, 'logit'])
    const uncounted = read([pair(0, 3), pair(1)], headers)
    assert.deepEqual([uncounted?.inputTokens, uncounted?.scale], [undefined, 'probability'])
    assert.equal(read({}, headers), undefined)
  })

  it('of vLLM without ranking is replaced by scores', () => {
    const input = { model: 'm', query: 'q', documents: ['d'], truncate: false, maxTokensPerDocument: undefined }
    for (const status of ['status 404', 'status 405']) {
      assert.deepEqual(dialects.vllm.ranking?.fallback?.(input, status), {
        path: '/score',
        body: { model: 'm', text_1: 'q', text_2: ['d'] },
      })
    }
    assert.equal(dialects.vllm.ranking?.fallback?.(input, 'status 400'), undefined)
  })

  it('of llama.cpp has its cache in the timings, in every event', () => {
    const usageOf = dialects.llamacpp.chat!.usageOf!
    const usage = { prompt_tokens: 9, completion_tokens: 2 }
    assert.deepEqual(usageOf({ usage }), usage)
    const details = (cached: number) => ({ prompt_tokens_details: { cached_tokens: cached } })
    assert.deepEqual(usageOf({ usage, timings: {} }), { ...details(0), ...usage })
    assert.deepEqual(usageOf({ usage, timings: { cache_n: 5 } }), { ...details(5), ...usage })
    assert.deepEqual(usageOf({ timings: { cache_n: 5, prompt_n: 4, predicted_n: 2 } }), { ...details(5), ...usage })
    assert.equal(usageOf({ timings: { prompt_n: 4 } }), undefined)
    assert.equal(usageOf({ timings: { cache_n: 4 } }), undefined)
  })

  it('of whisper.cpp has tokens, which are joined to words where a language has spaces', () => {
    const speech = dialects.whispercpp.speech!
    const words = [
      { word: ' he', start: 0, end: 1 },
      { word: 'llo', start: 1, end: 2 },
      { word: ' you', start: 2, end: 3 },
    ]
    const joined = [{ word: ' hello', start: 0, end: 2 }, words[2]]
    assert.deepEqual(speech.response({ text: 't', language: 'english', segments: [{ words }] })?.words, joined)
    assert.deepEqual(speech.response({ text: 't', language: 'thai', words })?.words, words)
    assert.equal(speech.response({ text: 't' })?.words, undefined)
    assert.deepEqual([speech.isUnreadable?.({ error: 'x' }), speech.isUnreadable?.({ text: 'x' })], [true, false])
  })

  it('of LocalAI has times in nanoseconds if they cannot be seconds', () => {
    const read = (end: number) => {
      const timed = { start: end / 2, end }
      return dialects.localai.speech?.response({ text: 't', segments: [timed], words: [timed] })
    }
    assert.deepEqual(read(1_000_000)?.segments, [{ start: 500_000, end: 1_000_000 }])
    const short = read(4e9)
    assert.deepEqual([short?.segments, short?.words], [[{ start: 2, end: 4 }], [{ start: 2, end: 4 }]])
    assert.equal(dialects.localai.speech?.response({}), undefined)
  })

  it('has images as base64, all of them', () => {
    const read = dialects.openai.images!.response
    const data = [{ b64_json: 'A', revised_prompt: 'p' }, { b64_json: 'B' }]
    assert.deepEqual(read({ data }), { images: [{ base64: 'A', revisedPrompt: 'p' }, { base64: 'B' }] })
    for (const wrong of [{}, { data: [] }, { data: [{ url: 'x' }] }]) assert.equal(read(wrong), undefined)
  })

  it('is not counted if the operator declares its counts as wrong, or if they are impossible', () => {
    const quiet = withoutCounts(dialects.openai)
    assert.deepEqual(
      [quiet.chat?.usageOf?.({ usage: 1 }), quiet.completions?.usageOf?.({ usage: 1 })],
      [undefined, undefined],
    )
    assert.ok(quiet.chat?.usageOf && quiet.completions?.usageOf)
    const usage = { prompt_tokens: 3 }
    assert.deepEqual(quiet.embeddings?.response({ data: [], usage }, headers), { vectors: [], inputTokens: undefined })
    assert.deepEqual(quiet.ranking?.response({ results: [], usage }, headers), { scores: [], inputTokens: undefined })
    assert.equal(quiet.images, dialects.openai.images)
    assert.deepEqual([0, 100_000_000, 100_000_001, -1, 1.5, '5'].map(tokenCount), [
      0,
      100_000_000,
      ...Array.from({ length: 4 }, () => undefined),
    ])
  })
})

describe('parameters that the catalog lists and an engine refuses', () => {
  it('are named for each deployment, unless one operation accepts them', () => {
    const models = parseCatalog(
      JSON.stringify({
        models: [
          {
            id: 'a/b',
            categories: ['llm'],
            context_length: 10,
            supported_parameters: ['top_k', 'temperature', 'unknown', 'best_of'],
            serverless: { engine: { kind: 'ollama', urls: ['http://a'] } },
            dedicated: [{ workspace: 'w', engine: { kind: 'vllm', urls: ['http://a'] } }, { workspace: 'x' }],
          },
        ],
      }),
      'f',
      () => undefined,
    )
    const untaken = untakenParameters(models)
    assert.deepEqual(
      untaken.map(({ lane, kind, parameters }) => [lane, kind, parameters]),
      [
        ['a/b', 'ollama', ['top_k', 'best_of']],
        ['a/b@w', 'vllm', ['best_of']],
      ],
    )
    assert.deepEqual(untaken.map(untakenWarning), [
      'a/b: top_k, best_of in supported_parameters are refused, because an engine of kind ollama does not take them',
      'a/b@w: best_of in supported_parameters is refused, because an engine of kind vllm does not take it',
    ])
  })
})

describe('the other requests to an engine', () => {
  const health = { path: undefined, intervalMs: 7 }
  const asked = (kind: EngineKind, changes: object = {}) =>
    engineQuestions({ kind, balance: 'prefix', cacheTokens: undefined, health, ...changes } as never)

  it('use a path that costs it nothing, if its kind has one or the catalog names it', () => {
    assert.deepEqual(asked('vllm').health, { path: '//health', isCheap: true, intervalMs: 7 })
    assert.deepEqual(asked('openai').health, { path: '/models', isCheap: false, intervalMs: 7 })
    assert.equal(asked('openai', { health: { ...health, path: '/well' } }).health?.path, '//well')
    assert.deepEqual(
      (['sglang', 'llamacpp', 'llamacpp_python', 'tei', 'infinity', 'speaches', 'whispercpp'] as const).map(
        (kind) => asked(kind).health?.path,
      ),
      Array.from({ length: 7 }, () => '//health'),
    )
    assert.deepEqual(
      (['ollama', 'nim', 'litellm', 'localai'] as const).map((kind) => asked(kind).health?.path),
      ['//api/version', '/health/ready', '//health/liveliness', '//readyz'],
    )
  })

  it('read the size of its cache, if prompts are balanced by it and the catalog does not give it', () => {
    const read = (kind: EngineKind, answer: string) => asked(kind).cacheSize?.read(answer)
    const line = (blocks: string) => `vllm:cache_config_info{block_size="16",num_gpu_blocks="${blocks}"} 1.0\n`
    assert.deepEqual(
      [read('vllm', line('10') + line('5')), read('vllm', line('None')), read('vllm', '')],
      [240, undefined, undefined],
    )
    assert.equal(read('sglang', '{"max_total_num_tokens":77}'), 77)
    for (const wrong of ['', '[]', '{"max_total_num_tokens":0}', '{"max_total_num_tokens":1.5}', 'null']) {
      assert.equal(read('sglang', wrong), undefined)
    }
    const context = { default_generation_settings: { n_ctx: 100 } }
    assert.equal(read('llamacpp', JSON.stringify({ ...context, total_slots: 4 })), 400)
    assert.equal(read('llamacpp', JSON.stringify(context)), 100)
    assert.equal(read('llamacpp', '{"total_slots":4}'), undefined)
    assert.deepEqual(
      (['vllm', 'sglang', 'llamacpp'] as const).map((kind) => asked(kind).cacheSize?.path),
      ['//metrics', '//get_server_info', '//props'],
    )
    assert.equal(asked('vllm', { balance: 'least_busy' }).cacheSize, undefined)
    assert.equal(asked('vllm', { cacheTokens: 5 }).cacheSize, undefined)
    assert.equal(asked('openai').cacheSize, undefined)
  })
})
