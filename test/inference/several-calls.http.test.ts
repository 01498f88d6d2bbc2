import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { refusalOf, type StageOptions } from '../support/chat-stage.ts'
import { jsonStage, type JsonStage } from '../support/json-stage.ts'
import { rawChat, rawClient } from '../support/raw-client.ts'
import type { EngineCallSeen, Script } from '../support/scripted-engine.ts'
import { eventually, within } from '../support/waiting.ts'
import { readEvents } from '../support/weir.ts'

/** A model behind a server that answers each call with one choice. */
async function stage(t: TestContext, options: StageOptions = {}): Promise<JsonStage> {
  const model = { supported_parameters: ['temperature', 'seed', 'n', 'best_of', 'echo'] }
  return jsonStage(t, { engine: { kind: 'ollama' }, ...options, model: { ...model, ...options.model } })
}

const messages = [{ role: 'user', content: 'Hi' }]

/** The n-th call says its number. */
function counting(): (call: EngineCallSeen) => Script {
  let number = 0
  return () => ({ tokens: [`a${number}`, `b${number++}`], promptTokens: 10, cachedTokens: number > 1 ? 9 : 0 })
}

interface Chunk {
  readonly id: string
  readonly choices: readonly {
    readonly index: number
    readonly delta: { readonly role?: string; readonly content?: string }
    readonly finish_reason: string | null
  }[]
  readonly usage?: object
}

const usage = {
  prompt_tokens: 10,
  completion_tokens: 4,
  total_tokens: 14,
  prompt_tokens_details: { cached_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0 },
}

describe('several choices from an engine that generates one at a time', () => {
  it('are one answer and one row, with the prompt billed once', async (t) => {
    const { post, engine, weir } = await stage(t)
    engine.script = counting()
    const response = await post('/chat/completions', { messages, n: 2, seed: 7, max_tokens: 5 })
    const answer = (await response.json()) as { choices: { index: number; message: { content: string } }[] }
    assert.deepEqual(
      answer.choices.map(({ index, message }) => [index, message.content]),
      [
        [0, 'a0b0'],
        [1, 'a1b1'],
      ],
    )
    assert.deepEqual((answer as { usage?: object }).usage, usage)
    assert.deepEqual(
      engine.calls.map(({ body }) => [body['n'], body['seed'], body['max_tokens'], body['messages']]),
      [
        [undefined, 7, 5, messages],
        [undefined, 8, 5, messages],
      ],
      'the same request with another seed',
    )
    assert.equal(engine.maxRunning, 1, 'one after the other')
    const rows = await weir.ledger()
    assert.deepEqual(
      rows.map(({ outcome, inputTokens, outputTokens, maxTokens, estimated }) => [
        outcome,
        inputTokens,
        outputTokens,
        maxTokens,
        estimated,
      ]),
      [['completed', 10, 4, 10, false]],
    )
  })

  it('are one stream, one choice after the other', async (t) => {
    const { post, engine, weir } = await stage(t)
    engine.script = counting()
    const body = { messages, n: 2, stream: true, stream_options: { include_usage: true } }
    const events = await readEvents(await post('/chat/completions', body))
    assert.equal(events.pop(), '[DONE]')
    const chunks = events.map((event) => JSON.parse(event) as Chunk)
    assert.deepEqual(chunks.pop()?.usage, usage)
    assert.equal(new Set(chunks.map(({ id }) => id)).size, 1)
    const seen = chunks.flatMap(({ choices }) =>
      choices.map(({ index, delta, finish_reason: reason }) => [index, reason ?? delta.role ?? delta.content]),
    )
    const choice = (index: number): unknown[] => [
      [index, 'assistant'],
      [index, `a${index}`],
      [index, `b${index}`],
      [index, 'stop'],
    ]
    assert.deepEqual(seen, [...choice(0), ...choice(1)])
    assert.equal(engine.maxRunning, 1)
    const [row] = await weir.ledger()
    assert.deepEqual([row?.outcome, row?.inputTokens, row?.outputTokens, row?.estimated], ['completed', 10, 4, false])
  })

  it('end at max_tokens each, and the next one is still generated', async (t) => {
    const { post, engine, weir } = await stage(t)
    engine.script = { tokens: Array.from({ length: 50 }, () => 'word '), tokenMs: 5 }
    const body = { messages, n: 2, stream: true, max_tokens: 3 }
    const events = await readEvents(await post('/chat/completions', body))
    const chunks = events.slice(0, -1).map((event) => JSON.parse(event) as Chunk)
    for (const index of [0, 1]) {
      const own = chunks.flatMap(({ choices }) => choices).filter((choice) => choice.index === index)
      assert.equal(own.filter(({ delta }) => delta.content).length, 3)
      assert.equal(own.at(-1)?.finish_reason, 'length')
    }
    const [row] = await weir.ledger()
    assert.deepEqual([row?.outcome, row?.outputTokens], ['completed', 6])
  })

  it('are broken off when a later call fails, and what was produced is billed', async (t) => {
    const { post, engine, weir } = await stage(t)
    engine.script = () => (engine.calls.length === 1 ? {} : { refuse: { status: 500, body: {} } })
    const events = await readEvents(await post('/chat/completions', { messages, n: 3, stream: true }))
    assert.match(events.at(-1) ?? '', /"code":"upstream_error"/)
    assert.equal(engine.calls.length, 2, 'the third is not tried')
    const refusal = await refusalOf(await post('/chat/completions', { messages, n: 3 }))
    assert.deepEqual([refusal.status, refusal.code], [502, 'upstream_error'])
    const rows = await weir.ledger()
    assert.deepEqual(
      rows.map(({ outcome, inputTokens, amount }) => [outcome, inputTokens, amount > 0n]),
      [
        ['engine_broke', 10, true],
        ['engine_failed', 0, false],
      ],
    )
  })

  it('stop with the running call when the caller disconnects', async (t) => {
    const { engine, weir } = await stage(t)
    engine.script = { tokens: Array.from({ length: 20 }, () => 'x'), tokenMs: 20 }
    const client = await rawClient(weir.base)
    client.send(rawChat(weir.key, { stream: true, n: 3, max_tokens: 100 }))
    await engine.arrived(2)
    await client.sees('"index":1')
    client.leave()
    await within(10_000, 'the engine is notified', engine.left(1))
    await eventually('the row is there', async () => (await weir.ledger()).length === 1)
    assert.equal((await weir.ledger())[0]?.outcome, 'caller_left')
    assert.equal(engine.calls.length, 2)
  })

  it('are generated for each prompt of a list, in order, with the input of each prompt billed', async (t) => {
    const { post, answer, engine, weir } = await stage(t)
    answer(({ body }) => ({
      choices: [{ index: 0, text: `${String(body['prompt'])}!`, finish_reason: 'stop' }],
      usage: { prompt_tokens: String(body['prompt']).length, completion_tokens: 1 },
    }))
    const response = await post('/completions', { prompt: ['a', 'bcd'], n: 2, temperature: 0.5 })
    const { choices, usage: shown } = (await response.json()) as {
      choices: { index: number; text: string }[]
      usage: { prompt_tokens: number; completion_tokens: number }
    }
    assert.deepEqual(
      choices.map(({ index, text }) => [index, text]),
      [
        [0, 'a!'],
        [1, 'a!'],
        [2, 'bcd!'],
        [3, 'bcd!'],
      ],
    )
    assert.deepEqual([shown.prompt_tokens, shown.completion_tokens], [4, 4])
    assert.deepEqual(
      engine.calls.map(({ body }) => [body['prompt'], body['n'], body['temperature'], body['max_tokens']]),
      ['a', 'a', 'bcd', 'bcd'].map((prompt) => [prompt, undefined, 0.5, 16]),
    )
    const single = await post('/completions', { prompt: ['a'] })
    assert.equal(single.status, 200)
    assert.equal(engine.calls.at(-1)?.body['prompt'], 'a', 'a list of one is not sent as a list')
    assert.equal((await weir.ledger()).length, 2)
  })

  it('are not chosen from more than were requested', async (t) => {
    const { post, engine } = await stage(t)
    const refusal = await refusalOf(await post('/completions', { prompt: 'a', n: 1, best_of: 3 }))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'unsupported_parameter', 'best_of'])
    assert.equal(engine.calls.length, 0)
  })
})

describe('an engine that returns fewer choices than were requested', () => {
  for (const stream of [false, true]) {
    it(`has failed: ${stream ? 'streaming' : 'not streaming'}`, async (t) => {
      const { post, engine, weir } = await stage(t, { engine: { kind: 'openai' } })
      engine.script = {
        handle(call, response) {
          const content = { content: 'one' }
          const choice = { index: 0, [stream ? 'delta' : 'message']: content, finish_reason: 'stop' }
          const body = JSON.stringify({ choices: [choice], usage: { prompt_tokens: 5, completion_tokens: 1 } })
          response.end(call.body['stream'] ? `data: ${body}\n\ndata: [DONE]\n\n` : body)
        },
      }
      const response = await post('/chat/completions', { messages, n: 2, stream })
      const text = await response.text()
      assert.match(text, /"code":"upstream_error"/)
      if (!stream) assert.equal(response.status, 502)
      const [row] = await weir.ledger()
      assert.equal(row?.outcome, stream ? 'engine_broke' : 'engine_failed')
      if (!stream) assert.equal(row?.amount, 0n)
    })
  }
})

describe('an engine that ends a stream without any content', () => {
  const tooLong = { error: { message: "This model's maximum context length is 10 tokens, however you requested 20." } }

  /** Like llama-cpp-python: an empty stream, and a refusal without one. */
  const hiding =
    (status: number, body: object) =>
    (call: EngineCallSeen): Script =>
      call.body['stream'] ? { handle: (_call, response) => void response.end() } : { refuse: { status, body } }

  it('is called for a whole answer, and its refusal of that reaches the caller', async (t) => {
    const { post, engine, weir } = await stage(t, { engine: { kind: 'openai' } })
    engine.script = hiding(400, tooLong)
    const body = { messages, stream: true, stream_options: { include_usage: true }, max_tokens: 50 }
    const refusal = await refusalOf(await post('/chat/completions', body))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'context_length_exceeded', 'messages'])
    const [, whole] = engine.calls
    assert.deepEqual(
      [whole?.body['stream'], whole?.body['stream_options'], whole?.body['max_tokens'], whole?.body['messages']],
      [false, null, 1, messages],
    )
    const completion = await refusalOf(await post('/completions', { prompt: 'a', stream: true }))
    assert.deepEqual([completion.code, completion.param], ['context_length_exceeded', 'prompt'])
    const rows = await weir.ledger()
    assert.deepEqual(
      rows.map(({ outcome, amount }) => [outcome, amount]),
      [
        ['engine_failed', 0n],
        ['engine_failed', 0n],
      ],
    )
  })

  it('has failed if it does not refuse that, or fails again', async (t) => {
    const { post, engine, weir } = await stage(t, { engine: { kind: 'openai' } })
    for (const [status, body] of [
      [500, {}],
      [200, { choices: [] }],
    ] as const) {
      engine.script = hiding(status, body)
      const refusal = await refusalOf(await post('/chat/completions', { messages, stream: true }))
      assert.deepEqual([refusal.status, refusal.code], [502, 'upstream_error'])
    }
    assert.equal(engine.calls.length, 4)
    const rows = await weir.ledger()
    assert.ok(rows.length === 2 && rows.every(({ outcome, amount }) => outcome === 'engine_failed' && amount === 0n))
  })
})
