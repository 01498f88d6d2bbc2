import type { SlicedWork } from '../core/sliced-work.ts'
import { sumOf, textTokens, type TokenEstimate } from '../core/token-estimate.ts'

const SLICE_CHARACTERS = 262_144

/** The tokens of a text. A long one is estimated in slices. */
export function* tokensIn(text: string, tokenizer: string | undefined): SlicedWork<TokenEstimate> {
  if (text.length <= SLICE_CHARACTERS) return textTokens(text, tokenizer)
  const estimates: TokenEstimate[] = []
  for (let from = 0; from < text.length; from += SLICE_CHARACTERS) {
    estimates.push(textTokens(text.slice(from, from + SLICE_CHARACTERS), tokenizer))
    yield
  }
  return sumOf(estimates)
}

/** The tokens of all texts together. */
export function* tokensOfAll(texts: readonly string[], tokenizer: string | undefined): SlicedWork<TokenEstimate> {
  let charged = 0
  let likely = 0
  for (const text of texts) {
    // Most texts are short, and a generator for each would cost more than its estimate.
    const estimate = text.length <= SLICE_CHARACTERS ? textTokens(text, tokenizer) : yield* tokensIn(text, tokenizer)
    charged += estimate.charged
    likely += estimate.likely
    yield
  }
  return { charged, likely }
}

/** The tokens of each text. */
export function* tokensOfEach(texts: readonly string[], tokenizer: string | undefined): SlicedWork<TokenEstimate[]> {
  const estimates: TokenEstimate[] = []
  for (const text of texts) {
    estimates.push(yield* tokensIn(text, tokenizer))
    yield
  }
  return estimates
}
