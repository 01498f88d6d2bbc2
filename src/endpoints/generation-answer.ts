import type { ByteCollector } from '../core/byte-collector.ts'
import type { AnswerHead, ParsedAnswer } from '../core/job.ts'
import { asList, asRecord, type JsonRecord } from '../dialects/reading.ts'
import { tryParseJson } from './engine-operation.ts'
import { echoOf, leastTokensOf, tokenBudget, type OutputLimit } from './generation-limit.ts'
import type { GenerationOptions } from './generation-options.ts'
import { readUsage, sumOfChoices, toWireUsage, type ReportedUsage } from './generation-usage.ts'

/** Where the complete answers of chat and text completion differ. `Content`: the fields that hold the output. */
export interface AnswerFormat<Content extends object> {
  readonly idPrefix: string
  readonly object: string
  content(choice: JsonRecord): Content
  outputOf(content: Content): string
  /** The same content, with only as much of each of its texts as `keep` returns. */
  cut(content: Content, keep: (text: string) => string): Content
}

/**
 * Turns an engine's complete answer into ours; undefined when it is not a complete answer. There is one body for each call.
 * Several calls have one choice each, in the order of their indexes.
 */
export function generationAnswer<Content extends object>(
  bodies: readonly ByteCollector[],
  head: AnswerHead,
  options: GenerationOptions,
  format: AnswerFormat<Content>,
): ParsedAnswer | undefined {
  const { limit } = options
  const answers = bodies.map((body) => asRecord(tryParseJson(body.whole())))
  const all = answers.flatMap((answer, call) => {
    const choices = (asList(answer['choices']) ?? []).map(asRecord)
    const asked = answers.length === 1 ? choices : choices.slice(0, 1)
    return asked.map((choice, position) => ({
      index: answers.length === 1 ? indexOf(choice, position) : call,
      content: format.content(choice),
      logprobs: choice['logprobs'] ?? null,
      finish_reason: choice['finish_reason'],
    }))
  })
  // As in a stream: an answer that lacks a choice, or does not say why one ended, is incomplete.
  if (all.length < limit.choices || all.some((choice) => typeof choice.finish_reason !== 'string')) return undefined
  const reported = usageIn(answers, options)
  const choices = all.slice(0, limit.choices).map(withinLimit)
  return {
    usage: reported?.usage,
    isPastLimit: all.length > limit.choices || choices.some((choice) => choice.isCut),
    outputBytes: () => choices.reduce((sum, choice) => sum + Buffer.byteLength(ownOutput(choice)), 0),
    render: (usage) =>
      JSON.stringify({
        id: format.idPrefix + head.id,
        object: format.object,
        created: head.created,
        model: head.model,
        choices: choices.map(({ index, content, logprobs, finish_reason }) => ({
          index,
          ...content,
          logprobs,
          finish_reason,
        })),
        usage: toWireUsage(usage, reported),
      }),
  }

  function ownOutput({ index, content }: (typeof all)[number]): string {
    return format.outputOf(content).slice(echoOf(limit, index))
  }

  /** Cuts a choice that has more output than allowed. */
  function withinLimit(choice: (typeof all)[number]): (typeof all)[number] & { readonly isCut: boolean } {
    if (!isPast(ownOutput(choice), reported, limit)) return { ...choice, isCut: false }
    const budget = tokenBudget(limit.maxTokens, limit.tokenizer, echoOf(limit, choice.index))
    const content = format.cut(choice.content, budget.keep)
    if (!budget.isExceeded()) return { ...choice, isCut: false }
    return { ...choice, content, logprobs: null, finish_reason: 'length', isCut: true }
  }
}

function indexOf(choice: JsonRecord, position: number): number {
  return typeof choice['index'] === 'number' ? choice['index'] : position
}

/** The usage of all answers together; undefined unless each of them has it. */
function usageIn(
  answers: readonly JsonRecord[],
  { limit, prompts = 1, cachedTokens }: GenerationOptions,
): ReportedUsage | undefined {
  const counts = new Map<number, ReportedUsage>()
  for (const answer of answers) {
    const usage = readUsage(answer['usage'], cachedTokens?.(answer))
    if (!usage) return undefined
    counts.set(counts.size, usage)
  }
  return sumOfChoices(counts, answers.length === 1 ? 1 : limit.choices / prompts)
}

/** By the engine's count, which is for all choices together; without one, only if the text leaves no doubt. */
function isPast(output: string, reported: ReportedUsage | undefined, limit: OutputLimit): boolean {
  if (reported) return reported.usage.outputTokens > limit.maxTokens * limit.generated
  return leastTokensOf(output) > limit.maxTokens
}
