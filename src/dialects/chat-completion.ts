import type { AnswerHead, ReadAnswer } from '../core/job.ts'
import type { GenerationDialect } from './dialect.ts'
import { record } from './reading.ts'
import { readUsage, toWireUsage } from './usage.ts'

interface EngineMessage {
  content?: unknown
  refusal?: unknown
  reasoning_content?: unknown
  reasoning?: unknown
  tool_calls?: unknown
}

interface EngineChoice {
  index?: unknown
  message?: unknown
  logprobs?: unknown
  finish_reason?: unknown
}

/** An engine's whole answer in our shape; `undefined` where it is no chat completion. */
export function chatCompletion(
  [body]: readonly Buffer[],
  head: AnswerHead,
  cachedTokens?: GenerationDialect['cachedTokens'],
): ReadAnswer | undefined {
  let parsed: { [name: string]: unknown; choices?: EngineChoice[] }
  try {
    parsed = record(JSON.parse(body?.toString('utf8') ?? ''))
  } catch {
    return undefined
  }
  if (!Array.isArray(parsed.choices) || parsed.choices.length === 0) return undefined
  const choices = parsed.choices.map(record).map((choice: EngineChoice, position) => ({
    index: typeof choice.index === 'number' ? choice.index : position,
    message: toMessage(record(choice.message)),
    logprobs: choice.logprobs ?? null,
    finish_reason: typeof choice.finish_reason === 'string' ? choice.finish_reason : null,
  }))
  // As in a stream: an answer that does not say why it ended is not whole.
  if (choices.some((choice) => choice.finish_reason === null)) return undefined
  const reported = readUsage(parsed.usage, cachedTokens?.(parsed))
  return {
    usage: reported?.usage,
    outputBytes: () => choices.reduce((sum, choice) => sum + Buffer.byteLength(JSON.stringify(choice.message)), 0),
    render: (usage) =>
      JSON.stringify({
        id: `chatcmpl-${head.id}`,
        object: 'chat.completion',
        created: head.created,
        model: head.model,
        choices,
        usage: toWireUsage(usage, reported?.reasoningTokens ?? 0),
      }),
  }
}

function toMessage(message: EngineMessage): object {
  const reasoning = message.reasoning_content ?? message.reasoning
  return {
    role: 'assistant',
    content: typeof message.content === 'string' ? message.content : null,
    refusal: typeof message.refusal === 'string' ? message.refusal : null,
    ...(typeof reasoning === 'string' && reasoning !== '' ? { reasoning_content: reasoning } : {}),
    ...(Array.isArray(message.tool_calls) && message.tool_calls.length > 0 ? { tool_calls: message.tool_calls } : {}),
  }
}
