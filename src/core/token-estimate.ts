import { costsOf, slotOf } from './tokenizers.ts'

/**
 * Tokens guessed from characters: exact tokenizers on the event loop can be held for seconds by one
 * request (DESIGN "Easily missed" 10), and admission needs a figure, not the figure.
 *
 * There are two. The charge is put 30 % above the middle, so that the budget is not overdrawn; the likely
 * figure is put 30 % below it, so that the context check does not refuse what would have fitted: an engine
 * has the last word on the exact length.
 */
const MARGIN = 0.3

export interface TokenEstimate {
  /** What admission charges. */
  readonly charged: number
  /** What it comes to at the low end: for the context check, and for an engine that reports no usage. */
  readonly likely: number
}

/** A chat template puts 3 to 8 tokens around each message. */
const MESSAGE: TokenEstimate = { charged: 8, likely: 3 }
/** Vision models spend from some dozens of tokens on a small image to a few thousand on a large one. */
const IMAGE: TokenEstimate = { charged: 1024, likely: 64 }
const LIKELY_BYTES_PER_OUTPUT_TOKEN = 4

/** Text is copied here in pieces: a typed array is read more than twice as fast as a string. */
const piece = new Uint16Array(8192)
const pieceBytes = Buffer.from(piece.buffer)

/** One walk over the text, one look into a table for each character. */
export function textTokens(text: string, tokenizer: string | undefined): TokenEstimate {
  const { most, least } = costsOf(tokenizer)
  let highest = 0
  let lowest = 0
  for (let start = 0; start < text.length; start += piece.length) {
    const part = text.length <= piece.length ? text : text.slice(start, start + piece.length)
    const length = pieceBytes.write(part, 'utf16le') / 2
    let high = 0
    let low = 0
    for (let index = 0; index < length; index++) {
      const slot = slotOf(piece[index]!)
      high = (high + most[slot]!) | 0
      low = (low + least[slot]!) | 0
    }
    highest += high
    lowest += low
  }
  return { charged: Math.ceil((highest / 100) * (1 + MARGIN)), likely: Math.ceil((lowest / 100) * (1 - MARGIN)) }
}

/** As much of the beginning of a text as costs no more than `limit` even at the high end; a character at least. */
export function firstTokens(text: string, limit: number, tokenizer: string | undefined): string {
  const { most } = costsOf(tokenizer)
  const room = (limit * 100) / (1 + MARGIN)
  let cost = 0
  for (let index = 0; index < text.length; index++) {
    cost += most[slotOf(text.charCodeAt(index))]!
    if (cost <= room) continue
    const first = text.codePointAt(0)! > 0xffff ? 2 : 1
    const isInsidePair = /[\ud800-\udbff]/.test(text.charAt(index - 1))
    return text.slice(0, Math.max(first, isInsidePair ? index - 1 : index))
  }
  return text
}

export function messageTokens(messages: number): TokenEstimate {
  return times(MESSAGE, messages)
}

export function imageTokens(images: number): TokenEstimate {
  return times(IMAGE, images)
}

export function sumOf(estimates: readonly TokenEstimate[]): TokenEstimate {
  let charged = 0
  let likely = 0
  for (const estimate of estimates) {
    charged += estimate.charged
    likely += estimate.likely
  }
  return { charged, likely }
}

export function times(estimate: TokenEstimate, count: number): TokenEstimate {
  return { charged: estimate.charged * count, likely: estimate.likely * count }
}

/** What an answer most likely came to, where the engine does not say. */
export function likelyOutputTokens(bytes: number): number {
  return Math.ceil(bytes / LIKELY_BYTES_PER_OUTPUT_TOKEN)
}
