import type { ByteCollector } from '../../shared/byte-collector.ts'
import type { AnswerHead, ParsedAnswer } from '../../engines/job.ts'
import type { Usage } from '../../billing/rating/rating.ts'
import { likelyOutputTokens } from '../../shared/tokens/token-estimate.ts'
import { asList, asRecord, type JsonRecord } from '../../engines/dialects/reading.ts'
import { tryParseJson } from '../request/engine-operation.ts'
import { finishReason } from './engine-output.ts'
import { echoOf, leastTokensOf, tokenBudget, type OutputLimit } from './generation-limit.ts'
import type { GenerationOptions } from './generation-options.ts'
import { readUsage, sumOfChoices, toWireUsage, type ReportedUsage, type WireUsage } from './generation-usage.ts'

/** Where the complete answers of chat and text completion differ. `Content`: the fields with the output. */
export interface AnswerFormat<Content extends object> {
  readonly idPrefix: string
  readonly object: string
  /** `id`: unique among the choices. */
  content(choice: JsonRecord, id: string): Content
  logprobs(choice: JsonRecord): unknown
  outputOf(content: Content): string
  /** The same content, with only the part of each text that `keep` returns. */
  cut(content: Content, keep: (text: string) => string): Content
  /** A choice as callers see it. */
  choice(choice: AnswerChoice<Content>): object
  /** The answer in another API's format. */
  render?(
    head: AnswerHead,
    choices: readonly [AnswerChoice<Content>, ...AnswerChoice<Content>[]],
    usage: WireUsage,
  ): object
}

export interface AnswerChoice<Content> {
  readonly index: number
  readonly content: Content
  readonly logprobs: unknown
  readonly finish_reason: string | undefined
  /** It had more output than allowed. */
  readonly isCut: boolean
  /** As the engine wrote it. */
  readonly raw: JsonRecord
}

/**
 * Converts an engine's complete answer to ours; undefined if it is incomplete. There is one body for each call, and a
 * body may contain several answers: older versions of llama.cpp return a list, with one answer for each prompt.
 */
export function generationAnswer<Content extends object>(
  bodies: readonly ByteCollector[],
  head: AnswerHead,
  options: GenerationOptions,
  format: AnswerFormat<Content>,
): ParsedAnswer | undefined {
  const { limit } = options
  const answers = bodies.flatMap((body) => {
    const parsed = tryParseJson(body.whole())
    return (asList(parsed) ?? [parsed]).map(asRecord)
  })
  const all = answers
    // Of several answers, each has one choice.
    .flatMap((answer) => (asList(answer['choices']) ?? []).slice(0, answers.length === 1 ? undefined : 1).map(asRecord))
    .map((choice, position) => ({
      index: answers.length === 1 && typeof choice['index'] === 'number' ? choice['index'] : position,
      content: format.content(choice, `${head.id}_${position}`),
      logprobs: format.logprobs(choice),
      finish_reason: finishReason(choice['finish_reason']),
      isCut: false,
      raw: choice,
    }))
  // As in a stream: an answer that lacks a choice, or a finish_reason, is incomplete.
  if (all.length < limit.choices || all.some((choice) => choice.finish_reason === undefined)) return undefined
  const reported = usageIn(answers, options)
  const isPartial = reported !== undefined && answers.length === 1 && all.length > 1 && coversFirstChoiceOnly(reported)
  const choices = all.slice(0, limit.choices).map(withinLimit)
  return {
    usage: reported && isPartial ? withOtherChoices(reported.usage) : reported?.usage,
    estimated: !isPartial ? undefined : (options.prompts ?? 1) > 1 ? 'input and output' : 'output',
    isPastLimit: all.length > limit.choices || choices.some((choice) => choice.isCut),
    outputBytes: () => choices.reduce((sum, choice) => sum + Buffer.byteLength(ownOutput(choice)), 0),
    render: (usage) => {
      const wire = toWireUsage(usage, reported)
      const [first, ...others] = choices
      if (format.render && first) return JSON.stringify(format.render(head, [first, ...others], wire))
      return JSON.stringify({
        id: format.idPrefix + head.id,
        object: format.object,
        created: head.created,
        model: head.model,
        service_tier: head.tier,
        choices: choices.map(format.choice),
        usage: wire,
      })
    },
  }

  function ownOutput({ index, content }: (typeof all)[number]): string {
    return format.outputOf(content).slice(echoOf(limit, index))
  }

  /**
   * A count smaller than the words of the answer cannot cover all of its choices. Some servers count the first one
   * only.
   */
  function coversFirstChoiceOnly({ usage }: ReportedUsage): boolean {
    const words = all.reduce((sum, choice) => sum + leastTokensOf(ownOutput(choice)), 0)
    return usage.outputTokens < words
  }

  function withOtherChoices(first: Usage): Usage {
    const others = choices.slice(1).map(likelyTokens)
    return { ...first, outputTokens: others.reduce((sum, tokens) => sum + tokens, first.outputTokens) }
  }

  /** A choice that ended for its length has all the tokens it may have. A token has at least one byte. */
  function likelyTokens(choice: (typeof all)[number]): number {
    const bytes = Buffer.byteLength(ownOutput(choice))
    return choice.finish_reason === 'length' ? Math.min(limit.maxTokens, bytes) : likelyOutputTokens(bytes)
  }

  /** Cuts a choice that has more output than allowed. */
  function withinLimit(choice: (typeof all)[number]): (typeof all)[number] {
    if (!isPast(ownOutput(choice), isPartial ? undefined : reported, limit)) return choice
    const budget = tokenBudget(limit.maxTokens, limit.tokenizer, echoOf(limit, choice.index))
    const content = format.cut(choice.content, budget.keep)
    if (!budget.isExceeded()) return choice
    return { ...choice, content, logprobs: null, finish_reason: 'length', isCut: true }
  }
}

/** The usage of all answers together; undefined unless each of them has it. */
function usageIn(
  answers: readonly JsonRecord[],
  { limit, prompts = 1, usageOf }: GenerationOptions,
): ReportedUsage | undefined {
  const counts = new Map<number, ReportedUsage>()
  for (const answer of answers) {
    const usage = readUsage(usageOf ? usageOf(answer) : answer['usage'])
    if (!usage) return undefined
    counts.set(counts.size, usage)
  }
  return sumOfChoices(counts, answers.length === 1 ? 1 : limit.choices / prompts)
}

/** Judged by the engine's count, which is for all choices together; without one, only if the text leaves no doubt. */
function isPast(output: string, reported: ReportedUsage | undefined, limit: OutputLimit): boolean {
  if (reported) return reported.usage.outputTokens > limit.maxTokens * limit.generated
  return leastTokensOf(output) > limit.maxTokens
}
