/**
 * Tokens guessed from UTF-8 bytes: exact tokenizers on the event loop can be held for seconds by one
 * request (DESIGN "Easily missed" 10), and admission needs a figure, not the figure.
 *
 * Common tokenizers give English 4 to 5 bytes a token, code about 3.5, Chinese about 3. The charge divides by 3, so
 * it errs high; the context check divides by 4, so that it never refuses what would have fitted: an engine
 * has the last word on the exact length.
 */
const CHARGED_BYTES_PER_TOKEN = 3
const LIKELY_BYTES_PER_TOKEN = 4
const TOKENS_PER_MESSAGE = 4
const TOKENS_PER_IMAGE = 1024

export interface InputSize {
  readonly textBytes: number
  readonly messages: number
  readonly images: number
}

/** What admission charges for an input. */
export function chargedTokens(size: InputSize): number {
  return tokens(size, CHARGED_BYTES_PER_TOKEN)
}

/** What an input most likely comes to, at the low end. */
export function likelyTokens(size: InputSize): number {
  return tokens(size, LIKELY_BYTES_PER_TOKEN)
}

/** What an answer most likely came to, where the engine does not say. */
export function likelyOutputTokens(bytes: number): number {
  return Math.ceil(bytes / LIKELY_BYTES_PER_TOKEN)
}

function tokens(size: InputSize, bytesPerToken: number): number {
  return Math.ceil(size.textBytes / bytesPerToken) + size.messages * TOKENS_PER_MESSAGE + size.images * TOKENS_PER_IMAGE
}
