import { randomUUID } from 'node:crypto'
import type { EngineChatRequest, FinishReason, TextEvent, TokenLogprob } from '../runtime/engine-model.ts'
import { readRequestJson } from './body.ts'
import { readChatRequest } from './chat-request.ts'
import { optionalBoolean, optionalInteger, requiredString } from './fields.ts'
import { abilityOf, unixSeconds, type HostCall } from './host-call.ts'
import { sendJson, serverSentEvents } from './reply.ts'
import { samplingOfChoice } from './sampling-fields.ts'
import { chunkUsage, readStreamUsage, usageTally, type StreamUsage, type UsageTally } from './usage.ts'

const MAX_CHOICES = 128

type Choices = readonly AsyncIterable<TextEvent>[]

/** POST /v1/chat/completions */
export async function chatCompletions(call: HostCall): Promise<void> {
  const body = await readRequestJson(call.request)
  const slug = requiredString(body, 'model')
  const request = readChatRequest(body)
  const count = optionalInteger(body, 'n', 1, MAX_CHOICES) ?? 1
  await call.models.use(slug, async (model) => {
    const chat = abilityOf(model, 'chat', slug)
    const choices = Array.from({ length: count }, (_, index) => chat(requestOfChoice(request, index), call.signal))
    const head = { id: `chatcmpl-${randomUUID()}`, created: unixSeconds(), model: slug }
    if (optionalBoolean(body, 'stream')) await streamChat(call, choices, head, readStreamUsage(body))
    else await sendChat(call, choices, head)
  })
}

function requestOfChoice(request: EngineChatRequest, index: number): EngineChatRequest {
  return { ...request, sampling: samplingOfChoice(request.sampling, index) }
}

async function streamChat(
  { response, signal }: HostCall,
  choices: Choices,
  head: object,
  include: StreamUsage,
): Promise<void> {
  const stream = serverSentEvents(response, signal)
  const tally = usageTally(choices.length)
  const chunk = (choices: readonly object[]): object => ({ ...head, object: 'chat.completion.chunk', choices })
  const relay = async (events: AsyncIterable<TextEvent>, index: number): Promise<void> => {
    for await (const event of events) {
      tally.add(index, event)
      const { logprobs, finishReason, ...delta } = chatDelta(event)
      const choice = { index, delta, logprobs: logprobs ?? null, finish_reason: finishReason ?? null }
      await stream.send({ ...chunk([choice]), ...chunkUsage(include, tally, index) })
    }
  }
  await Promise.all(choices.map(relay))
  if (include.atEnd) await stream.send({ ...chunk([]), usage: tally.usage() })
  stream.end()
}

interface ChatDelta {
  readonly role?: 'assistant'
  readonly content?: string
  readonly reasoning_content?: string
  readonly tool_calls?: readonly object[]
  readonly logprobs?: object
  readonly finishReason?: FinishReason
}

function chatDelta(event: TextEvent): ChatDelta {
  switch (event.kind) {
    case 'prompt':
      return { role: 'assistant', content: '' }
    case 'reasoning':
      return { reasoning_content: event.text }
    case 'tool_call':
      return { tool_calls: [{ index: event.index, ...toolCall(event.name, event.arguments) }] }
    case 'text':
      return { content: event.text, ...(event.logprobs ? { logprobs: chatLogprobs(event.logprobs) } : {}) }
    case 'end':
      return { finishReason: event.finishReason }
  }
}

async function sendChat({ response }: HostCall, choices: Choices, head: object): Promise<void> {
  const tally = usageTally(choices.length)
  const answers = await Promise.all(choices.map((events, index) => collectChoice(events, index, tally)))
  sendJson(response, 200, { ...head, object: 'chat.completion', choices: answers, usage: tally.usage() })
}

async function collectChoice(events: AsyncIterable<TextEvent>, index: number, tally: UsageTally): Promise<object> {
  let content = ''
  let reasoning = ''
  let finishReason: FinishReason = 'stop'
  const toolCalls: object[] = []
  const logprobs: TokenLogprob[] = []
  for await (const event of events) {
    tally.add(index, event)
    if (event.kind === 'text') {
      content += event.text
      logprobs.push(...(event.logprobs ?? []))
    } else if (event.kind === 'reasoning') reasoning += event.text
    else if (event.kind === 'tool_call') toolCalls.push(toolCall(event.name, event.arguments))
    else if (event.kind === 'end') finishReason = event.finishReason
  }
  const message = {
    role: 'assistant',
    content: content === '' && toolCalls.length > 0 ? null : content,
    refusal: null,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
  }
  return { index, message, logprobs: logprobs.length > 0 ? chatLogprobs(logprobs) : null, finish_reason: finishReason }
}

function toolCall(name: string, text: string): object {
  const id = `call_${randomUUID().replaceAll('-', '').slice(0, 24)}`
  return { id, type: 'function', function: { name, arguments: text } }
}

function chatLogprobs(logprobs: readonly TokenLogprob[]): object {
  const content = logprobs.map(({ text, logprob, top }) => ({
    ...logprobEntry(text, logprob ?? 0),
    top_logprobs: top.map((alternative) => logprobEntry(alternative.text, alternative.logprob)),
  }))
  return { content, refusal: null }
}

function logprobEntry(token: string, logprob: number): object {
  return { token, logprob, bytes: [...Buffer.from(token)] }
}
