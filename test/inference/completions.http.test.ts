import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { LedgerRow } from '../../src/ledger/rows.ts'
import { refusalOf, type StageOptions } from '../support/chat-stage.ts'
import { jsonStage, type JsonStage } from '../support/json-stage.ts'
import { readEvents } from '../support/weir.ts'

const everyParameter = {
  supported_parameters: ['temperature', 'stop', 'n', 'best_of', 'echo', 'suffix', 'logprobs', 'top_k'],
}

const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8, prompt_tokens_details: { cached_tokens: 2 } }

function whole(...texts: readonly string[]): object {
  const choices = texts.map((text, index) => ({ index, text, logprobs: null, finish_reason: 'stop' }))
  return { id: 'engine-1', object: 'text_completion', created: 1, model: 'engine-name', choices, usage }
}

async function stage(t: TestContext, options: StageOptions = {}): Promise<JsonStage> {
  const made = await jsonStage(t, { ...options, model: { ...everyParameter, ...options.model } })
  // One text for each choice of each prompt.
  made.answer(({ body }) =>
    whole(...[body['prompt']].flat().flatMap(() => Array.from({ length: Number(body['n'] ?? 1) }, () => ' through.'))),
  )
  return made
}

/** An engine that streams these chunks. */
function streams(made: JsonStage, chunks: readonly object[], end = 'data: [DONE]\n\n'): void {
  made.engine.script = {
    handle(_, response) {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const chunk of chunks) response.write(`data: ${JSON.stringify(chunk)}\n\n`)
      response.end(end)
    },
  }
}

function piece(text: string, finish: string | null = null, index = 0): object {
  return { id: 'e', object: 'text_completion', choices: [{ index, text, logprobs: null, finish_reason: finish }] }
}

interface Chunk {
  readonly id: string
  readonly object: string
  readonly model: string
  readonly choices: readonly { index: number; text: string; finish_reason: string | null }[]
  readonly usage?: object | null
  readonly error?: { code: string }
}

async function chunksOf(response: Response): Promise<Chunk[]> {
  const events = await readEvents(response)
  assert.equal(events.pop(), '[DONE]')
  return events.map((event) => JSON.parse(event) as Chunk)
}

describe('POST /completions', () => {
  it('[E3] continues a text', async (t) => {
    const { post, engine, weir } = await stage(t)
    const response = await post('/completions', { prompt: 'A weir lets a river', max_tokens: 8, temperature: 0.5 })
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('x-queue-wait-ms'), '0')
    const { id, created, ...rest } = (await response.json()) as { id: string; created: number }
    assert.equal(id, `cmpl-${response.headers.get('x-request-id')}`)
    assert.ok(Math.abs(created - Date.now() / 1000) < 60)
    assert.deepEqual(rest, {
      object: 'text_completion',
      model: 'meta/test-8b',
      choices: [{ index: 0, text: ' through.', logprobs: null, finish_reason: 'stop' }],
      usage: { ...usage, completion_tokens_details: { reasoning_tokens: 0 } },
    })
    assert.equal(engine.calls[0]?.path, '/v1/completions')
    assert.deepEqual(engine.calls[0]?.body, {
      model: 'engine-name',
      prompt: 'A weir lets a river',
      max_tokens: 8,
      temperature: 0.5,
    })
    const [row] = await weir.ledger()
    assert.deepEqual([row?.inputTokens, row?.cachedInputTokens, row?.outputTokens], [5, 2, 3])
  })

  it('[E3] stops after 16 tokens by default, and forwards the parameters that the model supports', async (t) => {
    const { post, engine } = await stage(t)
    const parameters = { suffix: '!', echo: true, logprobs: 2, stop: ['\n'], top_k: 40, best_of: 3, n: 2 }
    const ignored = { user: 'u', color: 'red', temperature: null }
    await post('/completions', { prompt: 'x', ...parameters, ...ignored })
    assert.deepEqual(engine.calls[0]?.body, { model: 'engine-name', prompt: 'x', max_tokens: 16, ...parameters })
  })

  it('[E3] continues several texts at once, in their order', async (t) => {
    const { post, answer, engine } = await stage(t)
    answer(() => whole(' one', ' two'))
    const response = await post('/completions', { prompt: ['1', '2'] })
    const { choices } = (await response.json()) as Chunk
    assert.deepEqual(
      choices.map(({ index, text }) => [index, text]),
      [
        [0, ' one'],
        [1, ' two'],
      ],
    )
    assert.deepEqual(engine.calls[0]?.body['prompt'], ['1', '2'])
  })

  it('[E3, Q1] charges the output of every choice that is generated, returned or not', async (t) => {
    const { post, engine } = await stage(t, { limits: { token_budget: 1000 } })
    const body = { prompt: ['1', '2'], max_tokens: 100 }
    assert.equal((await post('/completions', { ...body, best_of: 4 })).status, 200)
    const refusal = await refusalOf(await post('/completions', { ...body, best_of: 5 }))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'token_budget_exceeded', 'max_tokens'])
    assert.equal(engine.calls.length, 1)
  })

  it('[E3] fails when the engine’s answer has no finish_reason', async (t) => {
    const { post, answer } = await stage(t)
    answer(() => ({ choices: [{ index: 0, text: ' through', finish_reason: null }], usage }))
    const refusal = await refusalOf(await post('/completions', { prompt: 'x' }))
    assert.deepEqual([refusal.status, refusal.code], [502, 'upstream_error'])
  })
})

describe('a streamed completion', () => {
  it('[E3] arrives in pieces with one id, an index on every choice, and a finish_reason at the end', async (t) => {
    const made = await stage(t)
    streams(made, [piece(' thr'), piece('ough.'), piece('', 'stop'), { choices: [], usage }])
    const response = await made.post('/completions', { prompt: 'x', stream: true })
    assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/)
    const id = `cmpl-${response.headers.get('x-request-id')}`
    const chunks = await chunksOf(response)
    assert.deepEqual(
      chunks.map(({ choices }) => choices.map(({ index, text, finish_reason: reason }) => [index, text, reason])),
      [[[0, ' thr', null]], [[0, 'ough.', null]], [[0, '', 'stop']]],
    )
    for (const chunk of chunks) {
      assert.deepEqual([chunk.id, chunk.object, chunk.model], [id, 'text_completion', 'meta/test-8b'])
      assert.ok(!('usage' in chunk))
    }
    assert.deepEqual(made.engine.calls[0]?.body['stream_options'], {
      include_usage: true,
      continuous_usage_stats: true,
    })
  })

  it('[E3] ends with the usage if the caller requested it', async (t) => {
    const made = await stage(t)
    streams(made, [piece(' through.', 'length'), { choices: [], usage }])
    const body = { prompt: 'x', stream: true, stream_options: { include_usage: true } }
    const chunks = await chunksOf(await made.post('/completions', body))
    assert.deepEqual(
      chunks.map(({ choices, usage: seen }) => [choices.length, seen]),
      [
        [1, null],
        [0, { ...usage, completion_tokens_details: { reasoning_tokens: 0 } }],
      ],
    )
  })

  it('[E3] is complete only when every choice of every prompt has its finish_reason', async (t) => {
    const made = await stage(t)
    streams(made, [piece(' one', 'stop', 0), { choices: [], usage }])
    const events = await readEvents(await made.post('/completions', { prompt: ['1', '2'], stream: true }))
    const last = JSON.parse(events.at(-1) ?? '') as Chunk
    assert.equal(last.error?.code, 'upstream_error')
    const [row] = await made.weir.ledger()
    assert.equal(row?.outcome, 'engine_broke')
  })

  it('[M2] that breaks off is billed by the sum of the counts for each choice and each prompt', async (t) => {
    const made = await stage(t)
    const counted = (index: number, input: number, output: number): object => ({
      ...piece(' x', null, index),
      usage: {
        prompt_tokens: input,
        completion_tokens: output,
        prompt_tokens_details: { cached_tokens: input - 3 },
      },
    })
    // Two choices for each prompt: 0 and 1 belong to the first, 2 and 3 to the second.
    streams(made, [counted(0, 5, 1), counted(1, 5, 1), counted(2, 7, 1), counted(0, 5, 2), counted(3, 7, 4)])
    await readEvents(await made.post('/completions', { prompt: ['one', 'two'], n: 2, stream: true }))
    const [row] = await made.weir.ledger()
    assert.deepEqual([row?.outcome, row?.inputTokens, row?.outputTokens], ['engine_broke', 12, 8])
    assert.equal(row?.cachedInputTokens, 6, 'the cached tokens of a prompt count once, not for each of its choices')
  })
})

describe('a completion with more output than was allowed', () => {
  const words = (count: number): string => 'word '.repeat(count)
  const prompt = words(40)

  interface Answer {
    readonly choices: readonly { index: number; text: string; finish_reason: string }[]
    readonly usage: { completion_tokens: number }
  }

  async function rowOf({ weir }: JsonStage, response: Response): Promise<LedgerRow | undefined> {
    const id = response.headers.get('x-request-id')
    return (await weir.ledger()).find(({ requestId }) => requestId === id)
  }

  async function answerOf(made: JsonStage, body: object): Promise<Answer> {
    const response = await made.post('/completions', body)
    const answer = (await response.json()) as Answer
    const row = await rowOf(made, response)
    assert.deepEqual([row?.outcome, row?.outputTokens], ['completed', answer.usage.completion_tokens])
    return answer
  }

  it('[E12] is cut in each choice of each prompt', async (t) => {
    const made = await stage(t)
    made.answer(() => ({ ...whole(words(500), ' a', ' b', words(500)), usage: { ...usage, completion_tokens: 1002 } }))
    const { choices, usage: shown } = await answerOf(made, { prompt: ['1', '2'], n: 2, max_tokens: 5 })
    assert.deepEqual(
      choices.map(({ text, finish_reason: reason }) => [text.length < 30, reason]),
      [
        [true, 'length'],
        [true, 'stop'],
        [true, 'stop'],
        [true, 'length'],
      ],
    )
    assert.equal(shown.completion_tokens, 20)
  })

  it('[E12] is not mistaken for the tokens of best_of', async (t) => {
    const made = await stage(t)
    made.answer(() => ({ ...whole(words(5)), usage: { ...usage, completion_tokens: 15 } }))
    const { choices, usage: shown } = await answerOf(made, { prompt: 'x', best_of: 3, max_tokens: 5 })
    assert.deepEqual([choices[0]?.text, choices[0]?.finish_reason], [words(5), 'stop'])
    assert.equal(shown.completion_tokens, 15)
  })

  it('[E12] is not mistaken for the prompt that echo repeats', async (t) => {
    const made = await stage(t)
    const body = { prompt, echo: true, max_tokens: 5 }
    for (const counted of [{ ...usage, completion_tokens: 5 }, undefined]) {
      made.answer(() => ({ ...whole(prompt + words(5)), usage: counted }))
      const kept = await answerOf(made, body)
      assert.deepEqual([kept.choices[0]?.text, kept.choices[0]?.finish_reason], [prompt + words(5), 'stop'])
      assert.ok(kept.usage.completion_tokens <= 7, `${kept.usage.completion_tokens} tokens`)
    }
    for (const counted of [{ ...usage, completion_tokens: 500 }, undefined]) {
      made.answer(() => ({ ...whole(prompt + words(500)), usage: counted }))
      const { choices, usage: shown } = await answerOf(made, body)
      const text = choices[0]?.text ?? ''
      assert.ok(text.startsWith(prompt) && text.length > prompt.length && text.length < prompt.length + 30, text)
      assert.deepEqual([choices[0]?.finish_reason, shown.completion_tokens <= 5], ['length', true])
    }
  })

  it('[E12] is cut in a stream after the prompt that echo repeats, however the engine sends it', async (t) => {
    const made = await stage(t)
    const accented = 'größer '.repeat(40)
    for (const echoed of [prompt, accented]) {
      const echoes = [[piece(echoed)], echoed.match(/\S+ /g)!.map((word) => piece(word)), []]
      for (const [way, pieces] of echoes.entries()) {
        // Without a piece of its own, it comes with the first token.
        const first = way === 2 ? `${echoed}word ` : 'word '
        const tokens = [first, ...Array.from({ length: 19 }, () => 'word ')].map((text) => piece(text))
        for (const allowed of [20, 5]) {
          streams(made, [...pieces, ...tokens, piece('', 'stop')])
          const body = { prompt: echoed, echo: true, max_tokens: allowed, stream: true }
          const response = await made.post('/completions', body)
          const choices = (await chunksOf(response)).flatMap((chunk) => chunk.choices)
          assert.equal(choices.map(({ text }) => text).join(''), echoed + words(allowed))
          assert.equal(choices.at(-1)?.finish_reason, allowed === 5 ? 'length' : 'stop')
          assert.equal((await rowOf(made, response))?.outputTokens, allowed)
        }
      }
    }
  })

  it('[E12] by an impossible count is unchanged, and is billed no more than was allowed', async (t) => {
    const made = await stage(t)
    const counted = { prompt_tokens: 90_000_000, completion_tokens: 90_000_000 }
    const body = { prompt: ['1', '2'], n: 2, max_tokens: 5 }
    made.answer(() => ({ ...whole(' a', ' b', ' c', ' d'), usage: counted }))
    const { choices } = await answerOf(made, body)
    assert.deepEqual(
      choices.map(({ text, finish_reason: reason }) => [text, reason]),
      [' a', ' b', ' c', ' d'].map((text) => [text, 'stop']),
    )
    streams(made, [...[0, 1, 2, 3].map((index) => piece(' x', 'stop', index)), { choices: [], usage: counted }])
    const chunks = await chunksOf(await made.post('/completions', { ...body, stream: true }))
    assert.equal(chunks.flatMap((chunk) => chunk.choices).filter(({ text }) => text === ' x').length, 4)
    for (const row of await made.weir.ledger()) {
      assert.deepEqual([row.outputTokens, row.estimated, row.maxTokens], [20, true, 20])
      assert.ok(row.inputTokens > 0 && row.inputTokens <= 2 * 8192, `${row.inputTokens} input tokens`)
    }
    assert.equal((await made.weir.ledger()).length, 2)
  })

  it('[E12] is cut in a stream for each prompt separately', async (t) => {
    const made = await stage(t)
    const both = Array.from({ length: 20 }, () => [piece('word ', null, 0), piece('word ', null, 1)]).flat()
    streams(made, [...both, piece('', 'stop', 0), piece('', 'stop', 1)])
    const chunks = await chunksOf(await made.post('/completions', { prompt: ['1', '2'], max_tokens: 5, stream: true }))
    for (const index of [0, 1]) {
      const own = chunks.flatMap(({ choices }) => choices).filter((choice) => choice.index === index)
      assert.deepEqual(
        own.map(({ text, finish_reason: reason }) => [text, reason]),
        [...Array.from({ length: 5 }, () => ['word ', null]), ['', 'length']],
      )
    }
    const [row] = await made.weir.ledger()
    assert.deepEqual([row?.outcome, row?.outputTokens, row?.maxTokens], ['completed', 10, 10])
  })
})

describe('an invalid completion request', () => {
  const wrong: readonly [string, object, string, string][] = [
    ['no prompt', {}, 'missing_required_parameter', 'prompt'],
    ['no prompts', { prompt: [] }, 'invalid_value', 'prompt'],
    ['token ids', { prompt: [1, 2] }, 'invalid_type', 'prompt[0]'],
    ['max_tokens 0', { prompt: 'x', max_tokens: 0 }, 'invalid_value', 'max_tokens'],
    ['more than the output limit', { prompt: 'x', max_tokens: 5000 }, 'invalid_value', 'max_tokens'],
    ['logprobs 6', { prompt: 'x', logprobs: 6 }, 'invalid_value', 'logprobs'],
    ['logprobs as in chat', { prompt: 'x', logprobs: true }, 'invalid_type', 'logprobs'],
    ['best_of 21', { prompt: 'x', best_of: 21 }, 'invalid_value', 'best_of'],
    ['best_of below n', { prompt: 'x', best_of: 2, n: 3 }, 'invalid_value', 'best_of'],
    ['best_of with stream', { prompt: 'x', best_of: 2, stream: true }, 'invalid_value', 'best_of'],
    ['stream_options without stream', { prompt: 'x', stream_options: {} }, 'invalid_value', 'stream_options'],
    ['five stops', { prompt: 'x', stop: ['1', '2', '3', '4', '5'] }, 'invalid_value', 'stop'],
    ['an unknown parameter of the model', { prompt: 'x', min_p: 0.5 }, 'unsupported_parameter', 'min_p'],
  ]
  for (const [what, body, code, param] of wrong) {
    it(`[E3] ${what}: ${code} (${param})`, async (t) => {
      const { post, engine } = await stage(t)
      const refusal = await refusalOf(await post('/completions', body))
      assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, code, param])
      assert.equal(engine.calls.length, 0)
    })
  }

  it('[E12] the longest prompt must fit into the context with its output; the others do not count', async (t) => {
    const { post, engine } = await stage(t, {
      model: { context_length: 200, max_completion_tokens: 200, default_max_tokens: 100 },
    })
    const half = 'river '.repeat(100)
    assert.equal((await post('/completions', { prompt: [half, half, half], max_tokens: 16 })).status, 200)
    const refusal = await refusalOf(await post('/completions', { prompt: 'river '.repeat(400), max_tokens: 16 }))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'context_length_exceeded', 'prompt'])
    assert.match(refusal.message, /maximum context length is 200 tokens/)
    engine.script = { refuse: { status: 400, body: { message: 'maximum context length is 200 tokens' } } }
    const found = await refusalOf(await post('/completions', { prompt: 'x' }))
    assert.deepEqual([found.code, found.param], ['context_length_exceeded', 'prompt'])
  })

  it('[C6] for a model that generates no text is refused, and the message names its endpoint', async (t) => {
    const model = { categories: ['embedding'], max_completion_tokens: undefined, default_max_tokens: undefined }
    const { post } = await stage(t, { model: { ...model, supported_parameters: [] } })
    const refusal = await refusalOf(await post('/completions', { prompt: 'x' }))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'wrong_endpoint', 'model'])
    assert.match(refusal.message, /\/api\/v1\/embeddings/)
  })
})
