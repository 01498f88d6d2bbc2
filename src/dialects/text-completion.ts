import type { AnswerHead, ReadAnswer } from '../core/job.ts'
import type { GenerationDialect } from './dialect.ts'
import { record } from './reading.ts'
import { readUsage, toWireUsage } from './usage.ts'

interface EngineChoice {
  index?: unknown
  text?: unknown
  logprobs?: unknown
  finish_reason?: unknown
}

/** An engine's whole legacy completion in our shape; `undefined` where it is none. */
export function textCompletion(
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
    text: typeof choice.text === 'string' ? choice.text : '',
    logprobs: choice.logprobs ?? null,
    finish_reason: typeof choice.finish_reason === 'string' ? choice.finish_reason : null,
  }))
  if (choices.some((choice) => choice.finish_reason === null)) return undefined
  const reported = readUsage(parsed['usage'], cachedTokens?.(parsed))
  return {
    usage: reported?.usage,
    outputBytes: () => choices.reduce((sum, choice) => sum + Buffer.byteLength(choice.text), 0),
    render: (usage) =>
      JSON.stringify({
        id: `cmpl-${head.id}`,
        object: 'text_completion',
        created: head.created,
        model: head.model,
        choices,
        usage: toWireUsage(usage, reported?.reasoningTokens ?? 0),
      }),
  }
}
