import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import Anthropic, {
  APIError,
  APIUserAbortError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  RateLimitError,
  type ClientOptions,
} from '@anthropic-ai/sdk'
import { jsonSchemaOutputFormat } from '@anthropic-ai/sdk/helpers/json-schema'
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod'
import { z } from 'zod'
import { onlyOutcome, type ChatStage, type StageOptions } from '../support/chat-stage.ts'
import { sharedStage } from '../support/shared-stage.ts'
import { outcomes, recordingFetch } from './attempts.ts'
import { pixel, weatherAgent, weatherCall } from './samples.ts'

/** The SDK of Anthropic, unchanged. It adds /v1 to the base address itself, and sends the key as x-api-key. */
const model = 'meta/test-8b'
const hello: Anthropic.MessageParam[] = [{ role: 'user', content: 'Hi' }]
const asked = { model, max_tokens: 100, messages: hello }
const weather: Anthropic.Tool = {
  name: 'get_weather',
  description: 'The weather in a city.',
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}

function clientOf({ weir }: ChatStage, options: ClientOptions = {}): Anthropic {
  return new Anthropic({ baseURL: weir.base.replace('/v1', ''), apiKey: weir.key, ...options })
}

/** A model with every parameter that agents use. */
const able: StageOptions['model'] = {
  categories: ['llm', 'vision'],
  supported_parameters: ['tools', 'tool_choice', 'parallel_tool_calls', 'response_format', 'stop', 'reasoning_effort'],
}

function sentTo({ engine }: ChatStage): Readonly<Record<string, unknown>> {
  return engine.calls.at(-1)?.body ?? assert.fail('nothing was sent')
}

describe('@anthropic-ai/sdk: chat', () => {
  it('[A2][A3] returns the shape that the SDK documents, with separate cached tokens', async (t) => {
    const scene = await sharedStage(t, { script: { cachedTokens: 4 } })
    const { id, ...message } = await clientOf(scene).messages.create(asked)
    assert.match(id, /^msg_/)
    assert.deepEqual(message, {
      type: 'message',
      role: 'assistant',
      model,
      content: [{ type: 'text', text: 'Hello there!' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      stop_details: null,
      usage: {
        input_tokens: 6,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 4,
        output_tokens: 3,
        output_tokens_details: { thinking_tokens: 0 },
        service_tier: 'standard',
      },
    })
    const [row] = await scene.weir.ledger()
    assert.deepEqual(
      [row?.endpoint, row?.inputTokens, row?.cachedInputTokens, row?.outputTokens],
      ['/messages', 10, 4, 3],
    )
  })

  it('[A2] forwards a conversation as a chat', async (t) => {
    const scene = await sharedStage(t, { model: able })
    await clientOf(scene).messages.create({
      ...asked,
      system: [
        { type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } },
        { type: 'text', text: 'Be kind.' },
      ],
      stop_sequences: ['END'],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Look:' },
            { type: 'text', text: 'a weir.' },
          ],
        },
        { role: 'assistant', content: 'I see it.' },
        ...hello,
      ],
    })
    assert.deepEqual(sentTo(scene), {
      model: 'engine-name',
      max_tokens: 100,
      messages: [
        { role: 'system', content: 'Be brief.\n\nBe kind.' },
        { role: 'user', content: 'Look:\n\na weir.' },
        { role: 'assistant', content: 'I see it.' },
        { role: 'user', content: 'Hi' },
      ],
      stop: ['END'],
    })
  })

  it('[A2] distinguishes a reached limit from an end', async (t) => {
    const scene = await sharedStage(t, { script: { tokens: ['one', ' two', ' three'], finishReason: 'length' } })
    const { content, stop_reason: reason } = await clientOf(scene).messages.create({ ...asked, max_tokens: 3 })
    assert.deepEqual([content, reason], [[{ type: 'text', text: 'one two three' }], 'max_tokens'])
  })

  it('[A2] returns the reasoning on request, and accepts it back', async (t) => {
    const scene = await sharedStage(t, { script: { reasoning: ['Let me', ' think.'], tokens: ['Four.'] } })
    const client = clientOf(scene)
    const quiet = await client.messages.create(asked)
    assert.deepEqual(quiet.content, [{ type: 'text', text: 'Four.' }])
    const shown = await client.messages.create({ ...asked, thinking: { type: 'adaptive' } })
    const [thinking] = shown.content
    assert.equal(thinking?.type === 'thinking' && thinking.thinking, 'Let me think.')
    await client.messages.create({
      ...asked,
      messages: [...hello, { role: 'assistant', content: shown.content }, ...hello],
    })
    assert.deepEqual((sentTo(scene)['messages'] as object[])[1], {
      role: 'assistant',
      content: 'Four.',
      reasoning_content: 'Let me think.',
    })
  })

  it('[A4] counts the tokens of a request without an engine', async (t) => {
    const scene = await sharedStage(t)
    const { messages } = clientOf(scene)
    const { input_tokens: few } = await messages.countTokens({ model, messages: hello })
    const { input_tokens: more } = await messages.countTokens({ model, messages: hello, tools: [weather] })
    assert.ok(few > 0 && more > few, `${few} and ${more}`)
    const long = 'word '.repeat(20_000)
    const { input_tokens: most } = await messages.countTokens({ model, messages: [{ role: 'user', content: long }] })
    assert.ok(most > 8192, `more than the context: ${most}`)
    assert.equal(scene.engine.calls.length, 0)
    assert.deepEqual(await scene.weir.ledger(), [])
  })
})

describe('@anthropic-ai/sdk: vision', () => {
  it('[A2] forwards images, also those in the result of a tool', async (t) => {
    const scene = await sharedStage(t, { model: able })
    const source = { type: 'base64', media_type: 'image/png', data: pixel.toString('base64') } as const
    await clientOf(scene).messages.create({
      ...asked,
      tools: [weather],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'image', source },
            { type: 'text', text: 'What is it?' },
          ],
        },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'call_1', name: 'get_weather', input: {} }] },
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: 'call_1',
              content: [
                { type: 'text', text: 'A map:' },
                { type: 'image', source },
              ],
            },
          ],
        },
      ],
    })
    const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${source.data}` } }
    assert.deepEqual(sentTo(scene)['messages'], [
      { role: 'user', content: [image, { type: 'text', text: 'What is it?' }] },
      {
        role: 'assistant',
        content: '',
        tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'call_1', content: 'A map:' },
      { role: 'user', content: [image] },
    ])
  })
})

describe('@anthropic-ai/sdk: streaming', () => {
  it('[A2] emits the events in the documented order', async (t) => {
    const scene = await sharedStage(t, { script: { reasoning: ['Hm.'], tokens: ['Wé', 'ir'], cachedTokens: 4 } })
    const stream = await clientOf(scene).messages.create({ ...asked, stream: true, thinking: { type: 'adaptive' } })
    const types: string[] = []
    for await (const event of stream) types.push(event.type)
    assert.deepEqual(types, [
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_delta',
      'content_block_stop',
      'content_block_start',
      'content_block_delta',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ])
  })

  it('[A2] adds up to the same message as a whole answer', async (t) => {
    const scene = await sharedStage(t, {
      script: { reasoning: ['Hm.'], tokens: ['Wé', 'ir – ', '水'], toolCalls: [weatherCall], cachedTokens: 4 },
    })
    const { messages } = clientOf(scene)
    const request = { ...asked, tools: [weather], thinking: { type: 'adaptive' } as const }
    const texts: string[] = []
    const streamed = await messages
      .stream(request)
      .on('text', (text) => texts.push(text))
      .finalMessage()
    const whole = await messages.create(request)
    const { parsed_output: _, ...plain } = streamed
    assert.deepEqual({ ...plain, id: '' }, { ...whole, id: '' })
    assert.deepEqual(texts, ['Wé', 'ir – ', '水'])
    assert.deepEqual(streamed.usage, {
      input_tokens: 6,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 4,
      output_tokens: 8,
      output_tokens_details: { thinking_tokens: 0 },
      service_tier: 'standard',
    })
  })
})

describe('@anthropic-ai/sdk: tools', () => {
  it('[A2] completes a call and its result', async (t) => {
    const scene = await sharedStage(t, { model: able, script: weatherAgent })
    const { messages } = clientOf(scene)
    const request = {
      ...asked,
      tools: [weather],
      tool_choice: { type: 'any', disable_parallel_tool_use: true } as const,
    }
    const first = await messages.create(request)
    assert.equal(first.stop_reason, 'tool_use')
    assert.deepEqual(first.content, [
      { type: 'tool_use', id: 'call_1', name: 'get_weather', input: { city: 'Hobart' } },
    ])
    assert.deepEqual(sentTo(scene)['tool_choice'], 'required')
    assert.deepEqual(sentTo(scene)['parallel_tool_calls'], false)
    assert.deepEqual(sentTo(scene)['tools'], [
      {
        type: 'function',
        function: { name: weather.name, description: weather.description, parameters: weather.input_schema },
      },
    ])
    const second = await messages.create({
      ...request,
      messages: [
        ...hello,
        { role: 'assistant', content: first.content },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'sunny' }] },
      ],
    })
    assert.deepEqual(second.content, [{ type: 'text', text: 'It is sunny.' }])
  })

  it('[A2] runs tools by itself in a loop', async (t) => {
    const scene = await sharedStage(t, { model: able, script: weatherAgent })
    const tool = betaZodTool({
      name: 'get_weather',
      description: 'The weather in a city.',
      inputSchema: z.object({ city: z.string() }),
      run: ({ city }) => `sunny in ${city}`,
    })
    const message = await clientOf(scene).beta.messages.toolRunner({ ...asked, tools: [tool], stream: false })
    assert.deepEqual(message.content, [{ type: 'text', text: 'It is sunny in Hobart.' }])
  })

  it('[A2] streams parallel calls as separate blocks', async (t) => {
    const other = { id: 'call_2', name: 'get_weather', arguments: ['{"city":', '"Perth"}'] }
    const scene = await sharedStage(t, { model: able, script: { toolCalls: [weatherCall, other] } })
    const { content } = await clientOf(scene)
      .messages.stream({ ...asked, tools: [weather] })
      .finalMessage()
    assert.deepEqual(content, [
      { type: 'tool_use', id: 'call_1', name: 'get_weather', input: { city: 'Hobart' } },
      { type: 'tool_use', id: 'call_2', name: 'get_weather', input: { city: 'Perth' } },
    ])
  })

  it('[A5] omits tools that only Anthropic can run, and reports it', async (t) => {
    const scene = await sharedStage(t, { model: able })
    const { response } = await clientOf(scene)
      .messages.create({ ...asked, tools: [{ type: 'web_search_20250305', name: 'web_search' }, weather] })
      .withResponse()
    assert.equal(response.headers.get('x-left-out'), 'tool web_search (of the type web_search_20250305)')
    assert.equal((sentTo(scene)['tools'] as object[]).length, 1)
  })

  it('[A5] restores names that are too long for a chat', async (t) => {
    const name = `mcp__${'server'.repeat(12)}__tool`
    const call = (sent: string) => ({ toolCalls: [{ id: 'call_1', name: sent, arguments: ['{}'] }] })
    const nameIn = (body: Readonly<Record<string, unknown>>): string =>
      (body['tools'] as { function: { name: string } }[])[0]?.function.name ?? ''
    const scene = await sharedStage(t, { model: able, script: ({ body }) => call(nameIn(body)) })
    const { messages } = clientOf(scene)
    const request = { ...asked, tools: [{ ...weather, name }] }
    const whole = await messages.create(request)
    const streamed = await messages.stream(request).finalMessage()
    for (const { content } of [whole, streamed]) {
      assert.deepEqual(content, [{ type: 'tool_use', id: 'call_1', name, input: {} }])
    }
    assert.equal(nameIn(sentTo(scene)).length, 64)
  })
})

describe('@anthropic-ai/sdk: structured output', () => {
  it('[A2] parses an answer that follows a schema', async (t) => {
    const scene = await sharedStage(t, { model: able, script: { tokens: ['{"city":', '"Hobart"}'] } })
    const schema = {
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
      additionalProperties: false,
    } as const
    const format = jsonSchemaOutputFormat(schema)
    const { parsed_output: parsed } = await clientOf(scene).messages.parse({ ...asked, output_config: { format } })
    assert.deepEqual(parsed, { city: 'Hobart' })
    const sent = sentTo(scene)['response_format'] as { type: string; json_schema: { schema: object } }
    assert.equal(sent.type, 'json_schema')
    assert.deepEqual(sent.json_schema.schema, schema)
  })
})

async function rejection(attempt: PromiseLike<unknown>): Promise<APIError> {
  try {
    await attempt
  } catch (error) {
    if (error instanceof APIError) return error
    throw error
  }
  return assert.fail('it was accepted')
}

describe('@anthropic-ai/sdk: errors', () => {
  it('[A3] refuses a wrong key', async (t) => {
    const scene = await sharedStage(t)
    const error = await rejection(clientOf(scene, { apiKey: 'wrong' }).messages.create(asked))
    assert.ok(error instanceof AuthenticationError)
    assert.deepEqual([error.status, error.type], [401, 'authentication_error'])
  })

  it('[A3] accepts the key as a bearer token as well', async (t) => {
    const scene = await sharedStage(t)
    const client = clientOf(scene, { apiKey: null, authToken: scene.weir.key })
    assert.equal((await client.messages.create(asked)).stop_reason, 'end_turn')
  })

  it('[A6] reports a prompt that is too long in the words that clients expect', async (t) => {
    const scene = await sharedStage(t, { model: { context_length: 1000, max_completion_tokens: 1000 } })
    const { messages } = clientOf(scene)
    const long = await rejection(
      messages.create({ ...asked, messages: [{ role: 'user', content: 'word '.repeat(2000) }] }),
    )
    assert.ok(long instanceof BadRequestError)
    assert.equal(long.type, 'invalid_request_error')
    assert.match(long.message, /prompt is too long: \d+ tokens > 1000 maximum/)
    const greedy = await rejection(messages.create({ ...asked, max_tokens: 1000 }))
    assert.match(greedy.message, /input length and `max_tokens` exceed context limit: \d+ \+ 1000 > 1000/)
  })

  it('[A6] reports a refusal of the engine in the same way', async (t) => {
    const body = {
      error: { message: 'the request exceeds the available context size', type: 'exceed_context_size_error' },
    }
    const scene = await sharedStage(t, { script: { refuse: { status: 400, body } } })
    const error = await rejection(clientOf(scene).messages.create({ ...asked, stream: true }))
    assert.ok(error instanceof BadRequestError)
    assert.match(error.message, /prompt is too long/)
  })

  it('[A2] names an unknown model and a wrong field', async (t) => {
    const scene = await sharedStage(t)
    const { messages } = clientOf(scene)
    const unknown = await rejection(messages.create({ ...asked, model: 'claude-opus' }))
    assert.ok(unknown instanceof NotFoundError)
    assert.equal(unknown.type, 'not_found_error')
    const wrong = await rejection(messages.create({ ...asked, max_tokens: 0 }))
    assert.match(wrong.message, /Invalid 'max_tokens': it must be/)
  })

  it('[A2] uses its own names for the parameters of a chat', async (t) => {
    const scene = await sharedStage(t, { model: { supported_parameters: [] } })
    const error = await rejection(clientOf(scene).messages.create({ ...asked, stop_sequences: ['END'] }))
    assert.match(error.message, /does not support the parameter 'stop_sequences'/)
  })
})

describe('@anthropic-ai/sdk: retries', () => {
  it('[A2][Q4] retries when the queue is full, after Retry-After', { timeout: 60_000 }, async (t) => {
    const never = new Promise<void>(() => {})
    const scene = await sharedStage(t, {
      limits: { max_concurrent_requests: 1, max_queue_depth: 0 },
      script: { hold: { afterTokens: 0, until: never } },
    })
    const controller = new AbortController()
    const first = clientOf(scene).messages.create(asked, { signal: controller.signal })
    await scene.engine.arrived(1)
    const { fetch, attempts, firstAnswer } = recordingFetch()
    const second = clientOf(scene, { fetch }).messages.create(asked)
    await firstAnswer
    scene.engine.script = {}
    controller.abort()
    await assert.rejects(Promise.resolve(first), APIUserAbortError)
    assert.equal((await second).stop_reason, 'end_turn')
    const [[status] = [], ...others] = outcomes(attempts)
    assert.deepEqual([status, others.at(-1)?.[0]], [429, 200])
  })

  it('[A2] raises the error of a full queue when it may not retry', async (t) => {
    const never = new Promise<void>(() => {})
    const scene = await sharedStage(t, {
      limits: { max_concurrent_requests: 1, max_queue_depth: 0 },
      script: { hold: { afterTokens: 0, until: never } },
    })
    const controller = new AbortController()
    const first = clientOf(scene).messages.create(asked, { signal: controller.signal })
    await scene.engine.arrived(1)
    const error = await rejection(clientOf(scene, { maxRetries: 0 }).messages.create(asked))
    assert.ok(error instanceof RateLimitError)
    assert.equal(error.type, 'rate_limit_error')
    controller.abort()
    await assert.rejects(Promise.resolve(first), APIUserAbortError)
  })
})

describe('@anthropic-ai/sdk: abort', () => {
  const never = new Promise<void>(() => {})

  it('[A7] stops the engine at once, and bills exactly what was streamed', { timeout: 20_000 }, async (t) => {
    const scene = await sharedStage(t, { script: { hold: { afterTokens: 2, until: never } } })
    const stream = clientOf(scene).messages.stream(asked)
    let text = ''
    let abortedAt = 0
    stream.on('text', (piece) => {
      text += piece
      if (text !== 'Hello there') return
      abortedAt = performance.now()
      stream.abort()
    })
    await assert.rejects(stream.done(), APIUserAbortError)
    await scene.engine.left(1)
    const stoppedAfter = performance.now() - abortedAt
    assert.ok(stoppedAfter < 5000, `the engine stopped after ${stoppedAfter} ms`)
    assert.equal(await onlyOutcome(scene), 'caller_left')
    const [row] = await scene.weir.ledger()
    assert.equal(row?.outputTokens, 2)
  })
})

describe('@anthropic-ai/sdk: broken stream', () => {
  it(
    '[A2] raises an error after the last token, instead of returning a short answer',
    { timeout: 20_000 },
    async (t) => {
      const scene = await sharedStage(t, { script: { breakAfter: { tokens: 2, how: 'reset' } } })
      const error = await rejection(clientOf(scene).messages.stream(asked).finalMessage())
      assert.match(error.message, /broke off/)
    },
  )

  it('[A2] raises an error when the answer is not streamed', { timeout: 20_000 }, async (t) => {
    const scene = await sharedStage(t, { script: { breakAfter: { tokens: 2, how: 'reset' } } })
    const error = await rejection(clientOf(scene, { maxRetries: 0 }).messages.create(asked))
    assert.ok(error instanceof InternalServerError)
    assert.deepEqual([error.status, error.type], [502, 'api_error'])
  })
})
