import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { asRecord } from '../../src/engines/dialects/reading.ts'
import type { TestWeir } from './weir.ts'

/** What a caller gets from a chat, as the official SDK of its form reads it. */
export interface ReadAnswer {
  readonly text: string
  readonly reasoning: string
  /** In the order of their names, arguments and ids. */
  readonly calls: readonly { readonly id: string; readonly name: string; readonly arguments: unknown }[]
  readonly end: 'stop' | 'tool_calls' | 'length' | 'content_filter'
  readonly usage: { readonly input: number; readonly cached: number; readonly output: number }
}

export type FormName = 'chat' | 'responses' | 'messages'

/** Asks for one chat in a form, whole or as a stream. */
export type SendForm = (model: string, isStream: boolean) => Promise<ReadAnswer>

const question = 'Hi'
const maxTokens = 4000

export function threeForms({ base, key }: TestWeir): Readonly<Record<FormName, SendForm>> {
  const openai = new OpenAI({ baseURL: base, apiKey: key, maxRetries: 0 })
  const anthropic = new Anthropic({ baseURL: base.replace('/v1', ''), apiKey: key, maxRetries: 0 })
  return {
    chat: (model, isStream) => sendChat(openai, model, isStream),
    responses: (model, isStream) => sendResponses(openai, model, isStream),
    messages: (model, isStream) => sendMessages(anthropic, model, isStream),
  }
}

async function sendChat({ chat: { completions } }: OpenAI, model: string, isStream: boolean): Promise<ReadAnswer> {
  const messages = [{ role: 'user' as const, content: question }]
  const asked = { model, messages, n: 1, max_tokens: maxTokens }
  let reasoning = ''
  let completion: OpenAI.ChatCompletion
  if (isStream) {
    const stream = completions.stream({ ...asked, stream_options: { include_usage: true } })
    // The SDK keeps only the last piece of a field that OpenAI does not have.
    stream.on('chunk', ({ choices }) => (reasoning += reasoningOf(choices[0]?.delta)))
    completion = await stream.finalChatCompletion()
  } else {
    completion = await completions.create(asked)
    reasoning = reasoningOf(completion.choices[0]?.message)
  }
  const { message, finish_reason: reason } = completion.choices[0]!
  const { prompt_tokens: input, completion_tokens: output, prompt_tokens_details: details } = completion.usage!
  const calls = (message.tool_calls ?? []).flatMap((call) =>
    call.type === 'function'
      ? [{ id: call.id, name: call.function.name, arguments: parsed(call.function.arguments) }]
      : [],
  )
  return {
    text: (message.content ?? '') + (message.refusal ?? ''),
    reasoning,
    calls: sorted(calls),
    end: reason as ReadAnswer['end'],
    usage: { input, output, cached: details?.cached_tokens ?? 0 },
  }
}

async function sendResponses({ responses }: OpenAI, model: string, isStream: boolean): Promise<ReadAnswer> {
  const asked = { model, input: question, max_output_tokens: maxTokens }
  const response = isStream ? await responses.stream(asked).finalResponse() : await responses.create(asked)
  const { output, status, incomplete_details: incomplete, usage } = response
  const calls = output.flatMap((item) =>
    item.type === 'function_call' ? [{ id: item.call_id, name: item.name, arguments: parsed(item.arguments) }] : [],
  )
  const cut = incomplete?.reason === 'content_filter' ? 'content_filter' : 'length'
  return {
    text: response.output_text,
    reasoning: output
      .flatMap((item) => (item.type === 'reasoning' ? (item.content ?? []).map(({ text }) => text) : []))
      .join(''),
    calls: sorted(calls),
    end: status === 'incomplete' ? cut : calls.length > 0 ? 'tool_calls' : 'stop',
    usage: {
      input: usage!.input_tokens,
      output: usage!.output_tokens,
      cached: usage!.input_tokens_details.cached_tokens,
    },
  }
}

async function sendMessages({ messages }: Anthropic, model: string, isStream: boolean): Promise<ReadAnswer> {
  const asked = {
    model,
    max_tokens: maxTokens,
    messages: [{ role: 'user' as const, content: question }],
    thinking: { type: 'adaptive' as const },
  }
  const message = isStream ? await messages.stream(asked).finalMessage() : await messages.create(asked)
  const { content, stop_reason: reason, usage } = message
  const cached = usage.cache_read_input_tokens ?? 0
  return {
    text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    reasoning: content.map((block) => (block.type === 'thinking' ? block.thinking : '')).join(''),
    calls: sorted(
      content.flatMap((block) =>
        block.type === 'tool_use' ? [{ id: block.id, name: block.name, arguments: block.input }] : [],
      ),
    ),
    end: ends[reason ?? ''] ?? 'stop',
    usage: { input: usage.input_tokens + cached, output: usage.output_tokens, cached },
  }
}

const ends: Readonly<Record<string, ReadAnswer['end']>> = {
  tool_use: 'tool_calls',
  max_tokens: 'length',
  refusal: 'content_filter',
}

function reasoningOf(message: object | undefined): string {
  const text = asRecord(message)['reasoning_content']
  return typeof text === 'string' ? text : ''
}

/** /messages has objects. A call without arguments has an empty one there. */
function parsed(text: string): unknown {
  return text === '' ? {} : JSON.parse(text)
}

function sorted(calls: ReadAnswer['calls']): ReadAnswer['calls'] {
  const keyOf = ({ id, name, arguments: value }: ReadAnswer['calls'][number]): string =>
    [name, JSON.stringify(value), id].join(' ')
  return calls.toSorted((one, other) => keyOf(one).localeCompare(keyOf(other)))
}
