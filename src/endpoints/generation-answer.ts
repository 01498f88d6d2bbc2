import type { AnswerHead, ParsedAnswer } from '../core/job.ts'
import type { GenerationDialect } from '../dialects/dialect.ts'
import { asList, asRecord, type JsonRecord } from '../dialects/reading.ts'
import { tryParseJson } from './engine-operation.ts'
import { readUsage, toWireUsage } from './generation-usage.ts'

/** Where the complete answers of chat and text completion differ. */
export interface AnswerFormat {
  readonly idPrefix: string
  readonly object: string
  /** The fields of a choice that hold its output. */
  content(choice: JsonRecord): object
}

/** Turns an engine's complete answer into ours; undefined when it is not a complete answer. */
export function generationAnswer(
  body: Buffer,
  head: AnswerHead,
  cachedTokens: GenerationDialect['cachedTokens'],
  format: AnswerFormat,
): ParsedAnswer | undefined {
  const answer = asRecord(tryParseJson(body))
  const choices = (asList(answer['choices']) ?? []).map(asRecord).map((choice, position) => ({
    index: typeof choice['index'] === 'number' ? choice['index'] : position,
    ...format.content(choice),
    logprobs: choice['logprobs'] ?? null,
    finish_reason: choice['finish_reason'],
  }))
  // As in a stream: an answer that does not say why it ended is incomplete.
  if (choices.length === 0 || choices.some((choice) => typeof choice.finish_reason !== 'string')) return undefined
  const reported = readUsage(answer['usage'], cachedTokens?.(answer))
  return {
    usage: reported?.usage,
    outputBytes: () => (asList(answer['choices']) ?? []).reduce<number>((sum, choice) => sum + outputBytes(choice), 0),
    render: (usage) =>
      JSON.stringify({
        id: format.idPrefix + head.id,
        object: format.object,
        created: head.created,
        model: head.model,
        choices,
        usage: toWireUsage(usage, reported?.reasoningTokens ?? 0),
      }),
  }

  function outputBytes(choice: unknown): number {
    return Object.values(format.content(asRecord(choice))).reduce<number>((sum, part) => {
      return sum + Buffer.byteLength(typeof part === 'string' ? part : JSON.stringify(part))
    }, 0)
  }
}
