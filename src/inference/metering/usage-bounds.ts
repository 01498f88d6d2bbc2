import type { ExpectedCount, Job, ParsedAnswer, Price, StreamRelay } from '../../engines/job.ts'
import { noUsage, type Usage, rate } from '../../billing/rating/rating.ts'
import type { PicoAud } from '../../shared/money/money.ts'
import { likelyOutputTokens, type TokenEstimate } from '../../shared/tokens/token-estimate.ts'

/**
 * What a request may use, what it is billed as, and what an engine should count.
 *
 * The most that a request can be billed for has a bound. An engine may report anything, so its counts are clamped to this. A spend
 * limit holds less of the input at first: a small text does not fill the context, and holding all of it would refuse
 * small requests needlessly. If an engine counts more than is held, the hold is raised before that is billed.
 */

/** An engine adds special tokens to each text, and for some models a short instruction. */
const ADDED_TOKENS = 256
/** A chat template adds more: a system prompt, and instructions for tools. */
export const CHAT_TEMPLATE_TOKENS = 8000

/** What the model reads: `contexts` separate texts, which have `bytes` together. */
export interface InputSize {
  readonly bytes: number
  /** Prompts, texts to embed, or documents to rank. */
  readonly contexts: number
  /** The most that the engine adds to each of them. */
  readonly addedTokens?: number
}

/** A model never reads more than its context at a time, and a text hardly ever has more tokens than bytes. */
export function inputBounds(size: InputSize, contextLength: number): Pick<Job, 'maxInputTokens' | 'heldInputTokens'> {
  const { bytes, contexts, addedTokens = ADDED_TOKENS } = size
  const maxInputTokens = contexts * contextLength
  return { maxInputTokens, heldInputTokens: Math.min(bytes + contexts * addedTokens, maxInputTokens) }
}

/** What a spend limit holds while the request runs. */
export function heldUsage({ heldInputTokens, maxTokens, media }: Job): Usage {
  return {
    ...noUsage,
    inputTokens: heldInputTokens,
    cachedInputTokens: heldInputTokens,
    outputTokens: maxTokens,
    images: media?.images ?? 0,
    audioMs: media?.audioMs ?? 0,
  }
}

/** The usage that is billed: what the engine reported, as far as it is possible. */
export function clampUsage(usage: Usage, job: Job): Usage {
  return clampTo({ ...heldUsage(job), inputTokens: job.maxInputTokens }, usage)
}

/** What is billed of it if the hold could not be raised. */
export function clampToHeld(usage: Usage, job: Job): Usage {
  return clampTo(heldUsage(job), usage)
}

function clampTo(most: Usage, usage: Usage): Usage {
  const inputTokens = Math.min(usage.inputTokens, most.inputTokens)
  return {
    inputTokens,
    cachedInputTokens: Math.min(usage.cachedInputTokens, inputTokens),
    outputTokens: Math.min(usage.outputTokens, most.outputTokens),
    images: Math.min(usage.images, most.images),
    audioMs: Math.min(usage.audioMs, most.audioMs),
  }
}

/** The most a request is expected to cost. A spend limit reserves it while the request runs. */
export function maximumCharge(job: Job, { rates }: Price): PicoAud {
  const cachedRate = rates.cachedInputPerToken ?? 0n
  // Cached input normally costs less, but an operator may configure the opposite.
  const inputPerToken = rates.inputPerToken > cachedRate ? rates.inputPerToken : cachedRate
  return rate(heldUsage(job), { ...rates, inputPerToken, cachedInputPerToken: null })
}

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

/**
 * The high estimate is 1.2 to 1.8 times the true count of ordinary text, and the low one 0.5 to 0.8 times. So a count
 * is contradicted if it is at least 2.5 times too high or too low: far beyond the differences between tokenizers, and
 * below the four characters of an English token.
 */
const CONTRADICTION_FACTOR = 2

/** Shorter texts are not judged by their low estimate: they may be a table of digits, or one letter many times. */
const LEAST_JUDGED = 200

/** What engines usually add to each text: special tokens, and for some models a short instruction. */
const USUAL_ADDED_TOKENS = 32
/** A reranker's template with its instruction. */
export const USUAL_PAIR_TEMPLATE_TOKENS = 128
/** A chat template may add a system prompt of its own, and instructions for tools. */
export const USUAL_TEMPLATE_TOKENS = 1000

/** How many input tokens an engine should count for `contexts` texts that are read separately and have `estimate` together. */
export function expectedCount(
  estimate: TokenEstimate,
  contexts: number,
  addedTokens = USUAL_ADDED_TOKENS,
): ExpectedCount {
  return {
    least: estimate.likely < LEAST_JUDGED ? 0 : Math.floor(estimate.likely / CONTRADICTION_FACTOR),
    most: estimate.charged * CONTRADICTION_FACTOR + contexts * addedTokens,
  }
}
