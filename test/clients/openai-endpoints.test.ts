import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import OpenAI, * as openai7 from 'openai'
import OpenAI6, * as openai6 from 'openai-6'
import type { ClientOptions } from 'openai'
import { clip } from '../support/audio-stage.ts'
import { png } from '../support/image-samples.ts'
import { inLongRun, isLongRun } from '../support/long-run.ts'
import { recordingFetch, outcomes, pauseMs } from './attempts.ts'
import {
  all,
  endpoints,
  ownEndpoints,
  failOnce,
  holding,
  reasonOf,
  slugs,
  vectorOf,
  type Endpoints,
} from './endpoints.ts'
import { pixel, weatherAgent } from './samples.ts'

/** Both majors, unchanged. They get only the base address and the key. The calls below have the same types in both. */
const majors = [
  { client: 'openai', Client: OpenAI, errors: openai7, toFile: openai7.toFile },
  { client: 'openai 6', Client: OpenAI6 as unknown as typeof OpenAI, errors: openai6, toFile: openai6.toFile },
] as const
/** `npm test` tries only the current major. */
const tried = isLongRun ? majors : majors.slice(0, 1)

const scene = endpoints()
const hello = [{ role: 'user' as const, content: 'Hi' }]
const model = slugs.chat
const transcribedText = 'A weir lets a river through at the rate the bed below can take.'

for (const { client, Client, errors, toFile } of tried) {
  const clientOf = ({ weir }: Endpoints, options: ClientOptions = {}): OpenAI =>
    new Client({ baseURL: weir.base, apiKey: weir.key, ...options })

  describe(`${client}: completions`, () => {
    it('[E3] return a whole answer', async () => {
      const answer = await clientOf(scene).completions.create({ model, prompt: 'A weir lets', max_tokens: 3 })
      assert.match(answer.id, /^cmpl-/)
      assert.deepEqual([answer.object, answer.model], ['text_completion', model])
      assert.deepEqual(answer.choices, [
        { index: 0, text: ' a river through', logprobs: null, finish_reason: 'length' },
      ])
      assert.equal(answer.usage?.total_tokens, 7)
    })

    it('[E3] stream, with the usage when include_usage is set', async () => {
      const stream = await clientOf(scene).completions.create({
        model,
        prompt: 'A weir lets',
        stream: true,
        stream_options: { include_usage: true },
      })
      const chunks = await all(stream)
      assert.equal(chunks.at(-1)?.usage?.total_tokens, 7)
      const choices = chunks.flatMap((chunk) => chunk.choices)
      assert.equal(choices.map(({ text }) => text).join(''), ' a river through')
      assert.equal(choices.at(-1)?.finish_reason, 'length')
    })
  })

  describe(`${client}: embeddings`, () => {
    it('[E4] are requested in base64, the default of the SDK, and decoded to numbers', async () => {
      const answer = await clientOf(scene).embeddings.create({ model: slugs.embedding, input: ['one', 'two'] })
      assert.equal(scene.engine.calls[0]?.body['encoding_format'], 'base64')
      assert.deepEqual(
        answer.data.map(({ index, embedding }) => [index, [...embedding]]),
        [
          [0, vectorOf(0)],
          [1, vectorOf(1)],
        ],
      )
      assert.deepEqual(answer.usage, { prompt_tokens: 4, total_tokens: 4 })
      assert.equal(answer.model, slugs.embedding)
    })

    it('[E4] are returned as numbers, also from an engine that only returns numbers', async () => {
      scene.engine.script = {
        handle: (_call, response) => void response.end(JSON.stringify({ data: [{ embedding: vectorOf(0) }] })),
      }
      const { embeddings } = clientOf(scene)
      for (const format of [{ encoding_format: 'float' as const }, {}]) {
        const answer = await embeddings.create({ model: slugs.embedding, input: 'one', ...format })
        assert.deepEqual([...(answer.data[0]?.embedding ?? [])], vectorOf(0))
      }
    })

    it('[E4] accept dimensions and token ids', async () => {
      await clientOf(scene).embeddings.create({ model: slugs.embedding, input: [15339, 1917], dimensions: 3 })
      const { body } = scene.engine.calls[0] ?? assert.fail('no call')
      assert.deepEqual([body['input'], body['dimensions']], [['hello world'], 3])
    })
  })

  describe(`${client}: images`, () => {
    it('[E7] are returned as b64_json', async () => {
      const answer = await clientOf(scene).images.generate({
        model: slugs.images,
        prompt: 'A weir at dawn',
        n: 2,
        size: '1024x1024',
      })
      const image = png().toString('base64')
      assert.deepEqual(
        answer.data?.map(({ b64_json }) => b64_json),
        [image, image],
      )
    })

    it('[E7] are returned as links that work', async () => {
      const answer = await clientOf(scene).images.generate({
        model: slugs.images,
        prompt: 'A weir at dawn',
        response_format: 'url',
      })
      const opened = await fetch(answer.data?.[0]?.url ?? '')
      assert.deepEqual(Buffer.from(await opened.arrayBuffer()), png())
    })
  })

  describe(`${client}: audio`, () => {
    it('[E8] is transcribed from bytes and from a File with any name', async () => {
      const { transcriptions } = clientOf(scene).audio
      for (const file of [await toFile(clip('flac.ogg'), 'talk.ogg'), new File([clip('plain.wav')], 'talk')]) {
        const answer = await transcriptions.create({ model: slugs.audio, file, language: 'en' })
        assert.equal(answer.text.trim(), transcribedText)
      }
      assert.deepEqual(scene.speech.calls[0]?.fields['language'], ['en'])
    })

    it('[E8] is transcribed in every format', async () => {
      const { transcriptions } = clientOf(scene).audio
      const file = () => toFile(clip('flac.ogg'), 'talk.ogg')
      const common = { model: slugs.audio }
      const text: unknown = await transcriptions.create({ ...common, file: await file(), response_format: 'text' })
      assert.equal(String(text).trim(), transcribedText)
      const srt: unknown = await transcriptions.create({ ...common, file: await file(), response_format: 'srt' })
      assert.match(String(srt), /^1\n00:00:00,000 --> 00:00:00,800\n/)
      const vtt: unknown = await transcriptions.create({ ...common, file: await file(), response_format: 'vtt' })
      assert.match(String(vtt), /^WEBVTT\n/)
      const verbose = await transcriptions.create({
        ...common,
        file: await file(),
        response_format: 'verbose_json',
        timestamp_granularities: ['segment'],
      })
      assert.equal(verbose.language, 'english')
      assert.deepEqual(
        verbose.segments?.map(({ start, end }) => [start, end]),
        [
          [0, 0.8],
          [0.8, 1.7],
        ],
      )
    })

    it('[E9] is translated', async () => {
      const file = await toFile(clip('constant.mp3'), 'talk.mp3')
      const answer = await clientOf(scene).audio.translations.create({ model: slugs.audio, file })
      assert.equal(answer.text.trim(), transcribedText)
      assert.equal(scene.speech.calls[0]?.path, '/v1/audio/translations')
    })

    it('[E8][X1] is refused with a clear message when the file is not audio', async () => {
      const file = await toFile(Buffer.from('not a sound'), 'talk.mp3')
      const reason = await reasonOf(clientOf(scene).audio.transcriptions.create({ model: slugs.audio, file }))
      assert.ok(reason instanceof errors.BadRequestError)
      assert.equal(reason.param, 'file')
      assert.equal(scene.speech.calls.length, 0)
    })
  })
}

const { Client, errors } = majors[1]
const clientOf = ({ weir }: Endpoints, options: ClientOptions = {}): OpenAI =>
  new Client({ baseURL: weir.base, apiKey: weir.key, ...options })

describe('openai 6: chat', inLongRun, () => {
  it('[C1][C2][E1] returns the shape that the SDK documents', async () => {
    const completion = await clientOf(scene).chat.completions.create({ model, messages: hello })
    assert.match(completion.id, /^chatcmpl-/)
    assert.equal(completion.model, model)
    assert.equal(completion.choices[0]?.message.content, 'Hello there!')
    assert.equal(completion.usage?.total_tokens, 13)
  })
})

describe('openai 6: streaming', inLongRun, () => {
  it('[E2] yields each token, and the usage when include_usage is set', async () => {
    const stream = await clientOf(scene).chat.completions.create({
      model,
      messages: hello,
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks = await all(stream)
    assert.deepEqual(chunks.map(({ choices }) => choices[0]?.delta.content).filter(Boolean), ['Hello', ' there', '!'])
    assert.equal(chunks.at(-1)?.usage?.total_tokens, 13)
  })

  it('[E2] ends at [DONE], even if the engine keeps its socket open', { timeout: 20_000 }, async () => {
    scene.engine.script = { hangAfterDone: true }
    const helper = clientOf(scene).chat.completions.stream({ model, messages: hello })
    assert.equal(await helper.finalContent(), 'Hello there!')
  })
})

describe('openai 6: tools', inLongRun, () => {
  it('[E2] are assembled and run by the helper, and their results are sent back', async () => {
    scene.engine.script = weatherAgent
    const runner = clientOf(scene).chat.completions.runTools({
      model,
      messages: hello,
      stream: true,
      tools: [
        {
          type: 'function',
          function: {
            name: 'get_weather',
            description: 'The weather in a city.',
            parameters: { type: 'object', properties: { city: { type: 'string' } } },
            parse: JSON.parse as (text: string) => { city: string },
            function: ({ city }: { city: string }) => `cold in ${city}`,
          },
        },
      ],
    })
    assert.equal(await runner.finalContent(), 'It is cold in Hobart.')
  })
})

describe('openai 6: structured output', inLongRun, () => {
  it('[E1] is parsed, and the engine gets the schema', async () => {
    scene.engine.script = { tokens: ['{"name":', '"Hobart"}'] }
    const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
    const completion = await clientOf(scene).chat.completions.parse({
      model,
      messages: hello,
      response_format: { type: 'json_schema', json_schema: { name: 'city', schema } },
    })
    assert.deepEqual(JSON.parse(completion.choices[0]?.message.content ?? ''), { name: 'Hobart' })
    assert.deepEqual(scene.engine.calls[0]?.body['response_format'], {
      type: 'json_schema',
      json_schema: { name: 'city', schema },
    })
  })
})

describe('openai 6: vision', inLongRun, () => {
  it('[C7] passes an image part with a data URL on to the engine', async () => {
    const url = `data:image/png;base64,${pixel.toString('base64')}`
    const messages = [{ role: 'user' as const, content: [{ type: 'image_url' as const, image_url: { url } }] }]
    await clientOf(scene).chat.completions.create({ model: slugs.seeing, messages })
    assert.deepEqual(scene.engine.calls[0]?.body['messages'], messages)
  })
})

describe('openai 6: models', inLongRun, () => {
  it('[L1][L3] lists the models that the key can call, and retrieves one', async () => {
    const { models } = clientOf(scene)
    assert.deepEqual(new Set((await all(models.list())).map(({ id }) => id)), new Set<string>(Object.values(slugs)))
    assert.equal((await models.retrieve(model)).id, model)
  })
})

describe('openai 6: errors', inLongRun, () => {
  it('[K1][X1] have the right class, code, param and message', async () => {
    const wrongKey = clientOf(scene, { apiKey: 'weir-wrong' })
    assert.ok((await reasonOf(wrongKey.models.list())) instanceof errors.AuthenticationError)
    const { chat, embeddings, images } = clientOf(scene)
    const unknown = await reasonOf(chat.completions.create({ model: 'meta/none', messages: hello, stream: true }))
    assert.ok(unknown instanceof errors.NotFoundError)
    assert.deepEqual([unknown.code, unknown.param], ['model_not_found', 'model'])
    assert.match(unknown.message, /meta\/none/)
    const empty = await reasonOf(embeddings.create({ model: slugs.embedding, input: '' }))
    assert.ok(empty instanceof errors.BadRequestError)
    assert.equal(empty.param, 'input')
    const misplaced = await reasonOf(images.generate({ model, prompt: 'A weir' }))
    assert.ok(misplaced instanceof errors.BadRequestError)
    assert.equal(misplaced.code, 'wrong_endpoint')
    assert.match(misplaced.message, /\/chat\/completions/)
  })
})

describe('openai 6: broken stream', inLongRun, () => {
  it('[E2][X1] raises an error instead of returning a short answer', { timeout: 20_000 }, async () => {
    scene.engine.script = { breakAfter: { tokens: 2, how: 'clean end' } }
    const stream = await clientOf(scene).chat.completions.create({ model, messages: hello, stream: true })
    const reason = await reasonOf(all(stream))
    assert.ok(reason instanceof errors.APIError)
    assert.equal(reason.code, 'upstream_error')
  })
})

// The SDK's own pause is under half a second, so a longer one shows that it respects Retry-After.
describe('openai 6: retries', { ...inLongRun, concurrency: true }, () => {
  const calls: readonly [string, (client: OpenAI) => PromiseLike<unknown>][] = [
    ['chat', (client) => client.chat.completions.create({ model, messages: hello })],
    ['a stream', (client) => client.chat.completions.create({ model, messages: hello, stream: true })],
    ['embeddings', (client) => client.embeddings.create({ model: slugs.embedding, input: 'one' })],
    ['images', (client) => client.images.generate({ model: slugs.images, prompt: 'A weir' })],
  ]
  for (const [what, send] of calls) {
    it(`[X2] retries after one engine failure, when Retry-After says: ${what}`, async (t) => {
      const scene = await ownEndpoints(t)
      failOnce(scene, 500)
      const { fetch, attempts } = recordingFetch()
      await send(clientOf(scene, { fetch }))
      assert.deepEqual(outcomes(attempts), [
        [502, '2'],
        [200, null],
      ])
      assert.ok(pauseMs(attempts) >= 1990, `it paused ${pauseMs(attempts)} ms`)
    })
  }
})

describe('openai 6: abort', inLongRun, () => {
  it('[E2] breaking out of the loop frees the engine', { timeout: 20_000 }, async () => {
    scene.engine.script = holding(1)
    const stream = await clientOf(scene).chat.completions.create({ model, messages: hello, stream: true })
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content === 'Hello') break
    await scene.engine.left(1)
  })

  it('[E1] aborting before the answer frees the engine', { timeout: 20_000 }, async () => {
    scene.engine.script = holding()
    const controller = new AbortController()
    const { signal } = controller
    const attempt = clientOf(scene).chat.completions.create({ model, messages: hello }, { signal })
    await scene.engine.arrived(1)
    controller.abort()
    assert.ok((await reasonOf(attempt)) instanceof errors.APIUserAbortError)
    await scene.engine.left(1)
  })
})
