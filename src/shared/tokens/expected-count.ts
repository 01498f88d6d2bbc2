import type { TokenEstimate } from './token-estimate.ts'

/**
 * How many input tokens an engine should count. A count outside this range may be of something else than tokens
 * (characters, words), include more than the text (a long system prompt of the template), or not cover the whole input.
 */
export interface ExpectedCount {
  readonly least: number
  readonly most: number
}

/**
 * The high estimate is 1.2 to 1.8 times the true count of ordinary text, and the low one 0.5 to 0.8 times. So a count
 * is contradicted if it is at least 2.5 times too high or too low: far beyond the differences between tokenizers, and
 * below the four characters of an English token.
 */
const CONTRADICTION_FACTOR = 2

/** Shorter texts are not judged by their low estimate: they may be a table of digits, or one letter many times. */
const LEAST_JUDGED = 200

/** What engines add to each text: special tokens, and for some models a short instruction. */
const ADDED_TOKENS = 32
/** A reranker's template with its instruction. */
export const PAIR_TEMPLATE_TOKENS = 128
/** A chat template may add a system prompt of its own, and instructions for tools. */
export const TEMPLATE_TOKENS = 1000

/** For `contexts` texts that are read separately and have `estimate` together. */
export function expectedCount(estimate: TokenEstimate, contexts: number, addedTokens = ADDED_TOKENS): ExpectedCount {
  return {
    least: estimate.likely < LEAST_JUDGED ? 0 : Math.floor(estimate.likely / CONTRADICTION_FACTOR),
    most: estimate.charged * CONTRADICTION_FACTOR + contexts * addedTokens,
  }
}
