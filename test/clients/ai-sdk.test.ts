import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { APICallError, generateText, isStepCount, Output, RetryError, StreamProviderError, streamText, tool } from 'ai'
import { z } from 'zod'
import { chatStage, onlyOutcome, type ChatStage } from '../support/chat-stage.ts'
import { sharedStage } from '../support/shared-stage.ts'
import { gate } from '../support/waiting.ts'
import { recordingFetch, outcomes, pauseMs } from './attempts.ts'
import { pixel, weatherAgent, weatherCall } from './samples.ts'

/** The ai SDK with its OpenAI-compatible provider, unchanged. It gets only the base address and the key. */
function modelOf({ weir }: ChatStage, options: { apiKey?: string; slug?: string; fetch?: typeof fetch } = {}) {
  const { slug = 'meta/test-8b', ...settings } = options
  const provider = createOpenAICompatible({
    name: 'weir',
    baseURL: weir.base,
    apiKey: weir.key,
    includeUsage: true,
    supportsStructuredOutputs: true,
    ...settings,
  })
  return provider(slug)
}

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const list: Item[] = []
  for await (const item of items) list.push(item)
  return list
}

/** Asserts that the promise rejects with the SDK's error for a failed API call. */
async function refusal(attempt: PromiseLike<unknown>): Promise<APICallError> {
  const error = await Promise.resolve(attempt).then(
    () => assert.fail('the call should have failed'),
    (reason: unknown) => reason,
  )
  assert.ok(APICallError.isInstance(error), String(error))
  return error
}

function bodyOf(error: APICallError): { message?: string; type?: string; param?: unknown; code?: unknown } {
  return (error.data as { error: object }).error
}

describe('ai: chat', () => {
  it('[C1][C2][E1] returns the text, the finish reason, the usage and the slug', async (t) => {
    const scene = await sharedStage(t, { script: { cachedTokens: 4 } })
    const result = await generateText({ model: modelOf(scene), prompt: 'Hi' })

    assert.equal(result.text, 'Hello there!')
    assert.equal(result.finishReason, 'stop')
    assert.equal(result.response.modelId, 'meta/test-8b')
    assert.match(result.response.id, /^chatcmpl-/)
    assert.equal(result.usage.inputTokens, 10)
    assert.equal(result.usage.outputTokens, 3)
    assert.equal(result.usage.totalTokens, 13)
    assert.equal(result.usage.inputTokenDetails.cacheReadTokens, 4)
    assert.equal(result.response.headers?.['x-queue-wait-ms'], '0')
  })

  it('[E1] passes instructions and settings on to the engine', async (t) => {
    const scene = await sharedStage(t)
    await generateText({
      model: modelOf(scene),
      instructions: 'Be brief.',
      prompt: 'Hi',
      maxOutputTokens: 20,
      temperature: 0.5,
      topP: 0.9,
      stopSequences: ['\n'],
      seed: 7,
    })
    assert.deepEqual(scene.engine.calls[0]?.body, {
      model: 'engine-name',
      max_tokens: 20,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hi' },
      ],
      temperature: 0.5,
      top_p: 0.9,
      stop: ['\n'],
      seed: 7,
    })
  })

  it('[E1] returns reasoning separately from the text', async (t) => {
    const scene = await sharedStage(t, { script: { reasoning: ['Let me', ' see.'] } })
    const whole = await generateText({ model: modelOf(scene), prompt: 'Hi' })
    assert.deepEqual([whole.reasoningText, whole.text], ['Let me see.', 'Hello there!'])
    const streamed = streamText({ model: modelOf(scene), prompt: 'Hi' })
    assert.deepEqual([await streamed.reasoningText, await streamed.text], ['Let me see.', 'Hello there!'])
  })
})

describe('ai: streaming', () => {
  it('[E2] yields each token, then the finish reason and the usage', async (t) => {
    const scene = await sharedStage(t, { script: { cachedTokens: 4 } })
    const result = streamText({ model: modelOf(scene), prompt: 'Hi' })

    assert.deepEqual(await all(result.textStream), ['Hello', ' there', '!'])
    assert.equal(await result.finishReason, 'stop')
    const usage = await result.usage
    assert.deepEqual([usage.inputTokens, usage.outputTokens, usage.inputTokenDetails.cacheReadTokens], [10, 3, 4])
    assert.equal((await result.response).modelId, 'meta/test-8b')
  })

  it('[E2] delivers each token as soon as the engine produces it', { timeout: 20_000 }, async (t) => {
    const { opened, open } = gate()
    const scene = await sharedStage(t, { script: { tokens: ['one', 'two'], hold: { afterTokens: 1, until: opened } } })
    const seen: string[] = []
    for await (const text of streamText({ model: modelOf(scene), prompt: 'Hi' }).textStream) {
      seen.push(text)
      // The engine produces its second token only after the first one has arrived here.
      open()
    }
    assert.deepEqual(seen, ['one', 'two'])
  })

  it('[E2] ends at [DONE], even if the engine keeps its socket open', { timeout: 20_000 }, async (t) => {
    const scene = await sharedStage(t, { script: { hangAfterDone: true } })
    const result = streamText({ model: modelOf(scene), prompt: 'Hi' })
    assert.equal(await result.text, 'Hello there!')
  })
})

describe('ai: tools', () => {
  const tools = {
    get_weather: tool({
      description: 'The weather in a city.',
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => `cold in ${city}`,
    }),
  }

  it('[E1] are called and run, and their results are sent back', async (t) => {
    const scene = await sharedStage(t, { script: weatherAgent })
    const result = await generateText({ model: modelOf(scene), prompt: 'Hi', tools, stopWhen: isStepCount(3) })

    assert.equal(result.text, 'It is cold in Hobart.')
    assert.deepEqual(
      result.steps.map((step) => step.finishReason),
      ['tool-calls', 'stop'],
    )
    assert.deepEqual(
      result.steps[0]?.toolCalls.map(({ toolCallId, toolName, input }) => [toolCallId, toolName, input]),
      [['call_1', 'get_weather', { city: 'Hobart' }]],
    )
    const messages = scene.engine.calls[1]?.body['messages'] as object[]
    assert.deepEqual(messages.at(-1), { role: 'tool', tool_call_id: 'call_1', content: 'cold in Hobart' })
  })

  it('[E2] are assembled from fragments, and the loop continues', async (t) => {
    const scene = await sharedStage(t, { script: weatherAgent })
    const result = streamText({ model: modelOf(scene), prompt: 'Hi', tools, stopWhen: isStepCount(3) })
    const pieces: string[] = []
    for await (const part of result.stream) if (part.type === 'tool-input-delta') pieces.push(part.delta)

    assert.deepEqual(pieces, [...weatherCall.arguments])
    assert.equal(await result.text, 'It is cold in Hobart.')
    assert.equal(scene.engine.calls.length, 2)
  })

  it('[E1] can be chosen by name', async (t) => {
    const scene = await sharedStage(t, { script: weatherAgent })
    const toolChoice = { type: 'tool', toolName: 'get_weather' } as const
    await generateText({ model: modelOf(scene), prompt: 'Hi', tools, toolChoice })
    assert.deepEqual(scene.engine.calls[0]?.body['tool_choice'], {
      type: 'function',
      function: { name: 'get_weather' },
    })
  })
})

describe('ai: structured output', () => {
  const output = Output.object({ schema: z.object({ name: z.string(), people: z.number() }) })
  const tokens = ['{"name":', '"Hobart",', '"people":250000}']

  it('[E1] is parsed, and the engine gets the schema', async (t) => {
    const scene = await sharedStage(t, { script: { tokens } })
    const result = await generateText({ model: modelOf(scene), prompt: 'Hi', output })
    assert.deepEqual(result.output, { name: 'Hobart', people: 250_000 })
    const format = scene.engine.calls[0]?.body['response_format'] as {
      type: string
      json_schema: { schema: { properties: object } }
    }
    assert.equal(format.type, 'json_schema')
    assert.deepEqual(Object.keys(format.json_schema.schema.properties), ['name', 'people'])
  })

  it('[E2] is streamed as partial objects', async (t) => {
    const scene = await sharedStage(t, { script: { tokens } })
    const result = streamText({ model: modelOf(scene), prompt: 'Hi', output })
    const partials = await all(result.partialOutputStream)
    assert.deepEqual(partials.at(-1), { name: 'Hobart', people: 250_000 })
    assert.ok(partials.some((partial) => partial.name === 'Hobart' && partial.people === undefined))
  })
})

describe('ai: vision', () => {
  it('[C7] sends a file as a data URL that reaches the engine', async (t) => {
    const scene = await sharedStage(t, { model: { categories: ['llm', 'vision'] } })
    await generateText({
      model: modelOf(scene),
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'file', data: pixel, mediaType: 'image/png' },
          ],
        },
      ],
    })
    assert.deepEqual(scene.engine.calls[0]?.body['messages'], [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is this?' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${pixel.toString('base64')}` } },
        ],
      },
    ])
  })
})

describe('ai: errors', () => {
  it('[K1][X1] a wrong key', async (t) => {
    const scene = await sharedStage(t)
    const error = await refusal(generateText({ model: modelOf(scene, { apiKey: 'weir-wrong' }), prompt: 'Hi' }))
    assert.equal(error.statusCode, 401)
    assert.equal(bodyOf(error).code, 'invalid_api_key')
    assert.equal(error.isRetryable, false)
  })

  it('[X1] an unknown model, with the message of Weir', async (t) => {
    const scene = await sharedStage(t)
    const error = await refusal(generateText({ model: modelOf(scene, { slug: 'meta/none' }), prompt: 'Hi' }))
    assert.equal(error.statusCode, 404)
    assert.match(error.message, /meta\/none/)
    assert.deepEqual([bodyOf(error).code, bodyOf(error).param], ['model_not_found', 'model'])
  })

  it('[X1] a bad value, with code and param', async (t) => {
    const scene = await sharedStage(t)
    const error = await refusal(generateText({ model: modelOf(scene), prompt: 'Hi', temperature: 3 }))
    assert.equal(error.statusCode, 400)
    assert.deepEqual([bodyOf(error).code, bodyOf(error).param], ['invalid_value', 'temperature'])
    assert.equal(scene.engine.calls.length, 0)
  })

  it('[L4] a parameter that the model does not list', async (t) => {
    const scene = await sharedStage(t)
    const error = await refusal(generateText({ model: modelOf(scene), prompt: 'Hi', presencePenalty: 1 }))
    assert.deepEqual([bodyOf(error).code, bodyOf(error).param], ['unsupported_parameter', 'presence_penalty'])
    assert.equal(scene.engine.calls.length, 0)
  })

  it('[R3][X2] exceeding the rate limit, with Retry-After', async (t) => {
    const scene = await sharedStage(t, { config: { rate_limit: { requests_per_minute: 1 } } })
    // Three requests, because a new minute may begin between two of them.
    const attempts = [1, 2, 3].map(() => generateText({ model: modelOf(scene), prompt: 'Hi', maxRetries: 0 }))
    const error = await refusal(Promise.all(attempts))
    assert.equal(error.statusCode, 429)
    assert.equal(bodyOf(error).code, 'rate_limit_exceeded')
    assert.equal(error.isRetryable, true)
    const seconds = Number(error.responseHeaders?.['retry-after'])
    assert.ok(seconds >= 1 && seconds <= 59, `Retry-After: ${seconds}`)
  })

  it('[E2][X1] a refused stream reports the refusal and ends', { timeout: 20_000 }, async (t) => {
    const scene = await sharedStage(t)
    const result = streamText({ model: modelOf(scene, { slug: 'meta/none' }), prompt: 'Hi', onError() {} })
    const parts = await all(result.stream)
    const failed = parts.find((part) => part.type === 'error')
    assert.ok(APICallError.isInstance(failed?.error))
    assert.equal(failed.error.statusCode, 404)
  })
})

// The SDK's own first pause is 2 s, so one of 5 s shows that it respects Retry-After.
describe('ai: retries', { concurrency: true }, () => {
  it('[Q6][X2] retries 5 s after model_overloaded', async (t) => {
    const { opened, open } = gate()
    const limits = { max_concurrent_requests: 1, max_wait_ms: 100 }
    const scene = await chatStage(t, { limits, script: { hold: { afterTokens: 0, until: opened } } })
    const { fetch, attempts, firstAnswer } = recordingFetch()
    const first = generateText({ model: modelOf(scene), prompt: 'Hi' })
    await scene.engine.arrived(1)
    const second = generateText({ model: modelOf(scene, { fetch }), prompt: 'Hi' })
    await firstAnswer
    open()

    assert.equal((await second).text, 'Hello there!')
    await first
    assert.deepEqual(outcomes(attempts), [
      [503, '5'],
      [200, null],
    ])
    assert.ok(pauseMs(attempts) >= 4990, `it paused ${pauseMs(attempts)} ms`)
  })

  it('[X2] retries 5 s after an engine was overloaded, also when streaming', async (t) => {
    const scene = await chatStage(t)
    const { engine } = scene
    engine.script = () => (engine.calls.length === 1 ? { refuse: { status: 429, body: {} } } : {})
    const { fetch, attempts } = recordingFetch()
    const result = streamText({ model: modelOf(scene, { fetch }), prompt: 'Hi' })

    assert.equal(await result.text, 'Hello there!')
    assert.deepEqual(outcomes(attempts), [
      [503, '5'],
      [200, null],
    ])
    assert.ok(pauseMs(attempts) >= 4990, `it paused ${pauseMs(attempts)} ms`)
  })

  it('[X1][X2] gives up after its retries, with the last error', async (t) => {
    const scene = await chatStage(t, { script: { refuse: { status: 500, body: {} } } })
    const { fetch, attempts } = recordingFetch()
    const attempt = generateText({ model: modelOf(scene, { fetch }), prompt: 'Hi', maxRetries: 1 })
    const error = await attempt.then(
      () => assert.fail('the call should have failed'),
      (reason: unknown) => reason,
    )
    assert.ok(RetryError.isInstance(error))
    assert.ok(APICallError.isInstance(error.lastError))
    assert.equal(bodyOf(error.lastError).code, 'upstream_error')
    assert.deepEqual(outcomes(attempts), [
      [502, '2'],
      [502, '2'],
    ])
  })
})

describe('ai: abort', () => {
  const never = new Promise<void>(() => {})

  it('[E2] aborting a stream frees the engine', { timeout: 20_000 }, async (t) => {
    const scene = await sharedStage(t, { script: { hold: { afterTokens: 1, until: never } } })
    const controller = new AbortController()
    const result = streamText({ model: modelOf(scene), prompt: 'Hi', abortSignal: controller.signal })
    const kinds: string[] = []
    for await (const part of result.stream) {
      kinds.push(part.type)
      if (part.type !== 'text-delta') continue
      controller.abort()
    }
    assert.equal(kinds.at(-1), 'abort')
    await scene.engine.left(1)
    assert.equal(await onlyOutcome(scene), 'caller_left')
  })

  it('[E1] aborting before the answer frees the engine', { timeout: 20_000 }, async (t) => {
    const scene = await sharedStage(t, { script: { hold: { afterTokens: 0, until: never } } })
    const controller = new AbortController()
    const attempt = generateText({ model: modelOf(scene), prompt: 'Hi', abortSignal: controller.signal })
    await scene.engine.arrived(1)
    controller.abort()
    await assert.rejects(attempt, { name: 'AbortError' })
    await scene.engine.left(1)
  })
})

describe('ai: broken stream', () => {
  for (const how of ['reset', 'clean end'] as const) {
    it(
      `[E2][X1] raises an error after the last token, instead of returning a short answer (${how})`,
      { timeout: 20_000 },
      async (t) => {
        const scene = await sharedStage(t, { script: { breakAfter: { tokens: 2, how } } })
        const errors: unknown[] = []
        const result = streamText({
          model: modelOf(scene),
          prompt: 'Hi',
          onError({ error }) {
            errors.push(error)
          },
        })
        const parts = await all(result.stream)
        const text = parts.map((part) => (part.type === 'text-delta' ? part.text : '')).join('')
        assert.equal(text, 'Hello there')
        assert.ok(errors.length === 1 && StreamProviderError.isInstance(errors[0]))
        assert.equal(errors[0].code, 'upstream_error')
        assert.match(errors[0].message, /broke off/)
        assert.equal(await result.finishReason, 'error')
      },
    )
  }
})
