import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import type { Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { Client, FormData } from 'undici'
import { hostServer } from '../host/host-server.ts'
import type { EngineChatRequest, EngineModel, SpeechRequest, TextEvent } from '../host/runtime/engine-model.ts'
import { gate, within } from '../../../test/support/waiting.ts'

const model = 'test/model'
const hello = { model, messages: [{ role: 'user', content: 'Hello' }] }

/** The HTTP of the host in front of a model that is a few functions of the test. */
describe('the server of the engine host', () => {
  let directory: string
  let server: Server
  let client: Client
  let abilities: Partial<EngineModel> = {}
  const logged: string[] = []
  const unloaded: string[] = []

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'weir-wire-'))
    server = hostServer({
      models: { use: (_slug, work) => work({ memoryBytes: 0, close: async () => {}, ...abilities }) },
      health: async () => ({ status: 'ok' }),
      unload: async (slug) => void unloaded.push(slug),
      log: (message) => logged.push(message),
    })
    const socketPath = join(directory, 'host.sock')
    await new Promise<void>((resolve) => server.listen(socketPath, resolve))
    client = new Client('http://host', { socketPath })
  })
  after(async () => {
    await client.close()
    await new Promise((resolve) => server.close(resolve))
    await rm(directory, { recursive: true })
  })
  beforeEach(() => {
    abilities = {}
  })

  async function post(path: string, body: object | FormData): Promise<{ status: number; text: string }> {
    const payload = body instanceof FormData ? body : JSON.stringify(body)
    const response = await client.request({ method: 'POST', path, body: payload })
    return { status: response.statusCode, text: await response.body.text() }
  }
  const errorOf = async (path: string, body: object | FormData): Promise<unknown> => {
    const { status, text } = await post(path, body)
    const { code, param } = JSON.parse(text).error
    return { status, code, param }
  }

  const says = (...events: TextEvent[]): NonNullable<EngineModel['chat']> =>
    async function* () {
      yield* events
    }
  const prompt: TextEvent = { kind: 'prompt', promptTokens: 3, cachedTokens: 1 }

  it('unloads a model', async () => {
    assert.deepEqual(await post('/unload', { model }), { status: 200, text: '{}' })
    assert.deepEqual(unloaded, [model])
    assert.deepEqual(await errorOf('/unload', {}), {
      status: 400,
      code: 'missing_required_parameter',
      param: 'model',
    })
  })

  it('collects a chat from the events of the model, and counts its prompt once', async () => {
    const seeds: (number | undefined)[] = []
    abilities.chat = async function* (request: EngineChatRequest) {
      seeds.push(request.sampling.seed)
      yield prompt
      yield { kind: 'reasoning', text: 'Hm.', completionTokens: 1 }
      yield { kind: 'text', text: 'Hi', completionTokens: 2 }
      yield { kind: 'tool_call', index: 0, name: 'wave', arguments: '{}', completionTokens: 4 }
      yield { kind: 'end', finishReason: 'tool_calls', completionTokens: 5 }
    }
    const { text } = await post('/v1/chat/completions', { ...hello, n: 2, seed: 7 })
    const { choices, usage } = JSON.parse(text)
    assert.deepEqual(seeds, [7, 8])
    for (const [index, choice] of choices.entries()) {
      assert.deepEqual([choice.index, choice.finish_reason], [index, 'tool_calls'])
      assert.deepEqual([choice.message.content, choice.message.reasoning_content], ['Hi', 'Hm.'])
      assert.deepEqual(choice.message.tool_calls[0].function, { name: 'wave', arguments: '{}' })
    }
    const details = { cached_tokens: 1 }
    assert.deepEqual(usage, {
      prompt_tokens: 3,
      completion_tokens: 10,
      total_tokens: 13,
      prompt_tokens_details: details,
    })
  })

  it('streams with running usage, and ends with [DONE]', async () => {
    abilities.chat = says(
      prompt,
      { kind: 'text', text: 'Hi', completionTokens: 1 },
      { kind: 'end', finishReason: 'stop', completionTokens: 2 },
    )
    const stream_options = { include_usage: true, continuous_usage_stats: true }
    const { text } = await post('/v1/chat/completions', { ...hello, stream: true, stream_options })
    const events = text.trimEnd().split('\n\n')
    assert.equal(events.pop(), 'data: [DONE]')
    const counts = events.map((event) => JSON.parse(event.slice('data: '.length)).usage.completion_tokens)
    assert.deepEqual(counts, [0, 1, 2, 2])
  })

  it('counts each choice of a stream separately while it runs, and all of them at the end', async () => {
    const events: TextEvent[] = [
      prompt,
      { kind: 'text', text: 'Hi', completionTokens: 1 },
      { kind: 'text', text: '!', completionTokens: 2 },
      { kind: 'end', finishReason: 'stop', completionTokens: 2 },
    ]
    abilities.chat = says(...events)
    abilities.complete = says(...events) as never
    const options = { n: 2, stream: true, stream_options: { include_usage: true, continuous_usage_stats: true } }
    for (const [path, body] of [
      ['/v1/chat/completions', hello],
      ['/v1/completions', { model, prompt: 'a' }],
    ] as const) {
      const { text } = await post(path, { ...body, ...options })
      const chunks = text
        .trimEnd()
        .split('\n\n')
        .slice(0, -1)
        .map((event) => JSON.parse(event.slice('data: '.length)))
      for (const index of [0, 1]) {
        const own = chunks.filter(({ choices }) => choices[0]?.index === index)
        assert.deepEqual(
          own.map(({ usage }) => [usage.prompt_tokens, usage.completion_tokens]),
          [
            [3, 0],
            [3, 1],
            [3, 2],
            [3, 2],
          ],
        )
      }
      const { usage } = chunks.at(-1)
      assert.deepEqual([usage.prompt_tokens, usage.completion_tokens, usage.total_tokens], [3, 4, 7])
    }
  })

  it('ends a stream that breaks with an error event and without [DONE], and logs why', async () => {
    abilities.chat = async function* () {
      yield prompt
      throw new Error('out of tensors')
    }
    const { status, text } = await post('/v1/chat/completions', { ...hello, stream: true })
    assert.equal(status, 200)
    const last = JSON.parse(text.trimEnd().split('data: ').at(-1) ?? '')
    assert.deepEqual([last.error.code, last.error.message], ['internal_error', 'out of tensors'])
    assert.ok(logged.some((line) => line.includes('/v1/chat/completions failed: Error: out of tensors')))
  })

  it('notifies the model when its caller disconnects', async () => {
    const started = gate()
    const left = gate()
    abilities.chat = async function* (_request, signal) {
      yield prompt
      started.open()
      signal.addEventListener('abort', () => left.open())
      await left.opened
    }
    const caller = new AbortController()
    const body = JSON.stringify({ ...hello, stream: true })
    const { signal } = caller
    const response = client.request({ method: 'POST', path: '/v1/chat/completions', body, signal })
    const read = response.then((it) => it.body.text())
    await within(10_000, 'the model starts', started.opened)
    caller.abort()
    await assert.rejects(read, { name: 'AbortError' })
    await within(10_000, 'the model is notified', left.opened)
  })

  it('numbers completions prompt by prompt, and counts every prompt', async () => {
    abilities.complete = async function* (request) {
      yield prompt
      yield { kind: 'text', text: `${String(request.prompt)}!`, completionTokens: 1 }
      yield { kind: 'end', finishReason: 'stop', completionTokens: 1 }
    }
    const { text } = await post('/v1/completions', { model, prompt: ['a', 'b'], n: 2 })
    const { choices, usage } = JSON.parse(text)
    const texts = choices.map((choice: { text: string }) => choice.text)
    assert.deepEqual(texts, ['a!', 'a!', 'b!', 'b!'])
    assert.deepEqual([usage.prompt_tokens, usage.completion_tokens], [6, 4])
  })

  it('reads a recording from a form, and answers with verbose_json alone', async () => {
    let asked: SpeechRequest | undefined
    abilities.transcribe = async (request) => {
      asked = request
      const segment = { startSeconds: 0.5, endSeconds: 2, text: ' Hallo.', tokens: [1] }
      const segments = [{ ...segment, averageLogprob: -0.2, noSpeechProbability: 0.01 }]
      return { language: 'de', durationSeconds: 2, temperature: request.temperature, segments }
    }
    const form = (fields: Record<string, string>): FormData => {
      const all = new FormData()
      for (const [name, value] of Object.entries({ model, ...fields })) all.append(name, value)
      all.append('file', new Blob(['sound\r\n--']), 'a.wav')
      return all
    }
    const fields = { response_format: 'verbose_json', language: 'de', temperature: '0.5' }
    const { text } = await post('/v1/audio/transcriptions', form(fields))
    const { language, duration, segments, ...answer } = JSON.parse(text)
    assert.deepEqual([answer.text, answer.task, language, duration], ['Hallo.', 'transcribe', 'de', 2])
    assert.deepEqual([segments[0].start, segments[0].end, segments[0].temperature], [0.5, 2, 0.5])
    assert.deepEqual(asked, {
      audio: Buffer.from('sound\r\n--'),
      task: 'transcribe',
      language: 'de',
      temperature: 0.5,
    })

    const path = '/v1/audio/translations'
    const refused = { status: 400, code: 'invalid_value' }
    assert.deepEqual(await errorOf(path, form({ response_format: 'srt' })), { ...refused, param: 'response_format' })
    assert.deepEqual(await errorOf(path, form({ ...fields, temperature: '2' })), { ...refused, param: 'temperature' })
    const words = form(fields)
    for (const granularity of ['word', 'segment']) words.append('timestamp_granularities[]', granularity)
    const unsupported = { status: 400, code: 'unsupported_value', param: 'timestamp_granularities' }
    assert.deepEqual(await errorOf(path, words), unsupported)
  })

  it('refuses what it cannot read or serve, with the status and code of the API', async () => {
    const path = '/v1/chat/completions'
    const refused: readonly [path: string, body: object, status: number, code: string, param: string | null][] = [
      ['/v1/nothing', {}, 404, 'unknown_url', null],
      [path, [], 400, 'invalid_json', null],
      [path, {}, 400, 'missing_required_parameter', 'model'],
      [path, { model, messages: 'Hello' }, 400, 'invalid_type', 'messages'],
      [path, { ...hello, n: 0 }, 400, 'invalid_value', 'n'],
      [path, hello, 400, 'wrong_endpoint', 'model'],
      ['/v1/audio/translations', {}, 415, 'unsupported_media_type', null],
    ]
    for (const [at, body, status, code, param] of refused) {
      assert.deepEqual(await errorOf(at, body), { status, code, param }, `${at} ${JSON.stringify(body)}`)
    }
  })
})
