import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventually } from '../support/waiting.ts'
import { comparisonStage, eventsOf, readAnswer, type Answer, type ComparisonStage } from './comparison.ts'
import type { EngineProcess } from './engine-process.ts'

/** A real server that generates text, and what it cannot do. */
export interface GenerationServer {
  readonly title: string
  readonly skip: string | false
  readonly kind: string
  readonly base: string
  readonly model: string
  readonly apiKey?: string
  /** What makes this server call a tool: `auto` by default. */
  readonly toolChoice?: unknown
  start(): Promise<EngineProcess>
  /** What the server itself cannot do, with the reason. */
  readonly without?: Partial<Readonly<Record<Feature, string>>>
  /** Whether the server is still generating. Undefined if it does not say. */
  isBusy?(origin: string): Promise<boolean>
}

type Feature =
  | 'tools'
  | 'json schema'
  | 'logprobs'
  | 'stream usage'
  /** A refusal of a prompt that is too long. */
  | 'context limit'
  /** A count in every event, so that a stream that is aborted has one. */
  | 'running count'
  /** A count that covers every choice and every prompt. */
  | 'count of several'

const question = { messages: [{ role: 'user', content: 'What is the capital of France? Answer in one sentence.' }] }
const exact = { temperature: 0, seed: 1, max_tokens: 16 }
const chat = { ...question, ...exact }
const streamed = { stream: true, stream_options: { include_usage: true } }
const completion = { prompt: 'The capital of France is', ...exact, max_tokens: 8 }
const weather = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'Get the current weather in a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
}
const city = {
  type: 'json_schema',
  json_schema: {
    name: 'city',
    strict: true,
    schema: {
      type: 'object',
      properties: { city: { type: 'string', maxLength: 20 } },
      required: ['city'],
      additionalProperties: false,
    },
  },
}
const endless = { ...exact, max_tokens: 400, messages: [{ role: 'user', content: 'Count from 1 to 1000 in words.' }] }
const tooLong = 'word and another '.repeat(3000)

const tokens = ({ usage }: Answer): object => {
  assert.ok(usage, 'usage')
  return { input: usage.prompt_tokens, output: usage.completion_tokens }
}

/** The same calls for every server that generates text, through Weir and directly. */
export function describeGeneration(server: GenerationServer): void {
  describe(server.title, { skip: server.skip }, () => {
    let engine: EngineProcess
    let stage: ComparisonStage
    const lacks = (feature: Feature): string | false => server.without?.[feature] ?? false

    before(async () => {
      engine = await server.start()
      stage = await comparisonStage({ ...server, origin: engine.origin, categories: ['llm'] })
    })
    after(async () => {
      await stage?.stop()
      await engine?.stop()
    })

    /** The same text, ends and calls both ways; the answer and the row have the server's own count. */
    async function same(endpoint: string, body: object, options: { uncounted?: boolean } = {}): Promise<Answer> {
      const { through, direct, row } = await stage.both(endpoint, body)
      assert.deepEqual(through.choices, direct.choices)
      assert.deepEqual({ input: row.inputTokens, output: row.outputTokens }, tokens(through))
      if (options.uncounted) return through
      assert.deepEqual(tokens(through), tokens(direct))
      assert.equal(row.estimated, false)
      return through
    }

    it('chat', async () => void (await same('/chat/completions', chat)))

    it('chat, streamed', async () => {
      const uncounted = lacks('stream usage') !== false
      const answer = await same('/chat/completions', { ...chat, ...streamed }, { uncounted })
      assert.ok(answer.raw.endsWith('data: [DONE]\n\n'))
    })

    it('stops at max_tokens and at a stop text, whole and streamed', async () => {
      const uncounted = lacks('stream usage') !== false
      const short = await same('/chat/completions', { ...chat, max_tokens: 3 })
      assert.equal(short.choices[0]?.finishReason, 'length')
      const stopped = await same('/chat/completions', { ...chat, stop: ['Paris'] })
      assert.equal(stopped.choices[0]?.finishReason, 'stop')
      await same('/chat/completions', { ...chat, stop: ['Paris'], ...streamed }, { uncounted })
    })

    it('completions, whole and streamed', async () => {
      await same('/completions', completion)
      await same('/completions', { ...completion, ...streamed }, { uncounted: lacks('stream usage') !== false })
    })

    it('two choices, or a refusal', async () => {
      for (const more of [{}, streamed]) {
        const response = await stage.through('/chat/completions', { ...chat, ...more, n: 2 })
        const answer = await readAnswer(response)
        if (answer.status !== 200) {
          // A server that cannot do it must not answer with one choice only.
          assert.deepEqual([answer.status, answer.errorCode], [400, 'unsupported_parameter'])
          continue
        }
        assert.equal(answer.choices.length, 2, answer.raw)
        const row = await stage.rowOf(response)
        // At temperature 0 both are the answer to a single call, so both cost as many tokens.
        const { usage, choices } = await readAnswer(await stage.direct('/chat/completions', chat))
        assert.deepEqual(
          answer.choices.map(({ text }) => text),
          [choices[0]?.text, choices[0]?.text],
        )
        if (lacks('count of several')) assert.ok(row.estimated, 'the row says that the count is estimated')
        else assert.equal(row.outputTokens, 2 * (usage?.completion_tokens ?? 0), 'output tokens of both choices')
      }
    })

    it('two prompts', async () => {
      const prompts = ['The capital of France is', 'The capital of Italy is']
      const response = await stage.through('/completions', { ...completion, prompt: prompts })
      const answer = await readAnswer(response)
      assert.equal(answer.status, 200, answer.raw)
      const row = await stage.rowOf(response)
      let [input, output] = [0, 0]
      for (const [index, prompt] of prompts.entries()) {
        const single = await readAnswer(await stage.direct('/completions', { ...completion, prompt }))
        assert.equal(answer.choices[index]?.text, single.choices[0]?.text)
        input += single.usage?.prompt_tokens ?? 0
        output += single.usage?.completion_tokens ?? 0
      }
      if (lacks('count of several')) assert.ok(row.estimated, 'the row says that the count is estimated')
      else assert.deepEqual({ input: row.inputTokens, output: row.outputTokens }, { input, output })
    })

    it('log probabilities, whole and streamed', { skip: lacks('logprobs') }, async () => {
      const uncounted = lacks('stream usage') !== false
      const body = { ...chat, logprobs: true, top_logprobs: 2, max_tokens: 4 }
      const whole = await same('/chat/completions', body)
      assert.equal(whole.choices[0]?.logprobs.length, 4)
      assert.equal(whole.choices[0]?.logprobs[0]?.alternatives, 2)
      await same('/chat/completions', { ...body, ...streamed }, { uncounted })
    })

    it('tool calls, whole and streamed', { skip: lacks('tools') }, async () => {
      const uncounted = lacks('stream usage') !== false
      const body = {
        ...exact,
        max_tokens: 60,
        messages: [{ role: 'user', content: 'What is the weather in Paris? Use the tool.' }],
        tools: [weather],
        tool_choice: server.toolChoice ?? 'auto',
      }
      const whole = await same('/chat/completions', body)
      assert.equal(whole.choices[0]?.toolCalls[0]?.name, 'get_weather')
      const inPieces = await same('/chat/completions', { ...body, ...streamed }, { uncounted })
      assert.deepEqual(inPieces.choices[0]?.toolCalls, whole.choices[0]?.toolCalls)
    })

    it('an answer that follows a JSON schema', { skip: lacks('json schema') }, async () => {
      const answer = await same('/chat/completions', { ...chat, max_tokens: 40, response_format: city })
      assert.deepEqual(Object.keys(JSON.parse(answer.choices[0]?.text ?? '') as object), ['city'])
    })

    it(
      'too long a prompt is context_length_exceeded, whole and streamed',
      { skip: lacks('context limit') },
      async () => {
        const body = { ...exact, messages: [{ role: 'user', content: tooLong }] }
        for (const more of [{}, streamed]) {
          const answer = await readAnswer(await stage.through('/chat/completions', { ...body, ...more }))
          assert.deepEqual(
            { status: answer.status, code: answer.errorCode },
            { status: 400, code: 'context_length_exceeded' },
          )
        }
      },
    )

    it('a caller that disconnects stops the server and pays what it generated', async () => {
      const response = await stage.through('/chat/completions', { ...endless, ...streamed })
      const seen = await readSome(response, 5)
      const row = await stage.rowOf(response)
      assert.equal(row.outcome, 'caller_left')
      assert.ok(
        row.outputTokens >= seen && row.outputTokens < endless.max_tokens,
        `${row.outputTokens} of ${seen} seen`,
      )
      const { usage } = await readAnswer(await stage.direct('/chat/completions', { ...endless, max_tokens: 1 }))
      if (lacks('running count')) assert.ok(row.estimated, 'the row says that the count is estimated')
      else assert.equal(row.inputTokens, usage?.prompt_tokens)
      const { isBusy } = server
      if (isBusy) await eventually('the server is idle', async () => !(await isBusy(engine.origin)), 30_000)
    })

    it('health checks do not interrupt a long stream', async () => {
      const { through, direct } = await stage.both('/chat/completions', { ...endless, ...streamed, max_tokens: 150 })
      assert.deepEqual(through.choices, direct.choices)
    })
  })
}

/** Reads this many events with text, then leaves. Returns how many it saw. */
async function readSome(response: Response, count: number): Promise<number> {
  let raw = ''
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    raw += chunk
    const events = eventsOf(raw.slice(0, raw.lastIndexOf('\n\n')))
    const seen = events.filter(({ choices }) => choices?.[0]?.delta?.content).length
    if (seen >= count) return seen
  }
  throw new Error(`the stream ended early: ${raw}`)
}
