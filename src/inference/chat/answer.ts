import type { Job, AnswerHead } from '../../engines/job.ts'
import { asList, asRecord, type JsonRecord } from '../../engines/dialects/reading.ts'
import { generationAnswer, type AnswerFormat } from '../generation/generation-answer.ts'
import { chatLogprobs, isChatLogprobs, toBytes } from '../generation/engine-output.ts'
import type { GenerationOptions } from '../generation/generation-options.ts'
import { joinedStream } from '../generation/generation-calls.ts'
import { endingOf, type AnswerMessage, type ChatForm, type ChatDelta, type ChatEvents } from './form.ts'
import { cutToolCalls, toolCallText, wholeToolCalls, toolCallPieces, type ToolCallPieces } from './tool-calls.ts'
import { generationStream, type CallStream, type RewrittenChoice } from '../generation/generation-stream.ts'

const format: AnswerFormat<{ readonly message: AnswerMessage }> = {
  idPrefix: 'chatcmpl-',
  object: 'chat.completion',
  content: ({ message }, id) => ({ message: toMessage(asRecord(message), (call) => `call_${id}_${call}`) }),
  logprobs: ({ logprobs }) => chatLogprobs(logprobs),
  outputOf: ({ message: { reasoning_content: reasoning, content, refusal, tool_calls: calls } }) =>
    [reasoning, content, refusal, ...(calls ?? []).map(toolCallText)].filter(Boolean).join('\n'),
  cut({ message }, keep) {
    // In the order in which a model writes them.
    const reasoning = keep(message.reasoning_content ?? '')
    const content = keep(message.content ?? '')
    const refusal = keep(message.refusal ?? '')
    const calls = cutToolCalls(message.tool_calls ?? [], keep)
    return {
      message: {
        role: message.role,
        content: message.content === null ? null : content,
        refusal: message.refusal === null ? null : refusal,
        reasoning_content: reasoning === '' ? undefined : reasoning,
        tool_calls: calls.length === 0 ? undefined : calls,
      },
    }
  },
  choice: ({ index, content, logprobs, finish_reason }) => ({
    index,
    message: content.message,
    logprobs,
    finish_reason,
  }),
}

/** A separate function, so that the closures do not retain the request body. */
export function chatAnswer(isStream: boolean, options: GenerationOptions): Job['answer'] {
  if (isStream) return { kind: 'streamed', relay: (head) => joinedStream(options, (part) => chatStream(head, part)) }
  return { kind: 'whole', read: async (bodies, head) => generationAnswer(bodies, head, options, format) }
}

/** The same in the form of another API, which has one choice. */
export function translatedAnswer(
  isStream: boolean,
  options: GenerationOptions,
  form: ChatForm,
  likelyInputTokens: number,
): Job['answer'] {
  if (isStream) {
    return {
      kind: 'streamed',
      relay: (head) => joinedStream(options, (part) => chatStream(head, part, form.stream(head, likelyInputTokens))),
    }
  }
  const translated: typeof format = {
    ...format,
    render: (head, [choice], usage) =>
      form.whole(head, {
        message: choice.content.message,
        ending: endingOf(choice.raw, choice.finish_reason ?? ''),
        usage,
      }),
  }
  return { kind: 'whole', read: async (bodies, head) => generationAnswer(bodies, head, options, translated) }
}

function toMessage(message: JsonRecord, callId: (index: number) => string): AnswerMessage {
  const { content, refusal } = message
  const toolCalls = asList(message['tool_calls']) ?? []
  const reasoning = message['reasoning_content'] ?? message['reasoning']
  return {
    role: 'assistant',
    content: typeof content === 'string' ? content : null,
    refusal: typeof refusal === 'string' ? refusal : null,
    reasoning_content: typeof reasoning === 'string' && reasoning !== '' ? reasoning : undefined,
    tool_calls: toolCalls.length > 0 ? wholeToolCalls(toolCalls, callId) : undefined,
  }
}

/** The type of these fields is unknown until `contentOf` has checked it. */
interface Delta {
  role?: unknown
  content?: unknown
  refusal?: unknown
  reasoning_content?: unknown
  reasoning?: unknown
  tool_calls?: unknown
}

interface Choice {
  index?: number
  delta?: Delta | null
  logprobs?: unknown
  finish_reason?: string | null
}

/**
 * A chat stream: for each choice the role first, then content, then an empty delta with the finish_reason. With
 * `events`, it sends those of another API instead, for its only choice.
 */
export function chatStream(head: AnswerHead, options: GenerationOptions, events?: ChatEvents): CallStream {
  const opened = new Set<number>()
  const finished = new Set<number>()
  const toolCalls = new Map<number, ToolCallPieces>()
  const { firstIndex = 0 } = options

  function withoutRepetition(choice: Choice): Choice {
    const { delta, index = 0 } = choice
    const calls = asList(delta?.tool_calls)
    if (!calls || calls.length === 0) return choice
    let piecesOf = toolCalls.get(index)
    if (!piecesOf)
      toolCalls.set(index, (piecesOf = toolCallPieces((call) => `call_${head.id}_${firstIndex + index}_${call}`)))
    return { ...choice, delta: { ...delta, tool_calls: piecesOf(calls) } }
  }

  function isPlain(choice: Choice): boolean {
    const { delta, index } = choice
    if (events) return false
    if (!delta || choice.finish_reason !== null || typeof index !== 'number' || !opened.has(index)) return false
    if (delta.role !== undefined || delta.reasoning !== undefined || !hasNoCalls(delta.tool_calls)) return false
    if (!isTextOrNone(delta.reasoning_content) || !isTextOrNone(delta.refusal)) return false
    if (choice.logprobs && !isChatLogprobs(choice.logprobs)) return false
    return typeof delta.content === 'string' && delta.content !== ''
  }

  /** Splits a choice that combines role, content and finish_reason into one event for each. */
  function rewrite(choice: Choice, write: (choice: object) => string): RewrittenChoice {
    if (events) return translate(choice, events)
    const index = choice.index ?? 0
    const piece = (delta: object, logprobs: unknown, finishReason: string | null): string =>
      write({ index, delta, logprobs: chatLogprobs(logprobs), finish_reason: finishReason })
    let text = ''
    if (!opened.has(index)) {
      opened.add(index)
      text += piece({ role: 'assistant', content: '' }, null, null)
    }
    const content = contentOf(choice.delta ?? {})
    if (content) text += piece(content, choice.logprobs, null)
    const finishes = Boolean(choice.finish_reason) && !finished.has(index)
    if (finishes) {
      finished.add(index)
      text += piece({}, content ? null : choice.logprobs, choice.finish_reason ?? null)
    }
    return { text, finished: finishes ? index : undefined }
  }

  function translate(choice: Choice, { delta, finish, isBroken }: ChatEvents): RewrittenChoice {
    const text = toBytes(delta(contentOf(choice.delta ?? {}) ?? {}))
    const { index = 0, finish_reason: reason } = choice
    if (!reason || finished.size > 0) return { text, finished: undefined, isBroken: isBroken() }
    finished.add(index)
    finish(endingOf(choice, reason))
    return { text, finished: index, isBroken: isBroken() }
  }

  return generationStream<Choice>(head, options, {
    idPrefix: 'chatcmpl-',
    object: 'chat.completion.chunk',
    // Log probabilities in the format of text completions lack the bytes of their tokens. The texts of another API's
    // events are assembled from several events.
    countsCharacters: (data) => events !== undefined || data.includes('"token_logprobs"'),
    withoutRepetition,
    isPlain,
    outputOf: ({ delta }) => (delta ? outputOf(delta) : undefined),
    cut: ({ index, delta }, keep) => ({
      index: index ?? 0,
      delta: cutDelta(delta ?? {}, keep),
      finish_reason: 'length',
    }),
    rewrite,
    ending: (index, reason) => ({ index, delta: {}, finish_reason: toolCalls.has(index) ? 'tool_calls' : reason }),
    ends: events && {
      closing: (usage) => toBytes(events.closing(usage)),
      failure: (error) => toBytes(events.failure(error)),
      idle: () => toBytes(events.idle()),
    },
  })
}

/** The generated content; undefined if there is none. */
function outputOf(delta: Delta): string | undefined {
  const { content, tool_calls: calls } = delta
  // The usual case.
  if (typeof content === 'string' && content !== '' && !delta.reasoning_content && !calls) return content
  const output = contentOf(delta)
  if (!output) return undefined
  const { reasoning_content: reasoning, content: text, refusal, tool_calls: pieces = [] } = output
  return [reasoning, text, refusal, ...pieces.map(toolCallText)].join('')
}

function cutDelta(delta: Delta, keep: (text: string) => string): Delta {
  const { reasoning_content: reasoning, content, refusal, tool_calls: calls } = contentOf(delta) ?? {}
  return {
    ...(reasoning === undefined ? {} : { reasoning_content: keep(reasoning) }),
    ...(content === undefined ? {} : { content: keep(content) }),
    ...(refusal === undefined ? {} : { refusal: keep(refusal) }),
    ...(calls ? { tool_calls: cutToolCalls(calls, keep) } : {}),
  }
}

/** The content of a delta, in our field names and of the right types; undefined when it has none. */
function contentOf(delta: Delta): ChatDelta | undefined {
  const reasoning = delta.reasoning_content ?? delta.reasoning
  const calls = asList(delta.tool_calls) ?? []
  const content: ChatDelta = {
    ...(typeof delta.content === 'string' && delta.content !== '' ? { content: delta.content } : {}),
    ...(typeof delta.refusal === 'string' && delta.refusal !== '' ? { refusal: delta.refusal } : {}),
    ...(typeof reasoning === 'string' && reasoning !== '' ? { reasoning_content: reasoning } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  }
  return Object.keys(content).length > 0 ? content : undefined
}

function isTextOrNone(value: unknown): boolean {
  return value === undefined || value === null || typeof value === 'string'
}

/** Whether no tool call is in it. */
function hasNoCalls(calls: unknown): boolean {
  return calls === undefined || calls === null || asList(calls)?.length === 0
}
