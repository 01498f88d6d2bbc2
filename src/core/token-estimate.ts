import { costsOf, slotOf } from './tokenizers.ts'

/**
 * Estimates tokens from characters. An exact tokenizer could block the event loop for seconds on one request,
 * and admission does not need the exact number.
 *
 * There are two estimates. The charge is 30 % above the expected value, so that the budget is not overdrawn.
 * The likely figure is 30 % below it, so that the context check does not refuse a request that would fit: the
 * engine checks the exact length.
 */
const MARGIN = 0.3

export interface TokenEstimate {
  /** The high estimate, which admission charges. */
  readonly charged: number
  /** The low estimate, for the context check and when the engine reports no usage. */
  readonly likely: number
}

/** A chat template adds 3 to 8 tokens to each message. */
const MESSAGE: TokenEstimate = { charged: 8, likely: 3 }
/** Vision models use dozens of tokens for a small image and a few thousand for a large one. */
const IMAGE: TokenEstimate = { charged: 1024, likely: 64 }
const LIKELY_BYTES_PER_OUTPUT_TOKEN = 4

/** Text is copied here piece by piece: a typed array is more than twice as fast to read as a string. */
const piece = new Uint16Array(8192)
const pieceBytes = Buffer.from(piece.buffer)

/** One pass over the text, with one table lookup for each character. */
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

/** The longest start of a text whose high estimate is within `limit`, but at least one character. */
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

/** Used when the engine reports no usage. */
export function likelyOutputTokens(bytes: number): number {
  return Math.ceil(bytes / LIKELY_BYTES_PER_OUTPUT_TOKEN)
}
