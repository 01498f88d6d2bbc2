import type { Job } from '../../core/job.ts'
import { asRecord, type JsonRecord } from '../../dialects/reading.ts'
import { generationAnswer, type AnswerFormat } from '../generation-answer.ts'
import type { StreamOptions } from '../generation-stream.ts'
import { chatStream } from './stream.ts'

const format: AnswerFormat = {
  idPrefix: 'chatcmpl-',
  object: 'chat.completion',
  content: ({ message }) => ({ message: toMessage(asRecord(message)) }),
}

/** A separate function, so that the closures do not retain the request body. */
export function chatAnswer(isStream: boolean, options: StreamOptions): Job['answer'] {
  if (isStream) return { kind: 'streamed', relay: (head) => chatStream(head, options) }
  return {
    kind: 'whole',
    read: ([body], head) => body && generationAnswer(body.whole(), head, options.cachedTokens, format),
  }
}

function toMessage(message: JsonRecord): object {
  const { content, refusal, tool_calls: toolCalls } = message
  const reasoning = message['reasoning_content'] ?? message['reasoning']
  return {
    role: 'assistant',
    content: typeof content === 'string' ? content : null,
    refusal: typeof refusal === 'string' ? refusal : null,
    ...(typeof reasoning === 'string' && reasoning !== '' ? { reasoning_content: reasoning } : {}),
    ...(Array.isArray(toolCalls) && toolCalls.length > 0 ? { tool_calls: toolCalls } : {}),
  }
}
