import { randomUUID } from 'node:crypto'
import type { ChatRequest, FinishReason, TextEvent, TokenLogprob } from '../runtime/engine-model.ts'
import { readJson } from './body.ts'
import { readChatRequest } from './chat-request.ts'
import { ability, unixSeconds } from './exchange.ts'
import type { Exchange } from './exchange.ts'
import { optionalBoolean, optionalInteger, requiredString } from './fields.ts'
import { eventStream, sendJson } from './reply.ts'
import { samplingOfChoice } from './sampling-fields.ts'
import { chunkUsage, readStreamUsage, UsageTally } from './usage.ts'
import type { StreamUsage } from './usage.ts'

type Choices = readonly AsyncIterable<TextEvent>[]

/** POST /v1/chat/completions */
export async function chatCompletions(exchange: Exchange): Promise<void> {
  const body = await readJson(exchange.request)
  const slug = requiredString(body, 'model')
  const request = readChatRequest(body)
  const count = optionalInteger(body, 'n', 1, 128) ?? 1
  await exchange.models.use(slug, async (model) => {
    const chat = ability(model, 'chat', slug)
    const choices = Array.from({ length: count }, (_, index) => chat(requestOfChoice(request, index), exchange.signal))
    const head = { id: `chatcmpl-${randomUUID()}`, created: unixSeconds(), model: slug }
    if (optionalBoolean(body, 'stream')) await streamChat(exchange, choices, head, readStreamUsage(body))
    else await answerChat(exchange, choices, head)
  })
}

function requestOfChoice(request: ChatRequest, index: number): ChatRequest {
  return { ...request, sampling: samplingOfChoice(request.sampling, index) }
}

async function streamChat(
  { response, signal }: Exchange,
  choices: Choices,
  head: object,
  wanted: StreamUsage,
): Promise<void> {
  const stream = eventStream(response, signal)
  const tally = new UsageTally()
  const usage = () => tally.usage()
  const chunk = (choices: unknown[]) => ({ ...head, object: 'chat.completion.chunk', choices })
  const relay = async (events: AsyncIterable<TextEvent>, index: number) => {
    for await (const event of events) {
      tally.add(index, event)
      const { logprobs, finishReason, ...delta } = chatDelta(event)
      const choice = { index, delta, logprobs: logprobs ?? null, finish_reason: finishReason ?? null }
      await stream.send({ ...chunk([choice]), ...chunkUsage(wanted, usage) })
    }
  }
  await Promise.all(choices.map(relay))
  if (wanted.atEnd) await stream.send({ ...chunk([]), usage: usage() })
  stream.end()
}

interface ChatDelta {
  role?: 'assistant'
  content?: string
  reasoning_content?: string
  tool_calls?: unknown[]
  logprobs?: unknown
  finishReason?: FinishReason
}

function chatDelta(event: TextEvent): ChatDelta {
  if (event.kind === 'prompt') return { role: 'assistant', content: '' }
  if (event.kind === 'reasoning') return { reasoning_content: event.text }
  if (event.kind === 'tool_call') return { tool_calls: [toolCallDelta(event)] }
  if (event.kind === 'end') return { finishReason: event.finishReason }
  return { content: event.text, ...(event.logprobs ? { logprobs: chatLogprobs(event.logprobs) } : {}) }
}

function toolCallDelta(event: Extract<TextEvent, { kind: 'tool_call' }>): object {
  const { index, name } = event
  const details = { ...(name === undefined ? {} : { name }), arguments: event.arguments }
  return name === undefined
    ? { index, function: details }
    : { index, id: toolCallId(), type: 'function', function: details }
}

async function answerChat({ response }: Exchange, choices: Choices, head: object): Promise<void> {
  const tally = new UsageTally()
  const answers = await Promise.all(choices.map((events, index) => collectChoice(events, index, tally)))
  sendJson(response, 200, { ...head, object: 'chat.completion', choices: answers, usage: tally.usage() })
}

async function collectChoice(events: AsyncIterable<TextEvent>, index: number, tally: UsageTally): Promise<object> {
  let content = ''
  let reasoning = ''
  let finishReason: FinishReason = 'stop'
  const calls: { name: string; arguments: string }[] = []
  const logprobs: TokenLogprob[] = []
  for await (const event of events) {
    tally.add(index, event)
    if (event.kind === 'text') {
      content += event.text
      logprobs.push(...(event.logprobs ?? []))
    } else if (event.kind === 'reasoning') reasoning += event.text
    else if (event.kind === 'tool_call')
      (calls[event.index] ??= { name: event.name ?? '', arguments: '' }).arguments += event.arguments
    else if (event.kind === 'end') finishReason = event.finishReason
  }
  const toolCalls = calls.map((call) => ({ id: toolCallId(), type: 'function', function: call }))
  const message = {
    role: 'assistant',
    content: content === '' && toolCalls.length > 0 ? null : content,
    refusal: null,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
  }
  return { index, message, logprobs: logprobs.length > 0 ? chatLogprobs(logprobs) : null, finish_reason: finishReason }
}

function toolCallId(): string {
  return `call_${randomUUID().replaceAll('-', '').slice(0, 24)}`
}

function chatLogprobs(logprobs: readonly TokenLogprob[]): object {
  const content = logprobs.map(({ text, logprob, top }) => {
    const alternatives = top.map((alternative) => logprobEntry(alternative.text, alternative.logprob))
    return Object.assign(logprobEntry(text, logprob ?? 0), { top_logprobs: alternatives })
  })
  return { content, refusal: null }
}

function logprobEntry(token: string, logprob: number): object {
  return { token, logprob, bytes: [...Buffer.from(token)] }
}
