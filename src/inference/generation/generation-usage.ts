import { noUsage, type Usage } from '../../billing/rating/rating.ts'
import { tokenCount } from '../../engines/dialects/reading.ts'
import type { OutputLimit } from './generation-limit.ts'

/** Token counts as callers see them. */
export interface WireUsage {
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly total_tokens: number
  readonly prompt_tokens_details: { readonly cached_tokens: number }
  readonly completion_tokens_details: { readonly reasoning_tokens: number }
}

export interface ReportedUsage {
  readonly usage: Usage
  readonly reasoningTokens: number
}

/** The usage an engine reported; undefined if it is missing or invalid. */
export function readUsage(reported: unknown): ReportedUsage | undefined {
  if (typeof reported !== 'object' || reported === null) return undefined
  const { prompt_tokens, completion_tokens, prompt_tokens_details, completion_tokens_details, reasoning_tokens } =
    reported as {
      prompt_tokens?: unknown
      completion_tokens?: unknown
      prompt_tokens_details?: { cached_tokens?: unknown } | null
      completion_tokens_details?: { reasoning_tokens?: unknown } | null
      /** SGLang reports it here. */
      reasoning_tokens?: unknown
    }
  const inputTokens = tokenCount(prompt_tokens)
  // A missing output count means 0, but an invalid one makes the whole report invalid.
  const outputTokens = tokenCount(completion_tokens ?? 0)
  if (inputTokens === undefined || outputTokens === undefined) return undefined
  // Some servers put an all-zero usage into every chunk. That is not a count to bill.
  if (inputTokens === 0 && outputTokens === 0) return undefined
  const cachedInputTokens = Math.min(inputTokens, tokenCount(prompt_tokens_details?.cached_tokens) ?? 0)
  const reasoningTokens = Math.min(
    outputTokens,
    tokenCount(completion_tokens_details?.reasoning_tokens) ?? tokenCount(reasoning_tokens) ?? 0,
  )
  return { usage: { ...noUsage, inputTokens, cachedInputTokens, outputTokens }, reasoningTokens }
}

/**
 * Adds up the counts of single choices, by index. The choices of one prompt have consecutive indexes, and each count
 * repeats the prompt's tokens, so those are added once per prompt. The largest count is taken: an engine that copies the
 * prompt from one choice to the next may report less for the others.
 */
export function sumOfChoices(counts: ReadonlyMap<number, ReportedUsage>, choicesPerPrompt: number): ReportedUsage {
  const prompts = new Map<number, Usage>()
  let outputTokens = 0
  let reasoningTokens = 0
  for (const [index, { usage, reasoningTokens: reasoning }] of counts) {
    outputTokens += usage.outputTokens
    reasoningTokens += reasoning
    const prompt = Math.floor(index / choicesPerPrompt)
    if (usage.inputTokens > (prompts.get(prompt)?.inputTokens ?? -1)) prompts.set(prompt, usage)
  }
  let { inputTokens, cachedInputTokens } = noUsage
  for (const usage of prompts.values()) {
    inputTokens += usage.inputTokens
    cachedInputTokens += usage.cachedInputTokens
  }
  return { usage: { ...noUsage, inputTokens, cachedInputTokens, outputTokens }, reasoningTokens }
}

/** `usage` is what is billed, which may be less than the engine reported. */
export function toWireUsage(usage: Usage, reported: ReportedUsage | undefined): WireUsage {
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedInputTokens },
    completion_tokens_details: { reasoning_tokens: Math.min(usage.outputTokens, reported?.reasoningTokens ?? 0) },
  }
}

/** Combines the counts that an engine reports during a stream. Deltas are events with output. */
export interface StreamCount {
  /** The engine has ended this choice. */
  end(index: number): void
  /** A count that arrived with one choice. It covers the deltas of that choice so far, and its prompt. */
  takeWithChoice(index: number, reported: ReportedUsage, deltasOfChoice: number): void
  /** A count that arrived without a choice. It covers all deltas so far, unless it turns out to be for one choice. */
  takeAlone(reported: ReportedUsage, deltas: number): void
  reported(): ReportedUsage | undefined
  /** The deltas that the count does not cover. */
  uncovered(deltas: number): number
}

interface Counted extends ReportedUsage {
  readonly deltas: number
}

/** `isTotalValid`: whether a count for the whole request still matches what callers get. */
export function streamCount(limit: OutputLimit, prompts: number, isTotalValid: () => boolean): StreamCount {
  const byChoice = new Map<number, Counted>()
  let deltasByChoice = 0
  let total: Counted | undefined
  /** The counts that arrived without a choice, by the only choice that had ended since the previous one. */
  const afterChoice = new Map<number, ReportedUsage>()
  const endedSinceCount = new Set<number>()

  function upToLimit(report: ReportedUsage): ReportedUsage {
    const outputTokens = Math.min(report.usage.outputTokens, limit.maxTokens)
    return { ...report, usage: { ...report.usage, outputTokens } }
  }

  /**
   * Most engines count once, when every choice has ended. llama.cpp counts each choice when it ends, and sends that in
   * an event without choices too. So these counts are for single choices if each choice got one.
   */
  function countsEachChoice(): boolean {
    return limit.choices > 1 && afterChoice.size >= limit.choices
  }

  /** The count for the whole request, unless the counts of its choices cover more. */
  function latestTotal(): Counted | undefined {
    return total && total.deltas >= deltasByChoice ? total : undefined
  }

  function reported(): ReportedUsage | undefined {
    const choicesPerPrompt = limit.choices / prompts
    if (countsEachChoice()) return sumOfChoices(afterChoice, choicesPerPrompt)
    return latestTotal() ?? (byChoice.size === 0 ? undefined : sumOfChoices(byChoice, choicesPerPrompt))
  }

  return {
    end: (index) => void endedSinceCount.add(index),
    takeWithChoice(index, report, deltas) {
      deltasByChoice += deltas - (byChoice.get(index)?.deltas ?? 0)
      byChoice.set(index, { ...upToLimit(report), deltas })
    },
    takeAlone(report, deltas) {
      const [ended, ...others] = endedSinceCount
      endedSinceCount.clear()
      if (ended !== undefined && others.length === 0) afterChoice.set(ended, upToLimit(report))
      if (isTotalValid()) total = { ...report, deltas }
    },
    reported,
    uncovered(deltas) {
      if (countsEachChoice()) return 0
      const since = deltas - (latestTotal()?.deltas ?? deltasByChoice)
      // Each delta has at least one token. A smaller count leaves out some of the choices.
      return limit.choices === 1 ? since : Math.max(since, deltas - (reported()?.usage.outputTokens ?? 0))
    },
  }
}
