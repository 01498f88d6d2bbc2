import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createCohere } from '@ai-sdk/cohere'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import * as ai7 from 'ai'
import * as ai6 from 'ai-6'
import { createCohere as createCohere3 } from 'ai-cohere-3'
import { createOpenAICompatible as createOpenAICompatible2 } from 'openai-compatible-2'
import { z } from 'zod'
import { png } from '../support/image-samples.ts'
import { recordingFetch, outcomes, pauseMs } from './attempts.ts'
import {
  all,
  endpoints,
  failOnce,
  holding,
  ownEndpoints,
  ranked,
  reasonOf,
  slugs,
  vectorOf,
  type Endpoints,
} from './endpoints.ts'
import { pixel, weatherAgent } from './samples.ts'

/** Both majors with their providers, unchanged. The calls below have the same types in both. */
const majors = [
  { client: 'ai', cohere: '@ai-sdk/cohere', ai: ai7, compatible: createOpenAICompatible, createCohere },
  {
    client: 'ai 6',
    cohere: '@ai-sdk/cohere 3',
    ai: ai6 as unknown as typeof ai7,
    compatible: createOpenAICompatible2 as unknown as typeof createOpenAICompatible,
    createCohere: createCohere3 as unknown as typeof createCohere,
  },
] as const

const scene = endpoints()
const never = { maxRetries: 0 }

interface Settings {
  apiKey?: string
  fetch?: typeof fetch
}

for (const { client, cohere, ai, compatible, createCohere } of majors) {
  const provider = ({ weir }: Endpoints, settings: Settings = {}) =>
    compatible({
      name: 'weir',
      baseURL: weir.base,
      apiKey: weir.key,
      includeUsage: true,
      supportsStructuredOutputs: true,
      ...settings,
    })
  const rerankerOf = ({ weir }: Endpoints, settings: Settings & { slug?: string } = {}) => {
    const { slug = slugs.documents, ...rest } = settings
    return createCohere({ baseURL: weir.base, apiKey: weir.key, ...rest }).reranking(slug)
  }
  const question = { query: ranked.query, documents: [...ranked.documents] }

  async function refusal(attempt: PromiseLike<unknown>): Promise<ai7.APICallError> {
    const reason = await reasonOf(attempt)
    assert.ok(ai.APICallError.isInstance(reason), String(reason))
    return reason
  }

  describe(`${client}: completions`, () => {
    it('[E3] return whole and streamed answers', async () => {
      const model = provider(scene).completionModel(slugs.chat)
      const whole = await ai.generateText({ model, prompt: 'A weir lets' })
      assert.deepEqual([whole.text, whole.finishReason], [' a river through', 'length'])
      assert.deepEqual([whole.usage.inputTokens, whole.usage.outputTokens], [4, 3])
      const streamed = ai.streamText({ model, prompt: 'A weir lets' })
      assert.deepEqual(await all(streamed.textStream), [' a', ' river', ' through'])
      assert.equal((await streamed.usage).totalTokens, 7)
    })
  })

  describe(`${client}: embeddings`, () => {
    it('[E4] are returned for one text and for many, in order, with the usage', async () => {
      const model = provider(scene).embeddingModel(slugs.embedding)
      const one = await ai.embed({ model, value: 'one' })
      assert.deepEqual([one.embedding, one.usage.tokens], [vectorOf(0), 2])
      const many = await ai.embedMany({ model, values: ['one', 'two', 'three'] })
      assert.deepEqual(many.embeddings, [vectorOf(0), vectorOf(1), vectorOf(2)])
    })

    it('[E4][X1] are refused with a clear message for a model without embeddings', async () => {
      const model = provider(scene).embeddingModel(slugs.chat)
      const error = await refusal(ai.embed({ model, value: 'one', ...never }))
      assert.equal(error.statusCode, 400)
      assert.match(error.message, /\/chat\/completions/)
    })
  })

  describe(`${client}: images`, () => {
    it('[E7] are returned as bytes', async () => {
      const model = provider(scene).imageModel(slugs.images)
      const { images } = await ai.generateImage({ model, prompt: 'A weir at dawn', n: 2, size: '512x512' })
      assert.deepEqual(
        images.map(({ uint8Array }) => Buffer.from(uint8Array)),
        [png(), png()],
      )
    })
  })

  describe(`${cohere}: rerank`, () => {
    it('[E5] returns the ranking, best first', async () => {
      const { ranking, response } = await ai.rerank({ model: rerankerOf(scene), ...question })
      assert.deepEqual(
        ranking.map(({ originalIndex, score, document }) => ({ originalIndex, score, document })),
        ranked.results.map(({ index, score }) => ({ originalIndex: index, score, document: ranked.documents[index] })),
      )
      assert.match(response.id ?? '', /^rerank-/)
    })

    it('[E5] respects topN', async () => {
      const { ranking } = await ai.rerank({ model: rerankerOf(scene), ...question, topN: 1 })
      assert.deepEqual(
        ranking.map(({ originalIndex }) => originalIndex),
        [1],
      )
    })
  })

  describe(`${cohere}: errors`, () => {
    it('[K1][X1] carry the message of Weir', async () => {
      const wrongKey = await refusal(ai.rerank({ model: rerankerOf(scene, { apiKey: 'weir-wrong' }), ...question }))
      assert.equal(wrongKey.statusCode, 401)
      assert.match(wrongKey.message, /key/i)
      const unknown = await refusal(ai.rerank({ model: rerankerOf(scene, { slug: 'baai/none' }), ...question }))
      assert.equal(unknown.statusCode, 404)
      assert.match(unknown.message, /baai\/none/)
      const misplaced = await refusal(ai.rerank({ model: rerankerOf(scene, { slug: slugs.passages }), ...question }))
      assert.equal(misplaced.statusCode, 400)
      assert.match(misplaced.message, /\/reranking/)
      scene.engine.script = { refuse: { status: 500, body: {} } }
      const failed = await refusal(ai.rerank({ model: rerankerOf(scene), ...question, ...never }))
      assert.deepEqual([failed.statusCode, failed.isRetryable], [502, true])
      assert.match(failed.message, /engine/i)
    })
  })

  describe(`${cohere}: abort`, () => {
    it('[E5] aborting before the answer frees the engine', { timeout: 20_000 }, async () => {
      scene.engine.script = holding()
      const controller = new AbortController()
      const attempt = ai.rerank({ model: rerankerOf(scene), ...question, abortSignal: controller.signal })
      await scene.engine.arrived(1)
      controller.abort()
      await assert.rejects(attempt, { name: 'AbortError' })
      await scene.engine.left(1)
    })
  })
}

const { ai, compatible } = majors[1]
const modelOf = ({ weir }: Endpoints, { slug = slugs.chat, ...settings }: Settings & { slug?: string } = {}) =>
  compatible({
    name: 'weir',
    baseURL: weir.base,
    apiKey: weir.key,
    includeUsage: true,
    supportsStructuredOutputs: true,
    ...settings,
  })(slug)

describe('ai 6: chat', () => {
  it('[C1][C2][E1] returns the text, the finish reason, the usage and the slug', async () => {
    const result = await ai.generateText({ model: modelOf(scene), prompt: 'Hi', temperature: 0.5 })
    assert.deepEqual([result.text, result.finishReason], ['Hello there!', 'stop'])
    assert.deepEqual([result.usage.inputTokens, result.usage.outputTokens], [10, 3])
    assert.equal(result.response.modelId, slugs.chat)
    assert.equal(scene.engine.calls[0]?.body['temperature'], 0.5)
  })
})

describe('ai 6: streaming', () => {
  it('[E2] yields each token, then the finish reason and the usage', async () => {
    const result = ai.streamText({ model: modelOf(scene), prompt: 'Hi' })
    assert.deepEqual(await all(result.textStream), ['Hello', ' there', '!'])
    assert.equal(await result.finishReason, 'stop')
    assert.equal((await result.usage).totalTokens, 13)
  })

  it('[E2] ends at [DONE], even if the engine keeps its socket open', { timeout: 20_000 }, async () => {
    scene.engine.script = { hangAfterDone: true }
    assert.equal(await ai.streamText({ model: modelOf(scene), prompt: 'Hi' }).text, 'Hello there!')
  })
})

describe('ai 6: tools', () => {
  const tools = {
    get_weather: ai6.tool({
      description: 'The weather in a city.',
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => `cold in ${city}`,
    }),
  } as unknown as ai7.ToolSet

  it('[E1] are called and run, and their results are sent back, whole and streamed', async () => {
    scene.engine.script = weatherAgent
    const asked = { model: modelOf(scene), prompt: 'Hi', tools, stopWhen: ai6.stepCountIs(3) as never }
    assert.equal((await ai.generateText(asked)).text, 'It is cold in Hobart.')
    assert.equal(await ai.streamText(asked).text, 'It is cold in Hobart.')
  })
})

describe('ai 6: structured output', () => {
  it('[E1] is parsed, and the engine gets the schema', async () => {
    scene.engine.script = { tokens: ['{"name":', '"Hobart"}'] }
    const output = ai6.Output.object({ schema: z.object({ name: z.string() }) }) as never
    const result = await ai.generateText({ model: modelOf(scene), prompt: 'Hi', output })
    assert.deepEqual(result.output, { name: 'Hobart' })
    const format = scene.engine.calls[0]?.body['response_format'] as { type: string } | undefined
    assert.equal(format?.type, 'json_schema')
  })
})

describe('ai 6: vision', () => {
  it('[C7] sends an image as a data URL that reaches the engine', async () => {
    const content = [{ type: 'file' as const, data: pixel, mediaType: 'image/png' }]
    await ai.generateText({ model: modelOf(scene, { slug: slugs.seeing }), messages: [{ role: 'user', content }] })
    assert.deepEqual(scene.engine.calls[0]?.body['messages'], [
      {
        role: 'user',
        content: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${pixel.toString('base64')}` } }],
      },
    ])
  })
})

describe('ai 6: errors', () => {
  it('[K1][X1] have a status, the message of Weir, and whether to retry', async () => {
    const cases: readonly [Settings & { slug?: string }, number, RegExp][] = [
      [{ apiKey: 'weir-wrong' }, 401, /key/i],
      [{ slug: 'meta/none' }, 404, /meta\/none/],
      [{ slug: slugs.embedding }, 400, /\/embeddings/],
    ]
    for (const [settings, status, words] of cases) {
      const reason = await reasonOf(ai.generateText({ model: modelOf(scene, settings), prompt: 'Hi' }))
      assert.ok(ai.APICallError.isInstance(reason))
      assert.deepEqual([reason.statusCode, reason.isRetryable], [status, false])
      assert.match(reason.message, words)
    }
  })
})

describe('ai 6: broken stream', () => {
  it('[E2][X1] raises an error instead of returning a short answer', { timeout: 20_000 }, async () => {
    scene.engine.script = { breakAfter: { tokens: 2, how: 'clean end' } }
    const errors: unknown[] = []
    const result = ai.streamText({
      model: modelOf(scene),
      prompt: 'Hi',
      onError: ({ error }) => void errors.push(error),
    })
    await all(result.textStream)
    assert.equal(errors.length, 1)
    assert.match(JSON.stringify(errors[0]) + String(errors[0]), /broke off/)
    assert.equal(await result.finishReason, 'error')
  })
})

describe('ai 6: abort', () => {
  it('[E2] aborting a stream frees the engine', { timeout: 20_000 }, async () => {
    scene.engine.script = holding(1)
    const controller = new AbortController()
    const result = ai.streamText({ model: modelOf(scene), prompt: 'Hi', abortSignal: controller.signal, onError() {} })
    for await (const text of result.textStream) if (text === 'Hello') controller.abort()
    await scene.engine.left(1)
  })
})

// The SDK's own first pause is 2 s, so one of 5 s shows that it respects Retry-After.
describe('both majors, concurrently', { concurrency: true }, () => {
  for (const { client, cohere, ai, compatible, createCohere } of majors) {
    const calls: Record<string, (scene: Endpoints, fetch: typeof globalThis.fetch) => PromiseLike<unknown>> = {
      [`${client}: retries`]: ({ weir }, fetch) => {
        const provider = compatible({ name: 'weir', baseURL: weir.base, apiKey: weir.key, fetch })
        return ai.embed({ model: provider.embeddingModel(slugs.embedding), value: 'one' })
      },
      [`${cohere}: retries`]: ({ weir }, fetch) => {
        const provider = createCohere({ baseURL: weir.base, apiKey: weir.key, fetch })
        const model = provider.reranking(slugs.documents)
        return ai.rerank({ model, query: ranked.query, documents: [...ranked.documents] })
      },
    }
    for (const [title, send] of Object.entries(calls)) {
      describe(title, () => {
        it('[X2] retries 5 s after an engine was overloaded', async (t) => {
          const own = await ownEndpoints(t)
          failOnce(own, 429)
          const { fetch, attempts } = recordingFetch()
          await send(own, fetch)
          assert.deepEqual(outcomes(attempts), [
            [503, '5'],
            [200, null],
          ])
          assert.ok(pauseMs(attempts) >= 4990, `it paused ${pauseMs(attempts)} ms`)
        })
      })
    }
  }
})
