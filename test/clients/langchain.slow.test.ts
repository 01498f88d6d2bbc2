import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ContextOverflowError } from '@langchain/core/errors'
import type { AIMessage, AIMessageChunk, UsageMetadata } from '@langchain/core/messages'
import type { ChatOpenAI, ChatOpenAIFields } from '@langchain/openai'
import { z } from 'zod'
import { chatStage, onlyOutcome, type ChatStage } from '../support/chat-stage.ts'
import { sharedStage } from '../support/shared-stage.ts'
import { gate } from '../support/waiting.ts'
import { recordingFetch, outcomes, pauseMs } from './attempts.ts'
import { langChains } from './langchain-majors.ts'
import { pixel, weatherAgent, weatherCall } from './samples.ts'

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const list: Item[] = []
  for await (const item of items) list.push(item)
  return list
}

function usageOf(message: AIMessage | AIMessageChunk) {
  const usage = message.usage_metadata as UsageMetadata | undefined
  return {
    input: usage?.input_tokens,
    cached: usage?.input_token_details?.cache_read,
    output: usage?.output_tokens,
    total: usage?.total_tokens,
  }
}

/** Asserts that the promise rejects with an error that has these fields. */
async function rejectsWith(attempt: Promise<unknown>, fields: object): Promise<Record<string, unknown>> {
  const error = (await attempt.then(
    () => assert.fail('the call should have failed'),
    (reason: unknown) => reason,
  )) as Record<string, unknown>
  assert.deepEqual(Object.fromEntries(Object.keys(fields).map((name) => [name, error[name]])), fields)
  return error
}

type ChatFields = ChatOpenAIFields & { fetch?: typeof fetch }

/** ChatOpenAI of each major, unchanged. It gets only the base address, the key and the slug. */
for (const {
  suffix,
  openai,
  messages: { HumanMessage, SystemMessage },
  tools: { tool },
} of langChains) {
  const isOlder = suffix !== ''

  const chatOf = ({ weir }: ChatStage, fields: ChatFields = {}): ChatOpenAI => {
    const { fetch, ...rest } = fields
    return new openai.ChatOpenAI({
      model: 'meta/test-8b',
      apiKey: weir.key,
      configuration: { baseURL: weir.base, ...(fetch ? { fetch } : {}) },
      ...rest,
    })
  }

  describe(`langchain${suffix}: chat`, () => {
    it('[C1][C2][E1] returns the text, the finish reason, the usage and the slug', async (t) => {
      const scene = await sharedStage(t, { script: { cachedTokens: 4 } })
      const answer = await chatOf(scene).invoke('Hi')

      assert.equal(answer.text, 'Hello there!')
      assert.equal(answer.response_metadata['finish_reason'], 'stop')
      assert.equal(answer.response_metadata['model_name'], 'meta/test-8b')
      assert.deepEqual(usageOf(answer), { input: 10, cached: 4, output: 3, total: 13 })
    })

    it('[E1] passes messages and settings on to the engine', async (t) => {
      const scene = await sharedStage(t)
      const chat = chatOf(scene, { temperature: 0.5, topP: 0.9, maxTokens: 20, stop: ['\n'] })
      await chat.invoke([new SystemMessage('Be brief.'), new HumanMessage('Hi')])
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
      })
    })

    it('[E1] answers a batch', async (t) => {
      const scene = await sharedStage(t, { limits: { max_concurrent_requests: 1 } })
      const answers = await chatOf(scene).batch(['Hi', 'Hi again', 'Still there?'])
      assert.deepEqual(
        answers.map((answer) => answer.text),
        ['Hello there!', 'Hello there!', 'Hello there!'],
      )
      assert.equal(scene.engine.maxRunning, 1)
    })
  })

  describe(`langchain${suffix}: streaming`, () => {
    it('[E2] yields each token, and the usage at the end', async (t) => {
      const scene = await sharedStage(t, { script: { cachedTokens: 4 } })
      const chunks = await all(await chatOf(scene).stream('Hi'))

      assert.deepEqual(chunks.map((chunk) => chunk.text).filter(Boolean), ['Hello', ' there', '!'])
      const whole = chunks.reduce((sum, chunk) => sum.concat(chunk))
      assert.deepEqual(usageOf(whole), { input: 10, cached: 4, output: 3, total: 13 })
      assert.equal(whole.response_metadata['finish_reason'], 'stop')
    })

    it('[E2] delivers each token as soon as the engine produces it', { timeout: 20_000 }, async (t) => {
      const { opened, open } = gate()
      const scene = await sharedStage(t, {
        script: { tokens: ['one', 'two'], hold: { afterTokens: 1, until: opened } },
      })
      let text = ''
      for await (const chunk of await chatOf(scene).stream('Hi')) {
        text += chunk.text
        // The engine produces its second token only after the first one has arrived here.
        if (text === 'one') open()
      }
      assert.equal(text, 'onetwo')
    })

    it('[E2] ends at [DONE], even if the engine keeps its socket open', { timeout: 20_000 }, async (t) => {
      const scene = await sharedStage(t, { script: { hangAfterDone: true } })
      const chunks = await all(await chatOf(scene).stream('Hi'))
      assert.equal(chunks.map((chunk) => chunk.text).join(''), 'Hello there!')
    })
  })

  describe(`langchain${suffix}: tools`, () => {
    const weather = tool(async ({ city }: { city: string }) => `cold in ${city}`, {
      name: 'get_weather',
      description: 'The weather in a city.',
      schema: z.object({ city: z.string() }),
    })

    it('[E1] are called, and their results are sent back', async (t) => {
      const scene = await sharedStage(t, { script: weatherAgent })
      const chat = chatOf(scene).bindTools([weather])
      const question = new HumanMessage('Hi')
      const asked = await chat.invoke([question])

      const [call] = asked.tool_calls ?? []
      assert.ok(call)
      assert.deepEqual([call.id, call.name, call.args], ['call_1', 'get_weather', { city: 'Hobart' }])
      const result = await weather.invoke(call)
      const answer = await chat.invoke([question, asked, result])
      assert.equal(answer.text, 'It is cold in Hobart.')

      const messages = scene.engine.calls[1]?.body['messages'] as { role: string; tool_call_id?: string }[]
      assert.deepEqual(
        messages.map(({ role, tool_call_id }) => [role, tool_call_id]),
        [
          ['user', undefined],
          ['assistant', undefined],
          ['tool', 'call_1'],
        ],
      )
    })

    it('[E2] are assembled from fragments', async (t) => {
      const toolCalls = [weatherCall, { id: 'call_2', name: 'get_time', arguments: ['{', '}'] }]
      const scene = await sharedStage(t, { script: { toolCalls } })
      const chunks: AIMessageChunk[] = await all(await chatOf(scene).bindTools([weather]).stream('Hi'))
      const whole = chunks.reduce((sum, chunk) => sum.concat(chunk))
      assert.deepEqual(
        whole.tool_calls?.map(({ id, name, args }) => [id, name, args]),
        [
          ['call_1', 'get_weather', { city: 'Hobart' }],
          ['call_2', 'get_time', {}],
        ],
      )
      assert.equal(chunks.flatMap((chunk) => chunk.tool_call_chunks ?? []).length, 7)
    })
  })

  describe(`langchain${suffix}: structured output`, () => {
    const city = z.object({ name: z.string(), people: z.number() })
    const hobart = { name: 'Hobart', people: 250_000 }
    const json = JSON.stringify(hobart)

    it('[E1] works with a JSON schema', async (t) => {
      const scene = await sharedStage(t, { script: { tokens: [json] } })
      const answer = await chatOf(scene).withStructuredOutput(city, { name: 'city', method: 'jsonSchema' }).invoke('Hi')
      assert.deepEqual(answer, hobart)
      const format = scene.engine.calls[0]?.body['response_format'] as { type: string; json_schema: { name: string } }
      assert.deepEqual([format.type, format.json_schema.name], ['json_schema', 'city'])
    })

    it('[E1] works with JSON mode', async (t) => {
      const scene = await sharedStage(t, { script: { tokens: [json] } })
      const answer = await chatOf(scene).withStructuredOutput(city, { method: 'jsonMode' }).invoke('Hi')
      assert.deepEqual(answer, hobart)
      assert.deepEqual(scene.engine.calls[0]?.body['response_format'], { type: 'json_object' })
    })

    it('[E1] works with a tool', async (t) => {
      const scene = await sharedStage(t, { script: { toolCalls: [{ id: 'call_1', name: 'city', arguments: [json] }] } })
      const chat = chatOf(scene).withStructuredOutput(city, { name: 'city', method: 'functionCalling' })
      assert.deepEqual(await chat.invoke('Hi'), hobart)
      assert.deepEqual(scene.engine.calls[0]?.body['tool_choice'], { type: 'function', function: { name: 'city' } })
    })
  })

  describe(`langchain${suffix}: vision`, () => {
    it('[C7] sends an image part with a data URL that reaches the engine', async (t) => {
      const scene = await sharedStage(t, { model: { categories: ['llm', 'vision'] } })
      const content = [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${pixel.toString('base64')}` } },
      ]
      await chatOf(scene).invoke([new HumanMessage({ content })])
      assert.deepEqual(scene.engine.calls[0]?.body['messages'], [{ role: 'user', content }])
    })
  })

  describe(`langchain${suffix}: errors`, () => {
    it('[K1][X1] a wrong key', async (t) => {
      const scene = await sharedStage(t)
      const attempt = chatOf(scene, { apiKey: 'weir-wrong' }).invoke('Hi')
      await rejectsWith(attempt, { status: 401, code: 'invalid_api_key', lc_error_code: 'MODEL_AUTHENTICATION' })
    })

    it('[X1] an unknown model', async (t) => {
      const scene = await sharedStage(t)
      const attempt = chatOf(scene, { model: 'meta/none' }).invoke('Hi')
      await rejectsWith(attempt, { status: 404, code: 'model_not_found', lc_error_code: 'MODEL_NOT_FOUND' })
    })

    it('[X1] a bad value, with code and param', async (t) => {
      const scene = await sharedStage(t)
      const attempt = chatOf(scene, { temperature: 3 }).invoke('Hi')
      await rejectsWith(attempt, { status: 400, code: 'invalid_value', param: 'temperature' })
      assert.equal(scene.engine.calls.length, 0)
    })

    it('[E12][X1] a prompt that is too long is recognised as such', async (t) => {
      const scene = await sharedStage(t)
      const attempt = chatOf(scene).invoke('word '.repeat(20_000))
      // Older versions have no class for this error, so their users match on the message.
      await assert.rejects(attempt, isOlder ? /maximum context length/ : ContextOverflowError)
    })

    it('[R3][X2] exceeding the rate limit, with Retry-After', async (t) => {
      const scene = await sharedStage(t, { config: { rate_limit: { requests_per_minute: 1 } } })
      const chat = chatOf(scene, { maxRetries: 0 })
      // Three requests, because a new minute may begin between two of them.
      const attempts = Promise.all([1, 2, 3].map(() => chat.invoke('Hi')))
      const error = await rejectsWith(attempts, {
        status: 429,
        code: 'rate_limit_exceeded',
        lc_error_code: 'MODEL_RATE_LIMIT',
      })
      const seconds = Number((error['headers'] as Headers).get('retry-after'))
      assert.ok(seconds >= 1 && seconds <= 59, `Retry-After: ${seconds}`)
    })
  })

  describe(`langchain${suffix}: retries`, { concurrency: true }, () => {
    it('[Q4][X2] retries after queue_full, when Retry-After says', async (t) => {
      const { opened, open } = gate()
      const limits = { max_concurrent_requests: 1, max_queue_depth: 0 }
      const scene = await chatStage(t, { limits, script: { hold: { afterTokens: 0, until: opened } } })
      const { fetch, attempts, firstAnswer } = recordingFetch()
      const first = chatOf(scene).invoke('Hi')
      await scene.engine.arrived(1)
      const second = chatOf(scene, { fetch }).invoke('Hi')
      await firstAnswer
      open()

      assert.equal((await second).text, 'Hello there!')
      await first
      assert.deepEqual(
        attempts.map(({ status }) => status),
        [429, 200],
      )
      const seconds = Number(attempts[0]?.retryAfter)
      assert.ok(seconds >= 2 && seconds <= 8, `Retry-After: ${seconds}`)
      // The older major uses its own pauses, of a second and more, and ignores the header.
      const least = isOlder ? 1000 : seconds * 1000
      assert.ok(pauseMs(attempts) >= least - 10, `it paused ${pauseMs(attempts)} ms`)
    })

    it('[X2] retries after an engine was overloaded, also when streaming', async (t) => {
      const scene = await chatStage(t)
      const { engine } = scene
      engine.script = () => (engine.calls.length === 1 ? { refuse: { status: 429, body: {} } } : {})
      const { fetch, attempts } = recordingFetch()
      const chunks = await all(await chatOf(scene, { fetch }).stream('Hi'))

      assert.equal(chunks.map((chunk) => chunk.text).join(''), 'Hello there!')
      assert.deepEqual(outcomes(attempts), [
        [503, '5'],
        [200, null],
      ])
    })
  })

  describe(`langchain${suffix}: abort`, () => {
    const never = new Promise<void>(() => {})

    it('[E2] aborting a stream frees the engine', { timeout: 20_000 }, async (t) => {
      const scene = await sharedStage(t, { script: { hold: { afterTokens: 1, until: never } } })
      const controller = new AbortController()
      const stream = await chatOf(scene).stream('Hi', { signal: controller.signal })
      const reading = (async () => {
        for await (const chunk of stream) {
          if (chunk.text !== 'Hello') continue
          controller.abort()
        }
      })()
      await assert.rejects(reading, isOlder ? { message: 'Aborted' } : { name: 'AbortError' })
      await scene.engine.left(1)
      assert.equal(await onlyOutcome(scene), 'caller_left')
    })

    it('[E2] breaking out of the loop frees the engine', { timeout: 20_000 }, async (t) => {
      // LangChain closes a stream only when the next token arrives, so there must be more tokens.
      const tokens = Array.from({ length: 10_000 }, () => 'x')
      const scene = await sharedStage(t, { script: { tokens, tokenMs: 5 } })
      for await (const chunk of await chatOf(scene).stream('Hi')) if (chunk.text === 'x') break
      await scene.engine.left(1)
      assert.ok((scene.engine.calls[0]?.tokensProduced ?? Infinity) < 10_000)
    })

    it('[E1] aborting before the answer frees the engine', { timeout: 20_000 }, async (t) => {
      const scene = await sharedStage(t, { script: { hold: { afterTokens: 0, until: never } } })
      const controller = new AbortController()
      const attempt = chatOf(scene).invoke('Hi', { signal: controller.signal })
      await scene.engine.arrived(1)
      controller.abort()
      await assert.rejects(attempt, { name: 'AbortError' })
      await scene.engine.left(1)
    })
  })

  describe(`langchain${suffix}: broken stream`, () => {
    for (const how of ['reset', 'clean end'] as const) {
      const title = `[E2][X1] raises an error after the last token, instead of returning a short answer (${how})`
      it(title, { timeout: 20_000 }, async (t) => {
        const scene = await sharedStage(t, { script: { breakAfter: { tokens: 2, how } } })
        let text = ''
        const reading = (async () => {
          for await (const chunk of await chatOf(scene).stream('Hi')) text += chunk.text
        })()
        await rejectsWith(reading, { code: 'upstream_error', type: 'server_error' })
        assert.equal(text, 'Hello there')
      })
    }
  })
}
