import type { AnswerHead, StreamRelay } from '../../core/job.ts'
import { asRecord } from '../../dialects/reading.ts'
import { generationStream, type RewrittenChoice, type StreamOptions } from '../generation-stream.ts'

interface Delta {
  role?: string
  content?: string | null
  reasoning_content?: string | null
  reasoning?: string | null
  tool_calls?: unknown[] | null
}

interface Choice {
  index?: number
  delta?: Delta | null
  logprobs?: unknown
  finish_reason?: string | null
}

/** A chat stream: for each choice the role first, then content, then an empty delta with the finish_reason. */
export function chatStream(head: AnswerHead, options: StreamOptions): StreamRelay {
  const opened = new Set<number>()
  const finished = new Set<number>()

  function isPlain(choice: Choice): boolean {
    const { delta, index } = choice
    if (!delta || choice.finish_reason !== null || typeof index !== 'number' || !opened.has(index)) return false
    if (delta.role !== undefined || delta.reasoning !== undefined || delta.tool_calls?.length) return false
    return typeof delta.content === 'string' && delta.content !== ''
  }

  /** Splits a choice that combines role, content and finish_reason into one event for each. */
  function rewrite(choice: Choice, write: (choice: object) => string): RewrittenChoice {
    const index = choice.index ?? 0
    const piece = (delta: object, logprobs: unknown, finishReason: string | null): string =>
      write({ index, delta, logprobs: logprobs ?? null, finish_reason: finishReason })
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
    return { text, hasContent: content !== undefined, finished: finishes ? index : undefined }
  }

  return generationStream<Choice>(head, options, {
    idPrefix: 'chatcmpl-',
    object: 'chat.completion.chunk',
    isPlain,
    rewrite,
  })
}

/** The content of a delta, in our field names; undefined when it has none. */
function contentOf(delta: Delta): object | undefined {
  const reasoning = delta.reasoning_content ?? delta.reasoning
  const content = {
    ...(typeof delta.content === 'string' && delta.content !== '' ? { content: delta.content } : {}),
    ...(typeof reasoning === 'string' && reasoning !== '' ? { reasoning_content: reasoning } : {}),
    ...(Array.isArray(delta.tool_calls) && delta.tool_calls.length > 0
      ? { tool_calls: delta.tool_calls.map((call, index) => ({ index, ...asRecord(call) })) }
      : {}),
  }
  return Object.keys(content).length > 0 ? content : undefined
}
