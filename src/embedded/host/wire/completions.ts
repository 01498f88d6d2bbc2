import { randomUUID } from 'node:crypto'
import { EngineError } from '../runtime/engine-model.ts'
import type { CompletionRequest, TextEvent, TokenLogprob } from '../runtime/engine-model.ts'
import { readJson } from './body.ts'
import { ability, unixSeconds } from './exchange.ts'
import type { Exchange } from './exchange.ts'
import { optionalBoolean, optionalInteger, optionalString, required, requiredString } from './fields.ts'
import type { Fields } from './fields.ts'
import { eventStream, sendJson } from './reply.ts'
import { readSampling, samplingOfChoice } from './sampling-fields.ts'
import { chunkUsage, readStreamUsage, sumUsage, UsageTally } from './usage.ts'

const defaultMaxTokens = 16

/** POST /v1/completions: every prompt gets `n` answers, numbered prompt by prompt. */
export async function completions(exchange: Exchange): Promise<void> {
  const body = await readJson(exchange.request)
  const slug = requiredString(body, 'model')
  const requests = readRequests(body)
  const count = optionalInteger(body, 'n', 1, 128) ?? 1
  await exchange.models.use(slug, async (model) => {
    const complete = ability(model, 'complete', slug)
    const choices = requests.flatMap((request) =>
      Array.from({ length: count }, (_, index) =>
        complete({ ...request, sampling: samplingOfChoice(request.sampling, index) }, exchange.signal),
      ),
    )
    const tallies = requests.map(() => new UsageTally())
    const usage = () => sumUsage(tallies.map((tally) => tally.usage()))
    const meter = (choice: number, event: TextEvent) => tallies[Math.floor(choice / count)]?.add(choice % count, event)
    const head = { id: `cmpl-${randomUUID()}`, object: 'text_completion', created: unixSeconds(), model: slug }
    if (!optionalBoolean(body, 'stream')) {
      const answers = await Promise.all(choices.map((events, index) => collectChoice(events, index, meter)))
      sendJson(exchange.response, 200, { ...head, choices: answers, usage: usage() })
      return
    }
    const stream = eventStream(exchange.response, exchange.signal)
    const wanted = readStreamUsage(body)
    const relay = async (events: AsyncIterable<TextEvent>, index: number) => {
      const offset = { characters: 0 }
      for await (const event of events) {
        meter(index, event)
        const text = event.kind === 'text' ? event.text : ''
        const logprobs = event.kind === 'text' && event.logprobs ? legacyLogprobs(event.logprobs, offset) : null
        const choice = { index, text, logprobs, finish_reason: event.kind === 'end' ? event.finishReason : null }
        await stream.send({ ...head, choices: [choice], ...chunkUsage(wanted, usage) })
      }
    }
    await Promise.all(choices.map(relay))
    if (wanted.atEnd) await stream.send({ ...head, choices: [], usage: usage() })
    stream.end()
  })
}

function readRequests(body: Fields): CompletionRequest[] {
  const suffix = optionalString(body, 'suffix')
  const sampling = { maxTokens: defaultMaxTokens, ...readSampling(body, optionalInteger(body, 'logprobs', 0, 20)) }
  const echo = optionalBoolean(body, 'echo') ?? false
  const common = { echo, sampling, ...(suffix === undefined ? {} : { suffix }) }
  return readPrompts(body['prompt']).map((prompt) => Object.assign({ prompt }, common))
}

function isTokens(value: unknown): value is number[] {
  return Array.isArray(value) && value.length > 0 && value.every((item) => Number.isSafeInteger(item))
}

function isPrompt(value: unknown): value is string | number[] {
  return typeof value === 'string' || isTokens(value)
}

function readPrompts(prompt: unknown): (string | number[])[] {
  const given = required(prompt ?? undefined, 'prompt')
  if (isPrompt(given)) return [given]
  if (Array.isArray(given) && given.length > 0 && given.every(isPrompt)) return given
  throw new EngineError(400, 'invalid_type', "'prompt' must be a string, token ids, or an array of either.", 'prompt')
}

async function collectChoice(
  events: AsyncIterable<TextEvent>,
  index: number,
  meter: (choice: number, event: TextEvent) => void,
): Promise<object> {
  let text = ''
  let finishReason = 'stop'
  const logprobs: TokenLogprob[] = []
  for await (const event of events) {
    meter(index, event)
    if (event.kind === 'text') {
      text += event.text
      logprobs.push(...(event.logprobs ?? []))
    } else if (event.kind === 'end') finishReason = event.finishReason
  }
  const reported = logprobs.length > 0 ? legacyLogprobs(logprobs, { characters: 0 }) : null
  return { index, text, logprobs: reported, finish_reason: finishReason }
}

function legacyLogprobs(logprobs: readonly TokenLogprob[], offset: { characters: number }): object {
  return {
    tokens: logprobs.map((token) => token.text),
    token_logprobs: logprobs.map((token) => token.logprob),
    top_logprobs: logprobs.map((token) =>
      token.logprob === null ? null : Object.fromEntries(token.top.map(({ text, logprob }) => [text, logprob])),
    ),
    text_offset: logprobs.map((token) => {
      const start = offset.characters
      offset.characters += token.text.length
      return start
    }),
  }
}
