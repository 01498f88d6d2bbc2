import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventually } from '../support/waiting.ts'
import { becomesIdle, startService, type Chunk, type ModelService } from './service.ts'

const model = 'huggingfacetb/smollm2-135m-instruct'
const path = '/chat/completions'
const australia = [{ role: 'user', content: 'What is the capital of Australia?' }]
const poem = { model, messages: [{ role: 'user', content: 'Write a long poem.' }], max_tokens: 1000 }

describe('the default chat model', { timeout: 600_000 }, () => {
  let service: ModelService
  before(async () => {
    service = await startService(model)
  })
  after(() => service.close())

  const chat = async (body: object) => {
    const { status, json, text } = await service.post(path, { model, max_tokens: 24, ...body })
    assert.equal(status, 200, text)
    return json
  }

  it('knows the capital of Australia', async () => {
    const { choices, usage } = await chat({ messages: australia, temperature: 0 })
    assert.match(choices[0].message.content, /Canberra/)
    assert.equal(choices[0].finish_reason, 'stop')
    assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)
  })

  it('streams token by token, then usage', async () => {
    const body = { model, messages: australia, temperature: 0, max_tokens: 5, stream_options: { include_usage: true } }
    const chunks = await Array.fromAsync(service.stream(path, body))
    const texts = chunks.flatMap((chunk) => chunk.choices[0]?.delta.content || [])
    assert.equal(texts.join(''), 'The capital of Australia is')
    assert.equal(texts.length, 5)
    assert.equal(chunks.at(-2).choices[0].finish_reason, 'length')
    assert.equal(chunks.at(-1).usage.completion_tokens, 5)
  })

  it('gives the same text for the same seed, and another text for another seed', async () => {
    const say = async (seed: number) =>
      (await chat({ messages: [{ role: 'user', content: 'Tell me a story.' }], seed, temperature: 1, max_tokens: 16 }))
        .choices[0].message.content
    const first = await say(7)
    assert.equal(await say(7), first)
    assert.notEqual(await say(8), first)
  })

  it('reuses the beginning of an earlier prompt, and counts it as cached', async () => {
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

  it('stops at a stop string, without showing it', async () => {
    const { choices } = await chat({ messages: australia, temperature: 0, stop: [' Canberra'] })
    assert.equal(choices[0].message.content, 'The capital of Australia is')
    assert.equal(choices[0].finish_reason, 'stop')
  })

  it('reports log probabilities', async () => {
    const { choices } = await chat({
      messages: australia,
      temperature: 0,
      max_tokens: 3,
      logprobs: true,
      top_logprobs: 2,
    })
    const { content } = choices[0].logprobs
    assert.equal(content.map((entry: { token: string }) => entry.token).join(''), choices[0].message.content)
    for (const { logprob, top_logprobs: top } of content) {
      assert.ok(logprob <= 0)
      assert.equal(top.length, 2)
      assert.ok(top[0].logprob >= top[1].logprob && Math.abs(top[0].logprob - logprob) < 1e-9)
    }
  })

  it('writes JSON that fits the schema, 20 times out of 20', async () => {
    // Short names and values: the test is about the rules, and every token takes time.
    const schema = {
      type: 'object',
      properties: {
        id: { type: 'string', minLength: 1, maxLength: 3 },
        new: { type: 'boolean' },
        size: { type: 'integer', minimum: 1, maximum: 99 },
      },
      required: ['id', 'size'],
      additionalProperties: false,
    }
    const response_format = { type: 'json_schema', json_schema: { name: 'shoe', schema } }
    const messages = [{ role: 'user', content: 'A shoe as JSON.' }]
    const ask = (seed: number) => chat({ messages, response_format, seed, max_tokens: 60 })
    const answers = []
    for (let seed = 0; seed < 20; seed += 4) {
      answers.push(...(await Promise.all([ask(seed), ask(seed + 1), ask(seed + 2), ask(seed + 3)])))
    }
    assert.equal(answers.length, 20)
    for (const { choices } of answers) {
      assert.equal(choices[0].finish_reason, 'stop', choices[0].message.content)
      const { id, size, new: isNew, ...others } = JSON.parse(choices[0].message.content)
      assert.ok(typeof id === 'string' && id.length >= 1 && id.length <= 3)
      assert.ok(Number.isInteger(size) && size >= 1 && size <= 99)
      assert.ok(isNew === undefined || typeof isNew === 'boolean')
      assert.deepEqual(others, {})
    }
  })

  it('calls the tool it is forced to call', async () => {
    const parameters = { type: 'object', properties: { city: { type: 'string', maxLength: 20 } }, required: ['city'] }
    const { choices } = await chat({
      messages: [{ role: 'user', content: 'What is the weather in Canberra?' }],
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
    const { json } = await service.post('/completions', { ...body, echo: true, logprobs: 1 })
    const [choice] = json.choices
    assert.ok(choice.text.startsWith('The sky is'))
    assert.equal(choice.logprobs.tokens.length, choice.logprobs.token_logprobs.length)
    assert.equal(choice.logprobs.tokens.join('').trim(), choice.text)
    const two = await service.post('/completions', { ...body, prompt: ['The sky is', 'Grass is'], n: 2 })
    assert.deepEqual(
      two.json.choices.map((each: { index: number }) => each.index),
      [0, 1, 2, 3],
    )
  })

  it('refuses a prompt beyond its context', async () => {
    const messages = [{ role: 'user', content: 'word '.repeat(9000) }]
    const { status, json } = await service.post(path, { model, messages })
    assert.equal(status, 400)
    assert.equal(json.error.code, 'context_length_exceeded')
  })

  it('answers eight chats at once', async (context) => {
    const work = (index: number) =>
      chat({ messages: [{ role: 'user', content: `Count from ${index}.` }], temperature: 0, max_tokens: 16 })
    const speed = async (count: number) => {
      const started = performance.now()
      const answers = await Promise.all(Array.from({ length: count }, (_, index) => work(index)))
      const tokens = answers.reduce((sum, answer) => sum + answer.usage.completion_tokens, 0)
      return (1000 * tokens) / (performance.now() - started)
    }
    const one = await speed(1)
    const eight = await speed(8)
    // Reported rather than asserted, because it depends on the cores.
    context.diagnostic(
      `one ${one.toFixed(1)} tokens/s, eight ${eight.toFixed(1)} tokens/s, ${(eight / one).toFixed(2)} times`,
    )
  })

  it('stops within a few tokens when its callers disconnect', async () => {
    const { json } = await service.get('/queue/status')
    const lane = json.data.find((each: { model: string }) => each.model === model)
    const callers = lane.limits.max_concurrent_requests as number
    // As many as it serves at a time: if one of them went on, there would be no room for the next request.
    const left = await Promise.all(Array.from({ length: callers }, () => leaveAfter(5)))
    await becomesIdle(service.hostPid('llama'), 3000)

    const started = performance.now()
    const { choices } = await chat({ messages: australia, temperature: 0, max_tokens: 8 })
    assert.match(choices[0].message.content, /Canberra/)
    assert.ok(performance.now() - started < 10_000)

    await eventually('all of them are in the ledger', async () => (await rowsLeft()).length === callers)
    for (const { requestId, outputTokens } of await rowsLeft()) {
      const seen = left.find((each) => each.requestId === requestId)?.tokens ?? 0
      assert.ok(seen >= 5 && outputTokens >= seen && outputTokens <= seen + 3, `${outputTokens} for ${seen}`)
    }
  })

  /** Reads that many tokens of a poem and hangs up. */
  async function leaveAfter(tokens: number): Promise<{ requestId: string; tokens: number }> {
    let seen = 0
    let requestId = ''
    for await (const chunk of service.stream(path, poem)) {
      requestId = chunk.id.replace('chatcmpl-', '')
      if (chunk.choices[0].delta.content) seen++
      if (seen === tokens) break
    }
    return { requestId, tokens: seen }
  }

  const rowsLeft = async () => (await service.weir.ledger()).filter(({ outcome }) => outcome === 'caller_left')

  it('survives kill -9 of its host: the stream ends in an error, the next request works', async () => {
    const chunks: Chunk[] = []
    for await (const chunk of service.stream(path, poem)) {
      if (chunks.push(chunk) === 5) process.kill(service.hostPid('llama'), 'SIGKILL')
    }
    const { error } = chunks.at(-1)
    assert.equal(error?.code, 'upstream_error')
    assert.ok(chunks.length < 20)
    const { choices } = await chat({ messages: australia, temperature: 0 })
    assert.match(choices[0].message.content, /Canberra/)
    await eventually('the broken answer is in the ledger', async () =>
      (await service.weir.ledger()).some(({ outcome }) => outcome === 'engine_broke'),
    )
  })
})

describe('the better chat model', { timeout: 600_000 }, () => {
  const better = 'qwen/qwen2.5-coder-0.5b-instruct'
  let service: ModelService
  before(async () => {
    service = await startService(better)
  })
  after(() => service.close())

  it('answers a question of geography and one of arithmetic', async () => {
    for (const [content, right] of [
      ['What is the capital of Australia?', /Canberra/],
      ['What is 12 times 3? Answer with the number only.', /36/],
    ] as const) {
      const messages = [{ role: 'user', content }]
      const { json } = await service.post(path, { model: better, messages, temperature: 0, max_tokens: 24 })
      assert.match(json.choices[0].message.content, right)
    }
  })

  it('calls the tool that it has to choose', async () => {
    const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
    const { json } = await service.post(path, {
      model: better,
      messages: [{ role: 'user', content: 'What is the weather in Paris?' }],
      tools: [{ type: 'function', function: { name: 'get_weather', description: 'Current weather', parameters } }],
      tool_choice: 'required',
      temperature: 0,
      max_tokens: 80,
    })
    const [call] = json.choices[0].message.tool_calls ?? assert.fail(JSON.stringify(json.choices[0]))
    assert.equal(call.function.name, 'get_weather')
    assert.deepEqual(JSON.parse(call.function.arguments), { city: 'Paris' })
  })
})
