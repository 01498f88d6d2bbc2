import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { Client } from 'undici'
import { startEngine } from './engine.ts'
import type { TestEngine } from './engine.ts'

const model = 'tinyllama/tinyllama-1.1b-chat'
const france = [{ role: 'user', content: 'What is the capital of France?' }]

describe('the default chat model', { timeout: 600_000 }, () => {
  let engine: TestEngine
  before(async () => {
    engine = await startEngine('llama', model)
  })
  after(() => engine.close())

  const chat = async (body: object) => {
    const { status, json, text } = await engine.post('/v1/chat/completions', { model, max_tokens: 24, ...body })
    assert.equal(status, 200, text)
    return json
  }

  it('knows the capital of France', async () => {
    const { choices, usage } = await chat({ messages: france, temperature: 0 })
    assert.match(choices[0].message.content, /Paris/)
    assert.equal(choices[0].finish_reason, 'stop')
    assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)
  })

  it('streams token by token, then usage', async () => {
    const body = { model, messages: france, temperature: 0, max_tokens: 8, stream_options: { include_usage: true } }
    const chunks = await Array.fromAsync(engine.stream('/v1/chat/completions', body))
    const texts = chunks.flatMap((chunk) => chunk.choices[0]?.delta.content ?? [])
    assert.equal(texts.join(''), 'The capital of France is Paris, which')
    assert.ok(texts.length >= 8, `${texts.length} pieces`)
    assert.equal(chunks.at(-2).choices[0].finish_reason, 'length')
    assert.equal(chunks.at(-1).usage.completion_tokens, 8)
  })

  it('gives the same text for the same seed, another for another', async () => {
    const say = async (seed: number) =>
      (await chat({ messages: [{ role: 'user', content: 'Tell me a story.' }], seed, temperature: 1, max_tokens: 16 }))
        .choices[0].message.content
    const first = await say(7)
    assert.equal(await say(7), first)
    assert.notEqual(await say(8), first)
  })

  it('reuses the beginning of an earlier prompt and says so', async () => {
    const system = {
      role: 'system',
      content: 'You are a guide to the museums of Vienna. Answer in one short sentence.',
    }
    const first = await chat({ messages: [system, { role: 'user', content: 'Hello.' }], max_tokens: 4, temperature: 0 })
    const second = await chat({
      messages: [system, { role: 'user', content: 'Goodbye.' }],
      max_tokens: 4,
      temperature: 0,
    })
    const cached = second.usage.prompt_tokens_details.cached_tokens
    assert.ok(cached >= 20 && cached < second.usage.prompt_tokens, `${cached} of ${second.usage.prompt_tokens}`)
    assert.ok(first.usage.prompt_tokens_details.cached_tokens < cached)
  })

  it('stops where it is told, without showing the stop text', async () => {
    const { choices } = await chat({ messages: france, temperature: 0, stop: [' Paris'] })
    assert.equal(choices[0].message.content, 'The capital of France is')
    assert.equal(choices[0].finish_reason, 'stop')
  })

  it('reports log probabilities', async () => {
    const { choices } = await chat({ messages: france, temperature: 0, max_tokens: 3, logprobs: true, top_logprobs: 2 })
    const { content } = choices[0].logprobs
    assert.equal(content.map((entry: { token: string }) => entry.token).join(''), choices[0].message.content)
    for (const { logprob, top_logprobs: top } of content) {
      assert.ok(logprob <= 0)
      assert.equal(top.length, 2)
      assert.ok(top[0].logprob >= top[1].logprob && Math.abs(top[0].logprob - logprob) < 1e-9)
    }
  })

  it('writes JSON that fits the schema, 20 times out of 20', async () => {
    const schema = {
      type: 'object',
      properties: {
        city: { type: 'string', minLength: 1, maxLength: 6 },
        old: { type: 'boolean' },
        people: { type: 'integer', minimum: 1, maximum: 999 },
      },
      required: ['city', 'people'],
      additionalProperties: false,
    }
    const response_format = { type: 'json_schema', json_schema: { name: 'city', schema } }
    for (let batch = 0; batch < 5; batch++) {
      const answers = await Promise.all(
        [0, 1, 2, 3].map((index) => {
          const messages = [{ role: 'user', content: 'Describe a city as JSON.' }]
          return chat({ messages, response_format, seed: batch * 4 + index, max_tokens: 90 })
        }),
      )
      for (const { choices } of answers) {
        assert.equal(choices[0].finish_reason, 'stop', choices[0].message.content)
        const value = JSON.parse(choices[0].message.content)
        assert.ok(value.city.length >= 1 && value.city.length <= 6)
        assert.ok(['boolean', 'undefined'].includes(typeof value.old))
        assert.ok(Number.isInteger(value.people) && value.people >= 1 && value.people <= 999)
        assert.ok(Object.keys(value).every((key) => key in schema.properties))
      }
    }
  })

  it('calls the tool it must call', async () => {
    const parameters = { type: 'object', properties: { city: { type: 'string', maxLength: 20 } }, required: ['city'] }
    const { choices } = await chat({
      messages: [{ role: 'user', content: 'What is the weather in Paris?' }],
      tools: [
        { type: 'function', function: { name: 'get_weather', description: 'The weather of a city', parameters } },
      ],
      tool_choice: { type: 'function', function: { name: 'get_weather' } },
      temperature: 0,
      max_tokens: 60,
    })
    const [call] = choices[0].message.tool_calls
    assert.equal(choices[0].finish_reason, 'tool_calls')
    assert.equal(call.function.name, 'get_weather')
    assert.deepEqual(Object.keys(JSON.parse(call.function.arguments)), ['city'])
  })

  it('completes text, with echo and log probabilities of the prompt', async () => {
    const body = { model, prompt: 'The sky is', max_tokens: 3, temperature: 0 }
    const { json } = await engine.post('/v1/completions', { ...body, echo: true, logprobs: 1 })
    const [choice] = json.choices
    assert.ok(choice.text.startsWith('The sky is'))
    assert.equal(choice.logprobs.tokens.length, choice.logprobs.token_logprobs.length)
    assert.equal(choice.logprobs.tokens.join('').trim(), choice.text)
    const two = await engine.post('/v1/completions', { ...body, prompt: ['The sky is', 'Grass is'], n: 2 })
    assert.deepEqual(
      two.json.choices.map((each: { index: number }) => each.index),
      [0, 1, 2, 3],
    )
  })

  it('refuses a prompt beyond its context', async () => {
    const messages = [{ role: 'user', content: 'word '.repeat(3000) }]
    const { status, json } = await engine.post('/v1/chat/completions', { model, messages })
    assert.equal(status, 400)
    assert.equal(json.error.code, 'context_length_exceeded')
  })

  it('batches eight chats at once', async (context) => {
    const work = (index: number) =>
      chat({ messages: [{ role: 'user', content: `Count from ${index}.` }], temperature: 0, max_tokens: 8 })
    const speed = async (count: number) => {
      const started = performance.now()
      const answers = await Promise.all(Array.from({ length: count }, (_, index) => work(index)))
      const tokens = answers.reduce((sum, answer) => sum + answer.usage.completion_tokens, 0)
      return (1000 * tokens) / (performance.now() - started)
    }
    const one = await speed(1)
    const eight = await speed(8)
    // Reported, not asserted: it depends on the cores.
    context.diagnostic(
      `one ${one.toFixed(1)} tokens/s, eight ${eight.toFixed(1)} tokens/s, ${(eight / one).toFixed(2)} times`,
    )
  })

  it('stops working within a token when the caller leaves', async () => {
    const connection = new Client('http://engine', { socketPath: await engine.supervisor.socket('llama') })
    const body = JSON.stringify({
      model,
      messages: [{ role: 'user', content: 'Write a long poem.' }],
      max_tokens: 1000,
      stream: true,
    })
    const response = await connection.request({ method: 'POST', path: '/v1/chat/completions', body })
    for await (const chunk of response.body as AsyncIterable<Buffer>) if (chunk.includes('content":" ')) break
    await connection.destroy()
    await setTimeout(1000)
    const { json } = await engine.get('/health')
    assert.equal(json.active_requests, 0)
  })

  it('survives kill -9: the stream breaks, the next request works', async () => {
    const body = { model, messages: [{ role: 'user', content: 'Write a long poem.' }], max_tokens: 1000 }
    await assert.rejects(async () => {
      let pieces = 0
      for await (const chunk of engine.stream('/v1/chat/completions', body)) {
        assert.ok(chunk)
        if (++pieces === 4) process.kill(engine.supervisor.status().llama.pid ?? 0, 'SIGKILL')
      }
    })
    const { choices } = await chat({ messages: france, temperature: 0 })
    assert.match(choices[0].message.content, /Paris/)
    assert.equal(engine.supervisor.status().llama.restarts, 1)
  })
})
