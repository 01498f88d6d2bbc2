import type { OutputLimit } from './generation-limit.ts'
import { sumOfChoices, type ReportedUsage } from './generation-usage.ts'

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
