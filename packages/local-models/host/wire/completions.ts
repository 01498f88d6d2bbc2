import { randomUUID } from 'node:crypto'
import { parameterError } from '../runtime/host-error.ts'
import type { CompletionRequest, TextEvent, TokenLogprob } from '../runtime/engine-model.ts'
import type { JsonObject, JsonValue } from '../runtime/json-value.ts'
import { readRequestJson } from './body.ts'
import { optionalBoolean, optionalInteger, optionalString, required, requiredString } from './fields.ts'
import { abilityOf, unixSeconds, type HostCall } from './host-call.ts'
import { sendJson, serverSentEvents } from './reply.ts'
import { readSampling, samplingOfChoice } from './sampling-fields.ts'
import { chunkUsage, readStreamUsage, usageTally, type StreamUsage, type UsageTally } from './usage.ts'

const DEFAULT_MAX_TOKENS = 16
const MAX_CHOICES_PER_PROMPT = 128
const MAX_LOGPROBS = 20

/** The answers to one request, numbered prompt by prompt, and the tokens they use. */
interface Completions {
  readonly head: object
  readonly choices: readonly AsyncIterable<TextEvent>[]
  readonly tally: UsageTally
}

/** POST /v1/completions: every prompt gets `n` answers. */
export async function completions(call: HostCall): Promise<void> {
  const body = await readRequestJson(call.request)
  const slug = requiredString(body, 'model')
  const requests = readRequests(body)
  const count = optionalInteger(body, 'n', 1, MAX_CHOICES_PER_PROMPT) ?? 1
  await call.models.use(slug, async (model) => {
    const complete = abilityOf(model, 'complete', slug)
    const answers: Completions = {
      head: { id: `cmpl-${randomUUID()}`, object: 'text_completion', created: unixSeconds(), model: slug },
      choices: requests.flatMap((request) =>
        Array.from({ length: count }, (_, index) =>
          complete({ ...request, sampling: samplingOfChoice(request.sampling, index) }, call.signal),
        ),
      ),
      tally: usageTally(count),
    }
    if (optionalBoolean(body, 'stream')) await streamCompletions(call, answers, readStreamUsage(body))
    else await sendCompletions(call, answers)
  })
}

async function streamCompletions(
  { response, signal }: HostCall,
  { head, choices, tally }: Completions,
  include: StreamUsage,
): Promise<void> {
  const stream = serverSentEvents(response, signal)
  const relay = async (events: AsyncIterable<TextEvent>, index: number): Promise<void> => {
    const offset = { characters: 0 }
    for await (const event of events) {
      tally.add(index, event)
      const text = event.kind === 'text' ? event.text : ''
      const logprobs = event.kind === 'text' && event.logprobs ? legacyLogprobs(event.logprobs, offset) : null
      const choice = { index, text, logprobs, finish_reason: event.kind === 'end' ? event.finishReason : null }
      await stream.send({ ...head, choices: [choice], ...chunkUsage(include, tally, index) })
    }
  }
  await Promise.all(choices.map(relay))
  if (include.atEnd) await stream.send({ ...head, choices: [], usage: tally.usage() })
  stream.end()
}

async function sendCompletions({ response }: HostCall, { head, choices, tally }: Completions): Promise<void> {
  const answers = await Promise.all(choices.map((events, index) => collectChoice(events, index, tally)))
  sendJson(response, 200, { ...head, choices: answers, usage: tally.usage() })
}

async function collectChoice(events: AsyncIterable<TextEvent>, index: number, tally: UsageTally): Promise<object> {
  let text = ''
  let finishReason = 'stop'
  const logprobs: TokenLogprob[] = []
  for await (const event of events) {
    tally.add(index, event)
    if (event.kind === 'text') {
      text += event.text
      logprobs.push(...(event.logprobs ?? []))
    } else if (event.kind === 'end') finishReason = event.finishReason
  }
  const reported = logprobs.length > 0 ? legacyLogprobs(logprobs, { characters: 0 }) : null
  return { index, text, logprobs: reported, finish_reason: finishReason }
}

/** `offset` is where the next token starts in the text; it moves along. */
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

function readRequests(body: JsonObject): CompletionRequest[] {
  const suffix = optionalString(body, 'suffix')
  const topLogprobs = optionalInteger(body, 'logprobs', 0, MAX_LOGPROBS)
  const sampling = { maxTokens: DEFAULT_MAX_TOKENS, ...readSampling(body, topLogprobs) }
  const echo = optionalBoolean(body, 'echo') ?? false
  return readPrompts(body['prompt']).map((prompt) => ({
    prompt,
    echo,
    sampling,
    ...(suffix === undefined ? {} : { suffix }),
  }))
}

function readPrompts(prompt: JsonValue | undefined): readonly (string | readonly number[])[] {
  const given = required(prompt ?? undefined, 'prompt')
  if (isPrompt(given)) return [given]
  if (Array.isArray(given) && given.length > 0 && given.every(isPrompt)) return given
  throw parameterError('invalid_type', 'prompt', 'a string, token ids, or an array of either')
}

function isPrompt(value: JsonValue): value is string | number[] {
  if (typeof value === 'string') return true
  return Array.isArray(value) && value.length > 0 && value.every((it) => Number.isSafeInteger(it))
}
