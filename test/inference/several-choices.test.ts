import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { byteCollector } from '../../src/shared/byte-collector.ts'
import { wholeUsage } from '../../src/inference/metering/usage-bounds.ts'
import type { Job, ParsedAnswer } from '../../src/engines/job.ts'
import { llamacpp } from '../../src/engines/dialects/llamacpp.ts'
import { chatAnswer, chatStream } from '../../src/inference/chat/answer.ts'
import { completionsAnswer, completionsStream } from '../../src/inference/completions/answer.ts'
import type { GenerationOptions } from '../../src/inference/generation/generation-options.ts'
import type { CallStream } from '../../src/inference/generation/generation-stream.ts'

const head = { id: 'r1', created: 7, model: 'meta/x' }
const optionsOf = (choices: number, more: Partial<GenerationOptions> = {}, maxTokens = 100): GenerationOptions => ({
  includeUsage: true,
  limit: { maxTokens, choices, generated: choices, tokenizer: undefined },
  ...more,
})
const usageOf = llamacpp.chat?.usageOf

const piece = (index: number, content: string, reason: string | null = null): object => ({
  choices: [{ index, delta: { content }, finish_reason: reason }],
})
const counted = (output: number, input = 42): object => ({
  choices: [],
  usage: { prompt_tokens: input, completion_tokens: output },
})

function push(relay: CallStream, ...events: readonly (object | string)[]): string {
  return relay.push(
    Buffer.from(events.map((it) => `data: ${typeof it === 'string' ? it : JSON.stringify(it)}\n\n`).join('')),
  )
}

function reasonsIn(text: string): string[] {
  return [...text.matchAll(/"index":(\d).*?"finish_reason":"(\w+)"/g)].map(([, index, reason]) => `${index} ${reason}`)
}

const fixture = (path: string): Buffer => readFileSync(new URL(`../fixtures/dialects/${path}`, import.meta.url))

/** What would be billed: input, cached input, output, and the output that is only estimated. */
function billed(relay: CallStream): (number | undefined)[] {
  const usage = relay.reportedUsage()
  return [usage?.inputTokens, usage?.cachedInputTokens, usage?.outputTokens, relay.deltasSinceReport()]
}

describe('the count of a stream with several choices', () => {
  it('[M2] is the sum of the counts that llama.cpp sends after each choice', () => {
    // Recorded without running counts, as a server of kind openai would be asked.
    const relay = chatStream(head, optionsOf(2))
    relay.push(fixture('llamacpp/chat-n2.stream'))
    assert.deepEqual(billed(relay), [42, 41, 32, 0])
  })

  it('[M2] is the sum over the prompts, each with its own input', () => {
    const relay = completionsStream(head, optionsOf(2, { prompts: 2, usageOf }))
    relay.push(fixture('llamacpp/completions-timings-two-prompts.stream'))
    assert.deepEqual(billed(relay), [16, 3, 10, 0])
  })

  it('[M2] is that of the last event if the engine counts everything once', () => {
    for (const [file, expected] of [
      ['vllm/chat-n2.stream', [21, 0, 9, 0]],
      ['openai/chat-litellm-n2.stream', [21, 0, 10, 0]],
    ] as const) {
      const relay = chatStream(head, optionsOf(2))
      relay.push(fixture(file))
      assert.deepEqual(billed(relay), expected, file)
    }
  })

  it('[M2] has a token for each piece if the count omits a choice', () => {
    const relay = chatStream(head, optionsOf(2))
    push(relay, piece(0, 'a'), piece(1, 'b'), piece(0, 'c'), piece(1, 'd', 'stop'), piece(0, 'e', 'stop'), counted(3))
    assert.deepEqual(billed(relay), [42, 0, 3, 2])
  })

  it('[M2] does not count a choice past its limit', () => {
    const relay = chatStream(head, optionsOf(2, {}, 2))
    const running = (index: number, content: string, output: number, reason: string | null = null): object => ({
      ...piece(index, content, reason),
      usage: { prompt_tokens: 42, completion_tokens: output },
    })
    push(relay, running(0, 'a', 1), running(0, ' b c', 3), running(1, 'd', 1, 'stop'))
    assert.ok(relay.isPastLimit() && relay.isDone())
    assert.deepEqual(billed(relay), [42, 0, 3, 0])
  })

  it('[M2] omits what an engine counts of a choice beyond its output, such as the token that ends it', () => {
    const each = chatStream(head, optionsOf(2, {}, 2))
    push(each, piece(0, 'a'), piece(0, 'b', 'stop'), counted(3), piece(1, 'd', 'stop'), counted(1), '[DONE]')
    assert.ok(!each.isPastLimit())
    assert.deepEqual(billed(each), [42, 0, 3, 0])
  })

  it('[M2] follows the counts of the choices past an early count of everything', () => {
    const relay = chatStream(head, optionsOf(1))
    const running = { usage: { prompt_tokens: 42, completion_tokens: 2 } }
    push(relay, counted(0), piece(0, 'a'), { ...piece(0, 'b'), ...running })
    assert.deepEqual(billed(relay), [42, 0, 2, 0])
  })
})

describe('a choice that was cut at its limit', () => {
  it('[E12] has no further output, whatever the engine continues to send', () => {
    const call = { index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }
    const more = [
      piece(0, 'd'),
      { choices: [{ index: 0, delta: { role: 'assistant', tool_calls: [call] }, finish_reason: null }] },
      piece(0, '', 'stop'),
    ]
    const relay = chatStream(head, optionsOf(2, {}, 2))
    assert.deepEqual(reasonsIn(push(relay, piece(0, 'a'), piece(0, 'b'), piece(0, 'c'))), ['0 length'])
    for (const event of more) assert.equal(push(relay, event), '')
    assert.deepEqual(reasonsIn(push(relay, piece(1, 'e', 'stop'))), ['1 stop'])
  })

  it('[E12] does not continue with the prompt that it repeats', () => {
    const limit = { maxTokens: 2, choices: 2, generated: 2, echoedCharacters: [20], tokenizer: undefined }
    const relay = completionsStream(head, { includeUsage: true, limit })
    const text = (index: number, words: string, more: object = {}): object => ({
      choices: [{ index, text: words, finish_reason: null }],
      ...more,
    })
    const tooMany = { usage: { prompt_tokens: 5, completion_tokens: 90_000 } }
    assert.deepEqual(reasonsIn(push(relay, text(0, 'The prompt ', tooMany))), ['0 length'])
    assert.equal(push(relay, text(0, 'goes on. ')), '')
    assert.match(push(relay, text(1, 'The prompt ')), /The prompt /)
  })
})

describe('a stream of llama.cpp that is broken off', () => {
  it('[M2] is billed by the timings in its last event', () => {
    const whole = fixture('llamacpp/chat-timings.stream').toString('utf8').split('\n\n')
    const relay = chatStream(head, optionsOf(1, { usageOf }))
    relay.push(Buffer.from(`${whole.slice(0, 5).join('\n\n')}\n\n`))
    assert.deepEqual(billed(relay), [35, 24, 4, 0])
  })

  it('[M2] is billed by the timings of each of its choices', () => {
    const whole = fixture('llamacpp/chat-timings-n2.stream').toString('utf8').split('\n\n')
    const relay = chatStream(head, optionsOf(2, { usageOf }))
    relay.push(Buffer.from(`${whole.slice(0, 7).join('\n\n')}\n\n`))
    assert.deepEqual(billed(relay), [35, 34, 5, 0])
  })

  it('[M2] is billed by the timings if it is cut at the limit', () => {
    const relay = chatStream(head, optionsOf(1, { usageOf }, 3))
    relay.push(fixture('llamacpp/chat-timings.stream'))
    assert.ok(relay.isPastLimit() && relay.isDone())
    assert.deepEqual(billed(relay), [35, 24, 3, 0])
  })

  it('is estimated if its version does not report what was cached', () => {
    assert.equal(usageOf?.({ timings: { prompt_n: 3, predicted_n: 2 } }), undefined)
    assert.equal(usageOf?.({ timings: { cache_n: 3, prompt_n: -1, predicted_n: 2 } }), undefined)
  })
})

describe('a stream with a finish_reason for only some choices', () => {
  it('[E2] gives each choice with output a reason after the engine’s [DONE]', () => {
    const relay = chatStream(head, optionsOf(2))
    const text = push(relay, piece(0, 'a'), piece(1, 'b'), piece(0, '', 'stop'))
    assert.ok(!relay.isComplete(), 'it may still go on')
    assert.deepEqual(reasonsIn(text + push(relay, '[DONE]')), ['0 stop', '1 stop'])
    assert.ok(relay.isComplete())
  })

  it('[E2] has length for one that has all its tokens, or if the engine gave no other reason', () => {
    const full = chatStream(head, optionsOf(2, {}, 2))
    const said = push(full, piece(0, 'a', 'stop'), piece(1, 'b'), piece(1, 'c'), '[DONE]')
    assert.deepEqual(reasonsIn(said), ['0 stop', '1 length'])
    const cut = completionsStream(head, optionsOf(2))
    const [a, b] = [0, 1].map((index) => ({ choices: [{ index, text: 'a', finish_reason: index ? null : 'length' }] }))
    assert.deepEqual(reasonsIn(push(cut, b!, a!, '[DONE]')), ['0 length', '1 length'])
  })

  it('[E2] has tool_calls for one that calls a tool', () => {
    const relay = chatStream(head, optionsOf(2))
    const call = { index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }
    const calls = { choices: [{ index: 1, delta: { tool_calls: [call] }, finish_reason: null }] }
    assert.deepEqual(reasonsIn(push(relay, piece(0, 'a', 'stop'), calls, '[DONE]')), ['0 stop', '1 tool_calls'])
  })

  it('[E2] is broken without [DONE], without any reason, and without output of a choice', () => {
    for (const events of [
      [piece(0, 'a', 'stop'), piece(1, 'b')],
      [piece(0, 'a'), piece(1, 'b'), '[DONE]'],
      [piece(0, 'a', 'stop'), '[DONE]'],
      [piece(0, 'a', 'stop'), piece(1, ''), '[DONE]'],
    ]) {
      const relay = chatStream(head, optionsOf(2))
      push(relay, ...events)
      assert.ok(!relay.isComplete(), JSON.stringify(events))
    }
  })

  it('[E2] is broken if the engine aborted a choice', () => {
    for (const reason of ['abort', 'error']) {
      const relay = chatStream(head, optionsOf(1))
      push(relay, piece(0, 'a', reason), '[DONE]')
      assert.ok(!relay.isComplete(), reason)
    }
  })

  it('has the reasons under the names of the API', () => {
    const text = push(chatStream(head, optionsOf(2)), piece(0, 'a', 'eos'), piece(1, 'b', 'max_tokens'))
    assert.deepEqual(reasonsIn(text), ['0 stop', '1 length'])
  })
})

describe('a whole answer with several choices', () => {
  function read(options: GenerationOptions, ...answers: unknown[]): Promise<ParsedAnswer | undefined> {
    const bodies = answers.map((answer) => {
      const body = byteCollector(1_000_000)
      body.push(Buffer.from(JSON.stringify(answer)))
      return body
    })
    const format = 'message' in firstChoice(answers[0]) ? chatAnswer : completionsAnswer
    const answer = format(false, options)
    assert.ok(answer.kind === 'whole')
    return answer.read(bodies, head, [])
  }

  const firstChoice = (answer: unknown): object =>
    ((Array.isArray(answer) ? answer[0] : answer) as { choices: object[] }).choices[0] ?? {}
  const choice = (index: number, content: string, reason = 'stop'): object => ({
    index,
    message: { role: 'assistant', content },
    finish_reason: reason,
  })
  const answerOf = (choices: object[], output: number, input = 10): object => ({
    choices,
    usage: { prompt_tokens: input, completion_tokens: output },
  })
  const counts = (answer: ParsedAnswer | undefined): unknown[] => [
    answer?.usage?.inputTokens,
    answer?.usage?.outputTokens,
    answer?.estimated,
  ]

  it('[M2] is estimated if the count is below the words of all choices', async () => {
    const both = [choice(0, 'one two three'), choice(1, 'four five six')]
    assert.equal(counts(await read(optionsOf(2), answerOf(both, 4)))[2], 'output')
    assert.deepEqual(counts(await read(optionsOf(2), answerOf(both, 6))), [10, 6, undefined])
    const full = [choice(0, 'Rome is a city', 'length'), choice(1, 'Rome was a city', 'length')]
    assert.deepEqual(counts(await read(optionsOf(2, {}, 4), answerOf(full, 4))), [10, 8, 'output'])
  })

  it('[M2] has the estimated input of all prompts if the count is that of the first one', async () => {
    const texts = [0, 1].map((index) => ({ index, text: ' a', finish_reason: 'stop' }))
    const options = optionsOf(2, { prompts: 2 })
    const answer = await read(options, answerOf(texts, 1, 5))
    const job = { likelyInputTokens: 11, maxInputTokens: 1000, maxTokens: 100 } as Job
    const { usage, isEstimated } = wholeUsage(job, answer!)
    assert.deepEqual([usage.inputTokens, usage.outputTokens, isEstimated], [11, 2, true])
    assert.equal(wholeUsage(job, (await read({ ...options, prompts: 1 }, answerOf(texts, 1, 5)))!).usage.inputTokens, 5)
  })

  it('[M2] adds up the counts of several answers, and the input once for each prompt', async () => {
    const answers = [answerOf([choice(0, 'a')], 2), answerOf([choice(0, 'b')], 3)]
    const answer = await read(optionsOf(2), ...answers)
    assert.deepEqual(counts(answer), [10, 5, undefined])
    const shown = JSON.parse(String(answer?.render(answer.usage!))) as { choices: { index: number }[] }
    assert.deepEqual(
      shown.choices.map(({ index }) => index),
      [0, 1],
    )
    assert.deepEqual(counts(await read(optionsOf(2, { prompts: 2 }), ...answers)), [20, 5, undefined])
  })

  it('[M2] may be a list with an answer for each prompt', async () => {
    const texts = [0, 1].map((index) => answerOf([{ index, text: 'a', finish_reason: 'stop' }], 2, 5 + index))
    assert.deepEqual(counts(await read(optionsOf(2, { prompts: 2 }), texts)), [11, 4, undefined])
  })

  it('is an error with fewer choices than were requested', async () => {
    assert.equal(await read(optionsOf(2), answerOf([choice(0, 'a')], 2)), undefined)
    assert.equal(await read(optionsOf(1), answerOf([choice(0, 'a', 'abort')], 2)), undefined)
  })
})
