import type { AnswerHead, ReadAnswer } from '../core/job.ts'
import type { GenerationDialect } from './dialect.ts'
import { generationAnswer, type AnswerWording } from './generation-answer.ts'
import { record, type Json } from './reading.ts'

const wording: AnswerWording = {
  idPrefix: 'chatcmpl-',
  object: 'chat.completion',
  content: ({ message }) => ({ message: toMessage(record(message)) }),
}

/** A whole chat completion. */
export function chatCompletion(
  body: Buffer,
  head: AnswerHead,
  cachedTokens?: GenerationDialect['cachedTokens'],
): ReadAnswer | undefined {
  return generationAnswer(body, head, cachedTokens, wording)
}

function toMessage(message: Json): object {
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
