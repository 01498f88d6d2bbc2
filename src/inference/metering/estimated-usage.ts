import type { Job, ParsedAnswer, StreamRelay } from '../../engines/job.ts'
import { noUsage, type Usage } from '../../billing/rating/rating.ts'
import { clampUsage } from './usage-bounds.ts'
import { likelyOutputTokens } from '../../shared/tokens/token-estimate.ts'

/** What an answer is billed as. */
export interface CountedUsage {
  readonly usage: Usage
  /** The figures are not the engine's own. */
  readonly isEstimated: boolean
  /** The engine generated more than was allowed, or reported more than is possible. */
  readonly isPastLimit: boolean
  /** The engine's count of the input, if it contradicts the estimate. */
  readonly contradictedCount?: number | undefined
}

/** Used when the engine reports no usage. */
export function estimatedUsage(job: Job, outputTokens: number, sentShare = 1): Usage {
  return { ...noUsage, inputTokens: Math.ceil(job.likelyInputTokens * sentShare), outputTokens }
}

export function wholeUsage(job: Job, answer: ParsedAnswer): CountedUsage {
  const { usage: reported, isPastLimit = false, estimated } = answer
  if (reported) {
    // The engine counted one prompt of several, which is the minimum for the input.
    const least = estimated === 'input and output' ? job.likelyInputTokens : 0
    const inputTokens = Math.max(reported.inputTokens, least)
    return allowedUsage(job, { ...reported, inputTokens }, estimated !== undefined, isPastLimit)
  }
  return { ...estimate(job, likelyOutputTokens(answer.outputBytes())), isPastLimit }
}

/**
 * The engine's last count, plus one token, the least possible, for every delta since then. `sentShare` is the part of the
 * input that was sent.
 */
export function streamedUsage(job: Job, relay: StreamRelay, sentShare: number): CountedUsage {
  const isPastLimit = relay.isPastLimit()
  const reported = relay.reportedUsage()
  if (!reported) return { ...estimate(job, relay.deltaCount(), sentShare), isPastLimit }
  const more = relay.deltasSinceReport()
  const usage = { ...reported, outputTokens: reported.outputTokens + more }
  return allowedUsage(job, usage, more > 0, isPastLimit, sentShare)
}

function estimate(job: Job, outputTokens: number, sentShare = 1): { usage: Usage; isEstimated: boolean } {
  return { usage: clampUsage(estimatedUsage(job, outputTokens, sentShare), job), isEstimated: true }
}

/**
 * What the engine counted, clamped to what is possible. A count that contradicts the text is billed too: a template may
 * add a long system prompt, and an engine may read only a part. It is reported, in case the engine counts something
 * else.
 */
function allowedUsage(
  job: Job,
  reported: Usage,
  isEstimated: boolean,
  isPastLimit: boolean,
  sentShare = 1,
): CountedUsage {
  const possible = clampUsage(reported, job)
  const isPossible =
    possible.inputTokens === reported.inputTokens &&
    possible.outputTokens === reported.outputTokens &&
    possible.images === reported.images
  const { least, most } = job.expectedInput ?? { least: 0, most: Infinity }
  const isContradicted = reported.inputTokens > most || reported.inputTokens < least * sentShare
  return {
    usage: possible,
    isEstimated: isEstimated || !isPossible,
    isPastLimit: isPastLimit || !isPossible,
    contradictedCount: isContradicted ? reported.inputTokens : undefined,
  }
}
