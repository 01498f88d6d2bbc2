import type { AnswerHead, ReadAnswer } from '../core/job.ts'
import type { GenerationDialect } from './dialect.ts'
import { list, record, type Json } from './reading.ts'
import { readUsage, toWireUsage } from './usage.ts'

/** What chat and text completion word differently in a whole answer. */
export interface AnswerWording {
  readonly idPrefix: string
  readonly object: string
  /** The part of a choice that holds the output, in our words. */
  content(choice: Json): object
}

/** An engine's whole answer in our shape; `undefined` where it is none. */
export function generationAnswer(
  body: Buffer,
  head: AnswerHead,
  cachedTokens: GenerationDialect['cachedTokens'],
  wording: AnswerWording,
): ReadAnswer | undefined {
  let parsed: Json
  try {
    parsed = record(JSON.parse(body.toString('utf8')))
  } catch {
    return undefined
  }
  const choices = (list(parsed['choices']) ?? []).map(record).map((choice, position) => ({
    index: typeof choice['index'] === 'number' ? choice['index'] : position,
    ...wording.content(choice),
    logprobs: choice['logprobs'] ?? null,
    finish_reason: choice['finish_reason'],
  }))
  // As in a stream: an answer that does not say why it ended is not whole.
  if (choices.length === 0 || choices.some((choice) => typeof choice.finish_reason !== 'string')) return undefined
  const reported = readUsage(parsed['usage'], cachedTokens?.(parsed))
  return {
    usage: reported?.usage,
    outputBytes: () => (list(parsed['choices']) ?? []).reduce<number>((sum, choice) => sum + outputBytes(choice), 0),
    render: (usage) =>
      JSON.stringify({
        id: wording.idPrefix + head.id,
        object: wording.object,
        created: head.created,
        model: head.model,
        choices,
        usage: toWireUsage(usage, reported?.reasoningTokens ?? 0),
      }),
  }

  function outputBytes(choice: unknown): number {
    return Object.values(wording.content(record(choice))).reduce<number>((sum, part) => {
      return sum + Buffer.byteLength(typeof part === 'string' ? part : JSON.stringify(part))
    }, 0)
  }
}
