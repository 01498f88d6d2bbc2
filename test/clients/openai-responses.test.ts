import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import OpenAI, { APIError, APIUserAbortError, BadRequestError, type ClientOptions } from 'openai'
import { zodResponsesFunction, zodTextFormat } from 'openai/helpers/zod'
import type { FunctionTool, ResponseInputItem, ResponseStreamEvent } from 'openai/resources/responses/responses'
import { z } from 'zod'
import { onlyOutcome, type ChatStage, type StageOptions } from '../support/chat-stage.ts'
import { sharedStage } from '../support/shared-stage.ts'
import { pixel, weatherAgent, weatherCall } from './samples.ts'

/** The responses of the openai SDK, unchanged. It gets only the base address and the key. */
const model = 'meta/test-8b'
const asked = { model, input: 'Hi' }
const weather: FunctionTool = {
  type: 'function',
  name: 'get_weather',
  description: 'The weather in a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  strict: false,
}

const able: StageOptions['model'] = {
  categories: ['llm', 'vision'],
  supported_parameters: ['tools', 'tool_choice', 'parallel_tool_calls', 'response_format', 'reasoning_effort'],
}

function clientOf({ weir }: ChatStage, options: ClientOptions = {}): OpenAI {
  return new OpenAI({ baseURL: weir.base, apiKey: weir.key, ...options })
}

function sentTo({ engine }: ChatStage): Readonly<Record<string, unknown>> {
  return engine.calls.at(-1)?.body ?? assert.fail('nothing was sent')
}

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const list: Item[] = []
  for await (const item of items) list.push(item)
  return list
}

async function rejection(attempt: PromiseLike<unknown>): Promise<APIError> {
  try {
    await attempt
  } catch (error) {
    if (error instanceof APIError) return error
    throw error
  }
  return assert.fail('it was accepted')
}

describe('openai responses: chat', () => {
  it('[A1] returns the shape that the SDK documents', async (t) => {
    const scene = await sharedStage(t, { script: { cachedTokens: 4 } })
    const response = await clientOf(scene).responses.create({ ...asked, instructions: 'Be brief.' })
    assert.match(response.id, /^resp_/)
    assert.equal(response.output_text, 'Hello there!')
    assert.equal(response.status, 'completed')
    assert.equal(response.model, model)
    assert.deepEqual(response.usage, {
      input_tokens: 10,
      input_tokens_details: { cached_tokens: 4, cache_write_tokens: 0 },
      output_tokens: 3,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 13,
    })
    assert.deepEqual(sentTo(scene)['messages'], [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hi' },
    ])
    const [row] = await scene.weir.ledger()
    assert.deepEqual([row?.endpoint, row?.inputTokens, row?.outputTokens], ['/responses', 10, 3])
  })

  it('[A1] distinguishes a reached limit from an end', async (t) => {
    const scene = await sharedStage(t, { script: { tokens: ['one', ' two'], finishReason: 'length' } })
    const response = await clientOf(scene).responses.create({ ...asked, max_output_tokens: 2 })
    assert.equal(response.status, 'incomplete')
    assert.deepEqual(response.incomplete_details, { reason: 'max_output_tokens' })
    assert.equal(sentTo(scene)['max_tokens'], 2)
  })

  it('[A1] accepts a whole conversation, and joins what the model wrote in one turn', async (t) => {
    const scene = await sharedStage(t, {
      model: able,
      script: { reasoning: ['Let me see.'], tokens: ['Looking.'], toolCalls: [weatherCall] },
    })
    const { responses } = clientOf(scene)
    const request = { model, tools: [weather], include: ['reasoning.encrypted_content' as const] }
    const first = await responses.create({ ...request, input: 'Weather?' })
    assert.deepEqual(
      first.output.map(({ type }) => type),
      ['reasoning', 'message', 'function_call'],
    )
    // Clients that keep nothing send the reasoning back in the field that they do not read.
    const kept = first.output.map((item) => (item.type === 'reasoning' ? { ...item, content: [] } : item))
    const input: ResponseInputItem[] = [
      { role: 'developer', content: 'Be brief.' },
      { role: 'user', content: 'Weather?' },
      ...(kept as ResponseInputItem[]),
      { type: 'function_call_output', call_id: 'call_1', output: 'sunny' },
      { role: 'user', content: [{ type: 'input_text', text: 'Thanks.' }] },
    ]
    await responses.create({ ...request, input })
    assert.deepEqual(sentTo(scene)['messages'], [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Weather?' },
      {
        role: 'assistant',
        content: 'Looking.',
        reasoning_content: 'Let me see.',
        tool_calls: [
          { id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Hobart"}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'call_1', content: 'sunny' },
      { role: 'user', content: 'Thanks.' },
    ])
  })
})

describe('openai responses: vision', () => {
  it('[A1] forwards images', async (t) => {
    const scene = await sharedStage(t, { model: able })
    const url = `data:image/png;base64,${pixel.toString('base64')}`
    await clientOf(scene).responses.create({
      model,
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'What is it?' },
            { type: 'input_image', image_url: url, detail: 'auto' },
          ],
        },
      ],
    })
    assert.deepEqual(sentTo(scene)['messages'], [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is it?' },
          { type: 'image_url', image_url: { url } },
        ],
      },
    ])
  })
})

describe('openai responses: streaming', () => {
  it('[A1] opens every item before its deltas, and closes it before the next', async (t) => {
    const scene = await sharedStage(t, {
      model: able,
      script: { reasoning: ['Hm.'], tokens: ['Wé', 'ir'], toolCalls: [weatherCall] },
    })
    const events = await all(await clientOf(scene).responses.create({ ...asked, tools: [weather], stream: true }))
    assert.deepEqual(
      events.map(({ type }) => type.replace('response.', '')),
      [
        'created',
        'in_progress',
        'output_item.added',
        'content_part.added',
        'reasoning_text.delta',
        'reasoning_text.done',
        'content_part.done',
        'output_item.done',
        'output_item.added',
        'content_part.added',
        'output_text.delta',
        'output_text.delta',
        'output_text.done',
        'content_part.done',
        'output_item.done',
        'output_item.added',
        'function_call_arguments.delta',
        'function_call_arguments.delta',
        'function_call_arguments.delta',
        'function_call_arguments.done',
        'output_item.done',
        'completed',
      ],
    )
    assert.deepEqual(
      events.map((event) => 'sequence_number' in event && event.sequence_number),
      events.map((_, index) => index),
    )
    const done = events.flatMap((event) => (event.type === 'response.output_item.done' ? [event.item] : []))
    const last = events.at(-1)
    assert.ok(last?.type === 'response.completed')
    assert.deepEqual(last.response.output, done)
  })

  it('[A1] adds up to the same response as a whole answer', async (t) => {
    const scene = await sharedStage(t, {
      model: able,
      script: { reasoning: ['Hm.'], tokens: ['Wé', 'ir – ', '水'], toolCalls: [weatherCall], cachedTokens: 4 },
    })
    const { responses } = clientOf(scene)
    const request = { ...asked, tools: [weather] }
    const texts: string[] = []
    const streamed = await responses
      .stream(request)
      .on('response.output_text.delta', ({ delta }) => texts.push(delta))
      .finalResponse()
    const whole = await responses.create(request)
    const plain = (items: readonly object[]): unknown =>
      JSON.parse(JSON.stringify(items, (name, value: unknown) => (/^id$|^parsed/.test(name) ? undefined : value)))
    assert.deepEqual(plain(streamed.output), plain(whole.output))
    assert.deepEqual(streamed.usage, whole.usage)
    assert.deepEqual(texts, ['Wé', 'ir – ', '水'])
  })
})

describe('openai responses: tools', () => {
  it('[A1] completes a call and its result', async (t) => {
    const scene = await sharedStage(t, { model: able, script: weatherAgent })
    const { responses } = clientOf(scene)
    const tool = zodResponsesFunction({ name: 'get_weather', parameters: z.object({ city: z.string() }) })
    const first = await responses.parse({ ...asked, tools: [tool], parallel_tool_calls: false })
    const [call] = first.output
    assert.ok(call?.type === 'function_call')
    assert.deepEqual(call.parsed_arguments, { city: 'Hobart' })
    assert.equal(sentTo(scene)['parallel_tool_calls'], false)
    const second = await responses.create({
      model,
      input: [
        { role: 'user', content: 'Hi' },
        { type: 'function_call', call_id: call.call_id, name: call.name, arguments: call.arguments },
        { type: 'function_call_output', call_id: call.call_id, output: 'sunny' },
      ],
    })
    assert.equal(second.output_text, 'It is sunny.')
  })

  it('[A5] turns a custom tool into a function with one string, and its call back into a custom one', async (t) => {
    const call = { id: 'call_1', name: 'apply_patch', arguments: ['{"input":"*** Begin', ' Patch\\n+é"}'] }
    const scene = await sharedStage(t, { model: able, script: { toolCalls: [call] } })
    const { responses } = clientOf(scene)
    const tools = [
      {
        type: 'custom' as const,
        name: 'apply_patch',
        description: 'Edits files.',
        format: { type: 'grammar' as const, syntax: 'lark' as const, definition: 'start: "x"' },
      },
    ]
    const whole = await responses.create({ ...asked, tools })
    const streamed = await responses.stream({ ...asked, tools }).finalResponse()
    for (const { output } of [whole, streamed]) {
      const [item] = output
      assert.ok(item?.type === 'custom_tool_call')
      assert.deepEqual([item.call_id, item.name, item.input], ['call_1', 'apply_patch', '*** Begin Patch\n+é'])
    }
    const [sent] = sentTo(scene)['tools'] as { function: { name: string; parameters: { properties: object } } }[]
    assert.deepEqual(Object.keys(sent?.function.parameters.properties ?? {}), ['input'])
    await responses.create({
      ...asked,
      tools,
      input: [
        { role: 'user', content: 'Hi' },
        { type: 'custom_tool_call', call_id: 'call_1', name: 'apply_patch', input: '*** Begin Patch\n+é' },
        { type: 'custom_tool_call_output', call_id: 'call_1', output: 'done' },
      ],
    })
    const [, said] = sentTo(scene)['messages'] as { tool_calls: { function: { arguments: string } }[] }[]
    assert.deepEqual(JSON.parse(said?.tool_calls[0]?.function.arguments ?? ''), { input: '*** Begin Patch\n+é' })
  })

  it('[A5] keeps the namespaces of tools in both directions', async (t) => {
    const call = { id: 'call_1', name: 'crm__find', arguments: ['{}'] }
    const scene = await sharedStage(t, { model: able, script: { toolCalls: [call] } })
    const { responses } = clientOf(scene)
    const tools = [
      { type: 'namespace' as const, name: 'crm', description: 'Customers.', tools: [{ ...weather, name: 'find' }] },
      { ...weather, name: 'find' },
    ]
    const { output } = await responses.create({ ...asked, tools })
    const [item] = output
    assert.ok(item?.type === 'function_call')
    assert.deepEqual([item.namespace, item.name], ['crm', 'find'])
    assert.deepEqual(
      (sentTo(scene)['tools'] as { function: { name: string } }[]).map(({ function: { name } }) => name),
      ['crm__find', 'find'],
    )
    await responses.create({ ...asked, tools, input: [{ role: 'user', content: 'Hi' }, item] })
    const [, said] = sentTo(scene)['messages'] as { tool_calls: { function: { name: string } }[] }[]
    assert.equal(said?.tool_calls[0]?.function.name, 'crm__find')
  })

  it('[A5] omits tools that run elsewhere, and hints that the model does not accept, and reports it', async (t) => {
    const named = { type: 'computer', name: 'screen' }
    const scene = await sharedStage(t)
    const { response } = await clientOf(scene)
      .responses.create({ ...asked, tools: [{ type: 'web_search' }, named as never], reasoning: { effort: 'high' } })
      .withResponse()
    assert.equal(
      response.headers.get('x-left-out'),
      'tool web_search (of the type web_search); tool screen (of the type computer); reasoning.effort (meta/test-8b does not support it)',
    )
    assert.equal('tools' in sentTo(scene), false)
  })
})

describe('openai responses: structured output', () => {
  it('[A1] parses an answer that follows a schema', async (t) => {
    const scene = await sharedStage(t, { model: able, script: { tokens: ['{"city":', '"Hobart"}'] } })
    const format = zodTextFormat(z.object({ city: z.string() }), 'place')
    const { output_parsed: parsed } = await clientOf(scene).responses.parse({ ...asked, text: { format } })
    assert.deepEqual(parsed, { city: 'Hobart' })
    const sent = sentTo(scene)['response_format'] as { json_schema: { name: string; strict: boolean } }
    assert.deepEqual([sent.json_schema.name, sent.json_schema.strict], ['place', true])
  })
})

describe('openai responses: errors', () => {
  it('[A1] reports that nothing is stored', async (t) => {
    const scene = await sharedStage(t)
    const { responses } = clientOf(scene)
    const previous = await rejection(responses.create({ ...asked, previous_response_id: 'resp_1' }))
    assert.ok(previous instanceof BadRequestError)
    assert.deepEqual([previous.code, previous.param], ['unsupported_parameter', 'previous_response_id'])
    assert.match(previous.message, /Send the whole conversation as input/)
    assert.equal((await rejection(responses.create({ ...asked, background: true }))).param, 'background')
    assert.equal((await rejection(responses.create({ ...asked, conversation: 'c' }))).param, 'conversation')
  })

  it('[A6] refuses a prompt that is too long with the code that clients recognise, and in a stream with an event', async (t) => {
    const scene = await sharedStage(t, {
      model: { context_length: 1000, max_completion_tokens: 100, default_max_tokens: 100 },
    })
    const { responses } = clientOf(scene)
    const long = { model, input: 'wörd '.repeat(2000) }
    const error = await rejection(responses.create(long))
    assert.deepEqual([error.status, error.code, error.param], [400, 'context_length_exceeded', 'input'])
    const events = await all(await responses.create({ ...long, stream: true }))
    const last = events.at(-1)
    assert.deepEqual(
      events.map(({ type }) => type),
      ['response.created', 'response.failed'],
    )
    assert.ok(last?.type === 'response.failed')
    assert.equal(last.response.error?.code, 'context_length_exceeded')
    assert.equal(last.response.model, model)
    assert.deepEqual(await scene.weir.ledger(), [])
  })

  it('[A1] uses its own names for the parameters of a chat', async (t) => {
    const scene = await sharedStage(t, { model: { supported_parameters: [] } })
    const format = { type: 'json_schema' as const, name: 'x', schema: {} }
    const error = await rejection(clientOf(scene).responses.create({ ...asked, text: { format } }))
    assert.equal(error.param, 'text.format')
    assert.match(error.message, /does not support the parameter 'text.format'/)
  })
})

describe('openai responses: abort', () => {
  const never = new Promise<void>(() => {})

  it('[A7] stops the engine at once, and bills exactly what was streamed', { timeout: 20_000 }, async (t) => {
    const scene = await sharedStage(t, { script: { hold: { afterTokens: 2, until: never } } })
    const stream = await clientOf(scene).responses.create({ ...asked, stream: true })
    let text = ''
    const reading = (async () => {
      for await (const event of stream) {
        if (event.type !== 'response.output_text.delta') continue
        text += event.delta
        if (text === 'Hello there') stream.controller.abort()
      }
    })()
    await reading.catch((error: unknown) => assert.ok(error instanceof APIUserAbortError))
    await scene.engine.left(1)
    assert.equal(await onlyOutcome(scene), 'caller_left')
    const [row] = await scene.weir.ledger()
    assert.equal(row?.outputTokens, 2)
  })
})

describe('openai responses: broken stream', () => {
  it('[A1] ends with response.failed, and never as a short answer', { timeout: 20_000 }, async (t) => {
    const scene = await sharedStage(t, { script: { breakAfter: { tokens: 2, how: 'reset' } } })
    const events: ResponseStreamEvent[] = await all(await clientOf(scene).responses.create({ ...asked, stream: true }))
    const last = events.at(-1)
    assert.ok(last?.type === 'response.failed')
    assert.match(last.response.error?.message ?? '', /broke off/)
    assert.equal(last.response.status, 'failed')
  })
})
