import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { tool } from '@llamaindex/core/tools'
import { OpenAI, OpenAIEmbedding } from '@llamaindex/openai'
import { Document, Settings, VectorStoreIndex } from 'llamaindex'
import { z } from 'zod'
import { recordingFetch, outcomes, pauseMs } from './attempts.ts'
import {
  all,
  endpoints,
  failOnce,
  holding,
  ownEndpoints,
  reasonOf,
  slugs,
  vectorOf,
  type Endpoints,
} from './endpoints.ts'
import { pixel, weatherAgent } from './samples.ts'

/** LlamaIndex and its OpenAI package, unchanged. They get only the base address, the key and the slug. */
const scene = endpoints()
const hello = [{ role: 'user' as const, content: 'Hi' }]

type Settings = NonNullable<ConstructorParameters<typeof OpenAI>[0]>

function llmOf({ weir }: Endpoints, settings: Settings = {}): OpenAI {
  return new OpenAI({ model: slugs.chat, baseURL: weir.base, apiKey: weir.key, ...settings })
}

const weather = tool(({ city }: { city: string }) => `cold in ${city}`, {
  name: 'get_weather',
  description: 'The weather in a city.',
  parameters: z.object({ city: z.string() }),
})

describe('llamaindex: chat', () => {
  it('[C1][E1] returns an answer', async () => {
    const { message } = await llmOf(scene, { temperature: 0.5 }).chat({ messages: hello })
    assert.deepEqual([message.role, message.content], ['assistant', 'Hello there!'])
    assert.equal(scene.engine.calls[0]?.body['temperature'], 0.5)
    const { text } = await llmOf(scene).complete({ prompt: 'Hi' })
    assert.equal(text, 'Hello there!')
  })
})

describe('llamaindex: streaming', () => {
  it('[E2] yields each token', async () => {
    const chunks = await all(await llmOf(scene).chat({ messages: hello, stream: true }))
    assert.deepEqual(chunks.map(({ delta }) => delta).filter(Boolean), ['Hello', ' there', '!'])
  })

  it('[E2] ends at [DONE], even if the engine keeps its socket open', { timeout: 20_000 }, async () => {
    scene.engine.script = { hangAfterDone: true }
    const chunks = await all(await llmOf(scene).chat({ messages: hello, stream: true }))
    assert.equal(chunks.map(({ delta }) => delta).join(''), 'Hello there!')
  })
})

describe('llamaindex: tools', () => {
  it('[E1] are called and run, and their results are sent back', async () => {
    scene.engine.script = weatherAgent
    const llm = llmOf(scene)
    const first = await llm.exec({ messages: hello, tools: [weather] })
    assert.deepEqual(
      first.toolCalls.map(({ name, input }) => [name, input]),
      [['get_weather', { city: 'Hobart' }]],
    )
    const second = await llm.exec({ messages: [...hello, ...first.newMessages], tools: [weather] })
    assert.equal(second.newMessages.at(-1)?.content, 'It is cold in Hobart.')
  })

  it('[E2] are assembled from fragments', async () => {
    scene.engine.script = weatherAgent
    const chunks = await all(await llmOf(scene).chat({ messages: hello, tools: [weather], stream: true }))
    const options = (chunks.at(-1)?.options ?? {}) as { toolCall?: readonly object[] }
    assert.deepEqual(options.toolCall, [{ id: 'call_1', name: 'get_weather', input: { city: 'Hobart' } }])
  })
})

describe('llamaindex: structured output', () => {
  it('[E1] passes the schema on to the engine', async () => {
    scene.engine.script = { tokens: ['{"name":', '"Hobart"}'] }
    const responseFormat = z.object({ name: z.string() })
    const { message } = await llmOf(scene).chat({ messages: hello, responseFormat })
    assert.deepEqual(JSON.parse(message.content as string), { name: 'Hobart' })
    const format = scene.engine.calls[0]?.body['response_format'] as { type: string } | undefined
    assert.equal(format?.type, 'json_schema')
  })
})

describe('llamaindex: vision', () => {
  it('[C7] passes an image part with a data URL on to the engine', async () => {
    const url = `data:image/png;base64,${pixel.toString('base64')}`
    const content = [
      { type: 'text' as const, text: 'What is this?' },
      { type: 'image_url' as const, image_url: { url } },
    ]
    await llmOf(scene, { model: slugs.seeing }).chat({ messages: [{ role: 'user', content }] })
    assert.deepEqual(scene.engine.calls[0]?.body['messages'], [{ role: 'user', content }])
  })
})

describe('llamaindex: embeddings', () => {
  it('[E4] are returned for one text and for many, in order', async () => {
    const { weir } = scene
    const embedding = new OpenAIEmbedding({ model: slugs.embedding, baseURL: weir.base, apiKey: weir.key })
    assert.deepEqual([...(await embedding.getTextEmbedding('one'))], vectorOf(0))
    const vectors = await embedding.getTextEmbeddingsBatch(['one', 'two'])
    assert.deepEqual(
      vectors.map((vector) => [...vector]),
      [vectorOf(0), vectorOf(1)],
    )
  })

  it('[E1][E4] embed documents, find the nearest one and answer from it', async () => {
    const { weir, engine } = scene
    const embedModel = new OpenAIEmbedding({ model: slugs.embedding, baseURL: weir.base, apiKey: weir.key })
    const texts = ['A weir is a low dam across a river.', 'Hobart is a city in Tasmania.']
    const answer = await Settings.withEmbedModel(embedModel, () =>
      // The two packages depend on different patch versions of the core, whose enums are different types.
      Settings.withLLM(llmOf(scene) as never, async () => {
        const index = await VectorStoreIndex.fromDocuments(texts.map((text) => new Document({ text })))
        return index.asQueryEngine({ similarityTopK: 1 }).query({ query: 'What is a weir?' })
      }),
    )
    assert.equal(answer.message.content, 'Hello there!')
    assert.deepEqual(
      engine.calls.map(({ path }) => path),
      ['/v1/embeddings', '/v1/embeddings', '/v1/chat/completions'],
    )
    // This engine's vectors depend on the position of a text, so the question is nearest to the first document.
    assert.match(JSON.stringify(engine.calls[2]?.body['messages']), /A weir is a low dam/)
  })
})

describe('llamaindex: errors', () => {
  it('[K1][X1] have a status, a code and the message of Weir', async () => {
    const cases: readonly [Settings, number, string][] = [
      [{ apiKey: 'weir-wrong' }, 401, 'invalid_api_key'],
      [{ model: 'meta/none' }, 404, 'model_not_found'],
      [{ temperature: 3 }, 400, 'invalid_value'],
    ]
    for (const [settings, status, code] of cases) {
      const reason = (await reasonOf(llmOf(scene, settings).chat({ messages: hello }))) as Record<string, unknown>
      assert.deepEqual([reason['status'], reason['code']], [status, code])
    }
  })
})

describe('llamaindex: broken stream', () => {
  it('[E2][X1] raises an error instead of returning a short answer', { timeout: 20_000 }, async () => {
    scene.engine.script = { breakAfter: { tokens: 2, how: 'clean end' } }
    const chunks = await llmOf(scene).chat({ messages: hello, stream: true })
    await assert.rejects(all(chunks), { code: 'upstream_error' })
  })
})

describe('llamaindex: abort', () => {
  it('[E2] aborting a stream frees the engine', { timeout: 20_000 }, async () => {
    scene.engine.script = holding(1)
    // LlamaIndex takes no abort signal and does not close a stream when the loop ends, so only its fetch can abort.
    const controller = new AbortController()
    const abortable: typeof fetch = (url, init) => fetch(url, { ...init, signal: controller.signal })
    const llm = llmOf(scene, { additionalSessionOptions: { fetch: abortable }, maxRetries: 0 })
    const reading = all(await llm.chat({ messages: hello, stream: true })).catch(() => {})
    await scene.engine.arrived(1)
    controller.abort()
    await scene.engine.left(1)
    await reading
  })
})

// The SDK's own pause is under half a second, so a longer one shows that it respects Retry-After.
describe('llamaindex: retries', () => {
  it('[X2] after one engine failure, retries when Retry-After says', async (t) => {
    const own = await ownEndpoints(t)
    failOnce(own, 500)
    const { fetch, attempts } = recordingFetch()
    const { message } = await llmOf(own, { additionalSessionOptions: { fetch } }).chat({ messages: hello })
    assert.equal(message.content, 'Hello there!')
    assert.deepEqual(outcomes(attempts), [
      [502, '2'],
      [200, null],
    ])
    assert.ok(pauseMs(attempts) >= 1990, `it paused ${pauseMs(attempts)} ms`)
  })
})
