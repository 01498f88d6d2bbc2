import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import OpenAI, {
  APIError,
  APIConnectionTimeoutError,
  APIUserAbortError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  RateLimitError,
} from 'openai'
import type { ClientOptions } from 'openai'
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod'
import type { ChatCompletionChunk, ChatCompletionMessageParam } from 'openai/resources/chat/completions'
import { z } from 'zod'
import { chatStage, onlyOutcome, type ChatStage } from '../support/chat-stage.ts'
import { sharedStage } from '../support/shared-stage.ts'
import { laneHolds } from '../support/lane.ts'
import { gate } from '../support/waiting.ts'
import { recordingFetch, outcomes, pauseMs } from './attempts.ts'
import { pixel, weatherAgent, weatherCall } from './samples.ts'

/** The openai SDK, unchanged. It gets only the base address and the key. */
const model = 'meta/test-8b'
const hello: ChatCompletionMessageParam[] = [{ role: 'user', content: 'Hi' }]

function clientOf({ weir }: ChatStage, options: ClientOptions = {}): OpenAI {
  return new OpenAI({ baseURL: weir.base, apiKey: weir.key, ...options })
}

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const list: Item[] = []
  for await (const item of items) list.push(item)
  return list
}

function textOf(chunks: readonly ChatCompletionChunk[]): string {
  return chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')
}

describe('openai: chat', () => {
  it('[C1][C2][E1] returns the shape that the SDK documents', async (t) => {
    const scene = await sharedStage(t, { script: { cachedTokens: 4 } })
    const completion = await clientOf(scene).chat.completions.create({ model, messages: hello })

    assert.match(completion.id, /^chatcmpl-/)
    assert.equal(completion.object, 'chat.completion')
    assert.equal(completion.model, model)
    assert.deepEqual(completion.choices, [
      {
        index: 0,
        message: { role: 'assistant', content: 'Hello there!', refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ])
    assert.deepEqual(completion.usage, {
      prompt_tokens: 10,
      completion_tokens: 3,
      total_tokens: 13,
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 0 },
    })
  })

  it('[Q5][R2] exposes the headers and the request id through withResponse', async (t) => {
    const scene = await sharedStage(t)
    const { response, request_id } = await clientOf(scene)
      .chat.completions.create({ model, messages: hello })
      .withResponse()

    assert.equal(response.headers.get('x-queue-wait-ms'), '0')
    for (const name of ['limit', 'remaining', 'reset']) {
      assert.match(response.headers.get(`x-ratelimit-${name}`) ?? '', /^\d+$/)
    }
    assert.equal(request_id, response.headers.get('x-request-id'))
  })

  it('[C3] accepts an alias and returns the slug', async (t) => {
    const scene = await sharedStage(t)
    const completion = await clientOf(scene).chat.completions.create({ model: 'test-8b', messages: hello })
    assert.equal(completion.model, model)
  })

  it('[E1] passes only the parameters that the model lists on to the engine', async (t) => {
    const scene = await sharedStage(t)
    await clientOf(scene).chat.completions.create({
      model,
      messages: [{ role: 'developer', content: 'Be brief.' }, ...hello],
      temperature: 0.5,
      top_p: 0.9,
      stop: ['\n'],
      seed: 7,
      frequency_penalty: 0,
      n: 2,
      max_completion_tokens: 20,
      user: 'ann',
      metadata: { trace: '1' },
      store: false,
    })
    assert.deepEqual(scene.engine.calls[0]?.body, {
      model: 'engine-name',
      max_tokens: 20,
      messages: [{ role: 'system', content: 'Be brief.' }, ...hello],
      temperature: 0.5,
      top_p: 0.9,
      stop: ['\n'],
      seed: 7,
      n: 2,
    })
  })

  it('[E1] accepts every value that the types of the SDK allow', async (t) => {
    const model = { categories: ['llm', 'vision'], supported_parameters: ['reasoning_effort'] }
    const scene = await sharedStage(t, { model })
    const { completions } = clientOf(scene).chat
    for (const effort of ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const) {
      await completions.create({ model: 'meta/test-8b', messages: hello, reasoning_effort: effort })
      assert.equal(scene.engine.calls.at(-1)?.body['reasoning_effort'], effort)
    }
    for (const detail of ['auto', 'low', 'high', 'original'] as const) {
      const url = `data:image/png;base64,${pixel.toString('base64')}`
      const messages = [
        { role: 'user' as const, content: [{ type: 'image_url' as const, image_url: { url, detail } }] },
      ]
      await completions.create({ model: 'meta/test-8b', messages })
      assert.deepEqual(scene.engine.calls.at(-1)?.body['messages'], messages)
    }
  })

  it('[E1] returns n choices', async (t) => {
    const scene = await sharedStage(t)
    const { choices } = await clientOf(scene).chat.completions.create({ model, messages: hello, n: 2 })
    assert.deepEqual(
      choices.map(({ index, message }) => [index, message.content]),
      [
        [0, 'Hello there!'],
        [1, 'Hello there!'],
      ],
    )
  })
})

describe('openai: streaming', () => {
  it('[E2] yields the role, each token and the finish reason, with one id and the slug, and no usage', async (t) => {
    const scene = await sharedStage(t)
    const chunks = await all(await clientOf(scene).chat.completions.create({ model, messages: hello, stream: true }))

    const steps = chunks.map(({ choices }) => [choices[0]?.delta, choices[0]?.finish_reason])
    assert.deepEqual(steps, [
      [{ role: 'assistant', content: '' }, null],
      [{ content: 'Hello' }, null],
      [{ content: ' there' }, null],
      [{ content: '!' }, null],
      [{}, 'stop'],
    ])
    assert.equal(new Set(chunks.map(({ id, created, object }) => `${id} ${created} ${object}`)).size, 1)
    assert.deepEqual(new Set(chunks.map((chunk) => chunk.model)), new Set([model]))
    assert.ok(chunks.every((chunk) => !('usage' in chunk)))
  })

  it('[E2] ends with the usage when include_usage is set', async (t) => {
    const scene = await sharedStage(t, { script: { cachedTokens: 4 } })
    const stream = await clientOf(scene).chat.completions.create({
      model,
      messages: hello,
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks = await all(stream)
    const last = chunks.pop()

    assert.deepEqual(last?.choices, [])
    assert.equal(last?.usage?.total_tokens, 13)
    assert.equal(last?.usage?.prompt_tokens_details?.cached_tokens, 4)
    assert.ok(chunks.every((chunk) => chunk.usage === null && chunk.choices.length === 1))
  })

  it('[E2] works with the stream helper: events, final content, total usage', async (t) => {
    const scene = await sharedStage(t)
    const deltas: string[] = []
    const stream = clientOf(scene).chat.completions.stream({
      model,
      messages: hello,
      stream_options: { include_usage: true },
    })
    stream.on('content', (delta) => deltas.push(delta))

    assert.equal(await stream.finalContent(), 'Hello there!')
    assert.deepEqual(deltas.filter(Boolean), ['Hello', ' there', '!'])
    assert.equal((await stream.totalUsage()).total_tokens, 13)
    const completion = await stream.finalChatCompletion()
    assert.equal(completion.choices[0]?.finish_reason, 'stop')
    assert.equal(completion.model, model)
  })

  it('[E2] delivers each token as soon as the engine produces it', async (t) => {
    const { opened, open } = gate()
    const scene = await sharedStage(t, { script: { tokens: ['one', 'two'], hold: { afterTokens: 1, until: opened } } })
    const stream = await clientOf(scene).chat.completions.create({ model, messages: hello, stream: true })
    let text = ''
    for await (const chunk of stream) {
      text += textOf([chunk])
      // The engine produces its second token only after the first one has arrived here.
      if (text === 'one') open()
    }
    assert.equal(text, 'onetwo')
  })

  it('[E2] delivers text in any script', async (t) => {
    const tokens = ['Žlutý kůň', ' 🦘', ' 水', ' "quoted" \\ \n']
    const scene = await sharedStage(t, { script: { tokens } })
    const stream = await clientOf(scene).chat.completions.create({ model, messages: hello, stream: true })
    assert.equal(textOf(await all(stream)), tokens.join(''))
  })

  it('[E2] delivers reasoning next to the content', async (t) => {
    const scene = await sharedStage(t, { script: { reasoning: ['Let me', ' see.'] } })
    const chunks = await all(await clientOf(scene).chat.completions.create({ model, messages: hello, stream: true }))
    const deltas = chunks.map(({ choices }) => choices[0]?.delta as { reasoning_content?: string } | undefined)
    assert.equal(deltas.map((delta) => delta?.reasoning_content ?? '').join(''), 'Let me see.')
    assert.equal(textOf(chunks), 'Hello there!')
  })

  it('[E2] distinguishes choices by their index', async (t) => {
    const said = [
      { index: 1, delta: { role: 'assistant', content: 'B' } },
      { index: 0, delta: { role: 'assistant', content: 'A' } },
      { index: 0, delta: { content: 'a' }, finish_reason: 'length' },
      { index: 1, delta: { content: 'b' } },
      { index: 1, delta: {}, finish_reason: 'stop' },
    ]
    const scene = await sharedStage(t, {
      script: {
        handle(_call, response) {
          response.writeHead(200, { 'content-type': 'text/event-stream' })
          for (const choice of said) response.write(`data: ${JSON.stringify({ choices: [choice] })}\n\n`)
          response.end('data: [DONE]\n\n')
        },
      },
    })
    const stream = clientOf(scene).chat.completions.stream({ model, messages: hello, n: 2 })
    const { choices } = await stream.finalChatCompletion()
    assert.deepEqual(
      choices.map(({ index, message, finish_reason }) => [index, message.content, finish_reason]),
      [
        [0, 'Aa', 'length'],
        [1, 'Bb', 'stop'],
      ],
    )
  })

  it('[E2] ends at [DONE], even if the engine keeps its socket open', { timeout: 20_000 }, async (t) => {
    const scene = await sharedStage(t, { script: { hangAfterDone: true } })
    const client = clientOf(scene)
    const stream = await client.chat.completions.create({ model, messages: hello, stream: true })
    assert.equal(textOf(await all(stream)), 'Hello there!')
    const helper = client.chat.completions.stream({ model, messages: hello })
    assert.equal(await helper.finalContent(), 'Hello there!')
  })
})

describe('openai: tools', () => {
  const tools: OpenAI.ChatCompletionTool[] = [
    {
      type: 'function',
      function: {
        name: 'get_weather',
        description: 'The weather in a city.',
        parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
        strict: true,
      },
    },
  ]

  it('[E1] are called, and their results are sent back', async (t) => {
    const scene = await sharedStage(t, { script: weatherAgent })
    const client = clientOf(scene)
    const first = await client.chat.completions.create({ model, messages: hello, tools, tool_choice: 'auto' })

    const choice = first.choices[0]
    assert.ok(choice)
    assert.equal(choice.finish_reason, 'tool_calls')
    assert.deepEqual(choice.message, {
      role: 'assistant',
      content: null,
      refusal: null,
      tool_calls: [
        { id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Hobart"}' } },
      ],
    })
    const second = await client.chat.completions.create({
      model,
      messages: [...hello, choice.message, { role: 'tool', tool_call_id: 'call_1', content: 'cold' }],
      tools,
    })
    assert.equal(second.choices[0]?.message.content, 'It is cold.')

    const [asked, answered] = scene.engine.calls
    assert.deepEqual(asked?.body['tools'], tools)
    assert.equal(asked?.body['tool_choice'], 'auto')
    assert.deepEqual(answered?.body['messages'], [
      ...hello,
      choice.message,
      { role: 'tool', tool_call_id: 'call_1', content: 'cold' },
    ])
  })

  it('[E2] arrive in fragments: id and name first, then the arguments, each with its index', async (t) => {
    const toolCalls = [weatherCall, { id: 'call_2', name: 'get_time', arguments: ['{', '}'] }]
    const scene = await sharedStage(t, { script: { toolCalls } })
    const stream = await clientOf(scene).chat.completions.create({ model, messages: hello, tools, stream: true })
    const chunks = await all(stream)

    const fragments = chunks.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? [])
    assert.deepEqual(fragments, [
      { index: 0, id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '' } },
      { index: 0, function: { arguments: '{"ci' } },
      { index: 0, function: { arguments: 'ty":"Hob' } },
      { index: 0, function: { arguments: 'art"}' } },
      { index: 1, id: 'call_2', type: 'function', function: { name: 'get_time', arguments: '' } },
      { index: 1, function: { arguments: '{' } },
      { index: 1, function: { arguments: '}' } },
    ])
    assert.equal(chunks.at(-1)?.choices[0]?.finish_reason, 'tool_calls')
  })

  it('[E2] are assembled by the stream helper', async (t) => {
    const toolCalls = [weatherCall, { id: 'call_2', name: 'get_time', arguments: ['{', '}'] }]
    const scene = await sharedStage(t, { script: { toolCalls } })
    const completion = await clientOf(scene)
      .chat.completions.stream({ model, messages: hello, tools })
      .finalChatCompletion()
    const calls = completion.choices[0]?.message.tool_calls?.map((call) => call.type === 'function' && call.function)
    assert.deepEqual(
      calls?.map((call) => call && [call.name, call.arguments]),
      [
        ['get_weather', '{"city":"Hobart"}'],
        ['get_time', '{}'],
      ],
    )
  })

  for (const stream of [false, true]) {
    it(`[E1][E2] are run in a loop by runTools${stream ? ', streaming' : ''}`, async (t) => {
      const scene = await sharedStage(t, { script: weatherAgent })
      const asked: string[] = []
      const get_weather = zodFunction({
        name: 'get_weather',
        parameters: z.object({ city: z.string() }),
        function({ city }) {
          asked.push(city)
          return 'cold'
        },
      })
      const { completions } = clientOf(scene).chat
      const body = { model, messages: hello, tools: [get_weather] }
      const runner = stream ? completions.runTools({ ...body, stream }) : completions.runTools({ ...body, stream })
      assert.equal(await runner.finalContent(), 'It is cold.')
      assert.deepEqual(asked, ['Hobart'])
      assert.equal(scene.engine.calls.length, 2)
    })
  }
})

describe('openai: structured output', () => {
  const city = z.object({ name: z.string(), people: z.int() })
  const tokens = ['{"name":', '"Hobart",', '"people":250000}']
  const response_format = zodResponseFormat(city, 'city')

  it('[E1] is parsed, and the engine gets the schema', async (t) => {
    const scene = await sharedStage(t, { script: { tokens } })
    const completion = await clientOf(scene).chat.completions.parse({ model, messages: hello, response_format })
    assert.deepEqual(completion.choices[0]?.message.parsed, { name: 'Hobart', people: 250_000 })
    const { type, json_schema } = response_format
    assert.deepEqual(scene.engine.calls[0]?.body['response_format'], { type, json_schema })
    assert.equal(json_schema.strict, true)
  })

  it('[E2] is parsed from a stream', async (t) => {
    const scene = await sharedStage(t, { script: { tokens } })
    const stream = clientOf(scene).chat.completions.stream({ model, messages: hello, response_format })
    const completion = await stream.finalChatCompletion()
    assert.deepEqual(completion.choices[0]?.message.parsed, { name: 'Hobart', people: 250_000 })
  })

  it('[E1] works for tools: their arguments are parsed', async (t) => {
    const scene = await sharedStage(t, { script: { toolCalls: [weatherCall] } })
    const completion = await clientOf(scene).chat.completions.parse({
      model,
      messages: hello,
      tools: [zodFunction({ name: 'get_weather', parameters: z.object({ city: z.string() }) })],
      tool_choice: { type: 'function', function: { name: 'get_weather' } },
    })
    const call = completion.choices[0]?.message.tool_calls?.[0]
    assert.ok(call?.type === 'function')
    assert.deepEqual(call.function.parsed_arguments, { city: 'Hobart' })
    assert.deepEqual(scene.engine.calls[0]?.body['tool_choice'], {
      type: 'function',
      function: { name: 'get_weather' },
    })
  })

  it('[L4] is refused when the model does not list response_format', async (t) => {
    const scene = await sharedStage(t, { model: { supported_parameters: ['temperature'] } })
    const attempt = clientOf(scene).chat.completions.parse({ model, messages: hello, response_format })
    await rejectsWith(attempt, BadRequestError, { code: 'unsupported_parameter', param: 'response_format' })
    assert.equal(scene.engine.calls.length, 0)
  })
})

describe('openai: vision', () => {
  const seeing = { categories: ['llm', 'vision'] }
  const question = (url: string): ChatCompletionMessageParam[] => [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url, detail: 'low' } },
      ],
    },
  ]
  const dataUrl = `data:image/png;base64,${pixel.toString('base64')}`

  it('[C7] passes an image part with a data URL on to the engine', async (t) => {
    const scene = await sharedStage(t, { model: seeing })
    const messages = question(dataUrl)
    const completion = await clientOf(scene).chat.completions.create({ model, messages })
    assert.equal(completion.choices[0]?.message.content, 'Hello there!')
    assert.deepEqual(scene.engine.calls[0]?.body['messages'], messages)
  })

  it('[C7] refuses an image for a model without vision, and names the part', async (t) => {
    const scene = await sharedStage(t, { model: { categories: ['llm'] } })
    const attempt = clientOf(scene).chat.completions.create({ model, messages: question(dataUrl) })
    await rejectsWith(attempt, BadRequestError, { code: 'unsupported_content', param: 'messages[0].content[1]' })
    assert.equal(scene.engine.calls.length, 0)
  })

  it('[C7] refuses to fetch an image from a host that is not allowed', async (t) => {
    const scene = await sharedStage(t, { model: seeing })
    const messages = question('http://127.0.0.1:1/private.png')
    const attempt = clientOf(scene).chat.completions.create({ model, messages })
    await rejectsWith(attempt, BadRequestError, { code: 'unsupported_content' })
    assert.equal(scene.engine.calls.length, 0)
  })
})

/** Asserts that the promise rejects with this error class of the SDK and these fields. */
async function rejectsWith(
  attempt: PromiseLike<unknown>,
  kind: abstract new (...args: never[]) => Error,
  fields: Partial<Record<'status' | 'code' | 'param' | 'type', unknown>>,
): Promise<APIError> {
  const error = await Promise.resolve(attempt).then(
    () => assert.fail('the call should have failed'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof kind, `${String(error)} is no ${kind.name}`)
  assert.ok(error instanceof APIError)
  assert.deepEqual(Object.fromEntries(Object.keys(fields).map((name) => [name, error[name as keyof APIError]])), fields)
  return error
}

describe('openai: errors', () => {
  it('[K1][X1] a wrong key is an AuthenticationError', async (t) => {
    const scene = await sharedStage(t)
    const client = clientOf(scene, { apiKey: 'weir-wrong' })
    await rejectsWith(client.chat.completions.create({ model, messages: hello }), AuthenticationError, {
      status: 401,
      code: 'invalid_api_key',
      type: 'invalid_request_error',
      param: null,
    })
    await rejectsWith(client.models.list(), AuthenticationError, { code: 'invalid_api_key' })
  })

  it('[X1] an unknown model is a NotFoundError that names the parameter', async (t) => {
    const scene = await sharedStage(t)
    const attempt = clientOf(scene).chat.completions.create({ model: 'meta/none', messages: hello })
    const error = await rejectsWith(attempt, NotFoundError, { status: 404, code: 'model_not_found', param: 'model' })
    assert.match(error.message, /meta\/none/)
    assert.ok(error.requestID)
  })

  it('[X1] a bad value is a BadRequestError with code and param', async (t) => {
    const scene = await sharedStage(t)
    const { completions } = clientOf(scene).chat
    await rejectsWith(completions.create({ model, messages: hello, temperature: 3 }), BadRequestError, {
      status: 400,
      code: 'invalid_value',
      param: 'temperature',
    })
    await rejectsWith(completions.create({ model, messages: [] }), BadRequestError, {
      code: 'invalid_value',
      param: 'messages',
    })
    await rejectsWith(completions.create({ model } as never), BadRequestError, {
      code: 'missing_required_parameter',
      param: 'messages',
    })
    assert.equal(scene.engine.calls.length, 0)
  })

  it('[E12][X1] a prompt that is too long is reported in the words that frameworks look for', async (t) => {
    const scene = await sharedStage(t)
    const messages: ChatCompletionMessageParam[] = [{ role: 'user', content: 'word '.repeat(20_000) }]
    const attempt = clientOf(scene).chat.completions.create({ model, messages })
    const error = await rejectsWith(attempt, BadRequestError, { code: 'context_length_exceeded' })
    assert.match(error.message, /maximum context length/)
  })

  it('[E2][X1] a refused stream makes create fail before any chunk', async (t) => {
    const scene = await sharedStage(t, { script: { refuse: { status: 422, body: { detail: 'no such template' } } } })
    const attempt = clientOf(scene).chat.completions.create({ model, messages: hello, stream: true })
    const error = await rejectsWith(attempt, BadRequestError, { status: 400, code: 'invalid_value' })
    assert.match(error.message, /no such template/)
  })

  it('[R3][X2] exceeding the rate limit is a RateLimitError with Retry-After', async (t) => {
    const scene = await sharedStage(t, { config: { rate_limit: { requests_per_minute: 1 } } })
    const client = clientOf(scene, { maxRetries: 0 })
    // Three requests, because a new minute may begin between two of them.
    const attempts = Promise.all([1, 2, 3].map(() => client.chat.completions.create({ model, messages: hello })))
    const error = await rejectsWith(attempts, RateLimitError, { status: 429, code: 'rate_limit_exceeded' })
    const seconds = Number(error.headers?.get('retry-after'))
    assert.ok(seconds >= 1 && seconds <= 59, `Retry-After: ${seconds}`)
    assert.equal(error.headers?.get('x-ratelimit-limit'), '1')
  })

  it('[X1] a failing engine is an InternalServerError that hides the message of the engine', async (t) => {
    const scene = await sharedStage(t, {
      script: { refuse: { status: 500, body: { error: { message: 'secret trace' } } } },
    })
    const attempt = clientOf(scene, { maxRetries: 0 }).chat.completions.create({ model, messages: hello })
    const error = await rejectsWith(attempt, InternalServerError, { status: 502, code: 'upstream_error' })
    assert.doesNotMatch(error.message, /secret/)
  })
})

// The SDK's own pause is under half a second, so a longer one shows that it respects Retry-After.
describe('openai: retries', { concurrency: true }, () => {
  it('[X2] after one engine failure, retries when Retry-After says, and is charged once', async (t) => {
    const scene = await chatStage(t)
    const { engine, weir } = scene
    engine.script = () => (engine.calls.length === 1 ? { refuse: { status: 500, body: {} } } : {})
    const { fetch, attempts } = recordingFetch()
    const completion = await clientOf(scene, { fetch }).chat.completions.create({ model, messages: hello })

    assert.equal(completion.choices[0]?.message.content, 'Hello there!')
    assert.deepEqual(outcomes(attempts), [
      [502, '2'],
      [200, null],
    ])
    assert.ok(pauseMs(attempts) >= 1990, `it paused ${pauseMs(attempts)} ms`)
    const rows = await weir.ledger()
    assert.deepEqual(
      new Map(rows.map((row) => [row.outcome, row.amount > 0n])),
      new Map([
        ['engine_failed', false],
        ['completed', true],
      ]),
    )
  })

  it('[Q6][X2] retries 5 s after model_overloaded', async (t) => {
    const { opened, open } = gate()
    const limits = { max_concurrent_requests: 1, max_wait_ms: 100 }
    const scene = await chatStage(t, { limits, script: { hold: { afterTokens: 0, until: opened } } })
    const { fetch, attempts, firstAnswer } = recordingFetch()
    const first = clientOf(scene).chat.completions.create({ model, messages: hello })
    await scene.engine.arrived(1)
    const second = clientOf(scene, { fetch }).chat.completions.create({ model, messages: hello })
    await firstAnswer
    open()

    await Promise.all([first, second])
    assert.deepEqual(outcomes(attempts), [
      [503, '5'],
      [200, null],
    ])
    assert.ok(pauseMs(attempts) >= 4990, `it paused ${pauseMs(attempts)} ms`)
  })

  it('[Q4][X2] retries after queue_full, also when streaming', async (t) => {
    const { opened, open } = gate()
    const limits = { max_concurrent_requests: 1, max_queue_depth: 0 }
    const scene = await chatStage(t, { limits, script: { hold: { afterTokens: 0, until: opened } } })
    const { fetch, attempts, firstAnswer } = recordingFetch()
    const first = clientOf(scene).chat.completions.create({ model, messages: hello })
    await scene.engine.arrived(1)
    const second = clientOf(scene, { fetch }).chat.completions.create({ model, messages: hello, stream: true })
    await firstAnswer
    open()

    assert.equal(textOf(await all(await second)), 'Hello there!')
    await first
    assert.deepEqual(
      attempts.map(({ status }) => status),
      [429, 200],
    )
    const seconds = Number(attempts[0]?.retryAfter)
    assert.ok(seconds >= 2 && seconds <= 8, `Retry-After: ${seconds}`)
    assert.ok(pauseMs(attempts) >= seconds * 1000 - 10, `it paused ${pauseMs(attempts)} ms`)
  })

  it('[X1] does not retry errors of the caller', async (t) => {
    const scene = await chatStage(t, { script: { refuse: { status: 400, body: { error: { message: 'bad' } } } } })
    const { fetch, attempts } = recordingFetch()
    await rejectsWith(
      clientOf(scene, { fetch }).chat.completions.create({ model, messages: hello }),
      BadRequestError,
      {},
    )
    assert.equal(attempts.length, 1)
  })
})

describe('openai: abort', () => {
  const never = new Promise<void>(() => {})

  it('[E2] aborting a stream frees the engine', { timeout: 20_000 }, async (t) => {
    const scene = await sharedStage(t, { script: { hold: { afterTokens: 2, until: never } } })
    const stream = await clientOf(scene).chat.completions.create({ model, messages: hello, stream: true })
    let text = ''
    for await (const chunk of stream) {
      text += textOf([chunk])
      if (text !== 'Hello there') continue
      stream.controller.abort()
    }
    await scene.engine.left(1)
    assert.equal(await onlyOutcome(scene), 'caller_left')
  })

  it('[E2] breaking out of the loop frees the engine', { timeout: 20_000 }, async (t) => {
    const scene = await sharedStage(t, { script: { hold: { afterTokens: 1, until: never } } })
    const stream = await clientOf(scene).chat.completions.create({ model, messages: hello, stream: true })
    for await (const chunk of stream) if (textOf([chunk]) === 'Hello') break
    await scene.engine.left(1)
  })

  it('[E1] aborting before the answer frees the engine', { timeout: 20_000 }, async (t) => {
    const scene = await sharedStage(t, { script: { hold: { afterTokens: 0, until: never } } })
    const controller = new AbortController()
    const { signal } = controller
    const attempt = clientOf(scene).chat.completions.create({ model, messages: hello }, { signal })
    await scene.engine.arrived(1)
    controller.abort()
    await assert.rejects(attempt, APIUserAbortError)
    await scene.engine.left(1)
  })

  it('[Q2] a timeout of the SDK leaves nothing in the queue', { timeout: 20_000 }, async (t) => {
    const { opened, open } = gate()
    const limits = { max_concurrent_requests: 1 }
    const scene = await sharedStage(t, { limits, script: { hold: { afterTokens: 0, until: opened } } })
    const first = clientOf(scene).chat.completions.create({ model, messages: hello })
    await scene.engine.arrived(1)
    const impatient = clientOf(scene, { timeout: 200, maxRetries: 1 })
    await assert.rejects(impatient.chat.completions.create({ model, messages: hello }), APIConnectionTimeoutError)
    await laneHolds(scene.weir, 1, 0)
    open()
    await first
    // If one of the two attempts were still queued, the engine would get it before this request.
    await clientOf(scene).chat.completions.create({ model, messages: hello })
    assert.equal(scene.engine.calls.length, 2)
  })
})

describe('openai: broken stream', () => {
  for (const how of ['reset', 'clean end'] as const) {
    it(
      `[E2][X1] raises an error after the last token, instead of returning a short answer (${how})`,
      { timeout: 20_000 },
      async (t) => {
        const scene = await sharedStage(t, { script: { breakAfter: { tokens: 2, how } } })
        const stream = await clientOf(scene).chat.completions.create({ model, messages: hello, stream: true })
        let text = ''
        const reading = (async () => {
          for await (const chunk of stream) text += textOf([chunk])
        })()
        await rejectsWith(reading, APIError, { code: 'upstream_error', type: 'server_error', param: null })
        assert.equal(text, 'Hello there')
      },
    )
  }

  it('[E2][X1] raises an error in the stream helper', { timeout: 20_000 }, async (t) => {
    const scene = await sharedStage(t, { script: { breakAfter: { tokens: 2, how: 'reset' } } })
    const stream = clientOf(scene).chat.completions.stream({ model, messages: hello })
    await assert.rejects(stream.finalContent(), /broke off/)
  })

  it('[E1][X1] raises an error when the answer is not streamed', { timeout: 20_000 }, async (t) => {
    const scene = await sharedStage(t, { script: { breakAfter: { tokens: 2, how: 'reset' } } })
    const attempt = clientOf(scene, { maxRetries: 0 }).chat.completions.create({ model, messages: hello })
    await rejectsWith(attempt, InternalServerError, { status: 502, code: 'upstream_error' })
  })
})

describe('openai: models', () => {
  it('[L1][L2] lists the models that the key can call', async (t) => {
    const scene = await sharedStage(t)
    const models = await all(clientOf(scene).models.list())
    assert.deepEqual(
      models.map(({ id, object, owned_by }) => ({ id, object, owned_by })),
      [{ id: model, object: 'model', owned_by: 'meta' }],
    )
    assert.ok(Number.isInteger(models[0]?.created))
  })

  it('[C3][L3] retrieves a model by its slug, whose slash the SDK escapes, and by its alias', async (t) => {
    const scene = await sharedStage(t)
    const client = clientOf(scene)
    assert.equal((await client.models.retrieve(model)).id, model)
    assert.equal((await client.models.retrieve('test-8b')).id, model)
    await rejectsWith(client.models.retrieve('meta/none'), NotFoundError, { status: 404, code: 'model_not_found' })
  })
})
