import { costsOf, slotOf, type CharacterCosts } from './tokenizers.ts'

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

/** One pass over the text. */
export function textTokens(text: string, tokenizer: string | undefined): TokenEstimate {
  const costs = costsOf(tokenizer)
  const total = { highest: 0, lowest: 0 }
  for (let start = 0; start < text.length; start += piece.length) {
    const part = text.length <= piece.length ? text : text.slice(start, start + piece.length)
    // Every other character takes more than one byte.
    const isAscii = pieceBytes.write(part, 'utf8') === part.length
    if (isAscii) addAscii(part.length, costs, total)
    else addCharacters(pieceBytes.write(part, 'utf16le') / 2, costs, total)
  }
  return withMargins(total.highest, total.lowest)
}

/** Hundredths of a token. */
interface Cost {
  highest: number
  lowest: number
}

/** This many pairs cost less than 2 ** 15 hundredths, even of digits: see `CharacterCosts.pairs`. */
const PAIRS_ADDED = 128

/**
 * Adds the ASCII characters in `pieceBytes`, with one lookup for two of them. Most text is ASCII, and this takes a
 * fourth of the time of `addCharacters`: a chat of 100 KB took 30 % of its time there.
 */
function addAscii(length: number, { most, least, pairs: pairsOf }: CharacterCosts, total: Cost): void {
  const pairs = pairsOf()
  const whole = length >> 1
  for (let index = 0; index < whole;) {
    const end = Math.min(whole, index + PAIRS_ADDED)
    let sum = 0
    for (; index < end - 1; index += 2) sum = (sum + pairs[piece[index]!]! + pairs[piece[index + 1]!]!) | 0
    if (index < end) sum = (sum + pairs[piece[index++]!]!) | 0
    total.highest += sum & 0xffff
    total.lowest += sum >>> 16
  }
  if (length % 2 === 0) return
  total.highest += most[pieceBytes[length - 1]!]!
  total.lowest += least[pieceBytes[length - 1]!]!
}

/** Adds the characters in `piece`, with one lookup for each. */
function addCharacters(length: number, { most, least }: CharacterCosts, total: Cost): void {
  let high = 0
  let low = 0
  for (let index = 0; index < length; index++) {
    const slot = slotOf(piece[index]!)
    high = (high + most[slot]!) | 0
    low = (low + least[slot]!) | 0
  }
  total.highest += high
  total.lowest += low
}

/** Takes hundredths of a token. */
function withMargins(highest: number, lowest: number): TokenEstimate {
  return { charged: Math.ceil((highest / 100) * (1 + MARGIN)), likely: Math.ceil((lowest / 100) * (1 - MARGIN)) }
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const SPACE = 0x20
/** Any character of each kind, since all of them cost the same. */
const HIGH_SURROGATE = 0xd800
const LOW_SURROGATE = 0xdc00

/**
 * The same for JSON in a body, from its bytes and without a copy: names, values and punctuation, since engines put
 * such JSON into the prompt as text. White space between the values and the way characters are escaped do not count.
 */
export function jsonTokens(bytes: Buffer, start: number, end: number, tokenizer: string | undefined): TokenEstimate {
  const { most, least } = costsOf(tokenizer)
  let highest = 0
  let lowest = 0
  let isInString = false
  for (let index = start; index < end;) {
    // Piece by piece, as in textTokens: sums of small integers are fast.
    const pieceEnd = Math.min(end, index + piece.length)
    let high = 0
    let low = 0
    while (index < pieceEnd) {
      let code = bytes[index++]!
      if (code === BACKSLASH) {
        code = escapedCharacter(bytes, index)
        index += bytes[index] === LOWER_U ? 5 : 1
      } else if (code < 0x80) {
        if (code === QUOTE) isInString = !isInString
        if (code <= SPACE && !isInString) continue
      } else if (code < 0xe0) {
        // The other bytes of a character do not change its slot.
        code = (code & 0x1f) << 6
        index += 1
      } else if (code < 0xf0) {
        code = ((code & 0x0f) << 12) | ((bytes[index]! & 0x3f) << 6)
        index += 2
      } else {
        high = (high + most[slotOf(HIGH_SURROGATE)]!) | 0
        low = (low + least[slotOf(HIGH_SURROGATE)]!) | 0
        code = LOW_SURROGATE
        index += 3
      }
      const slot = slotOf(code)
      high = (high + most[slot]!) | 0
      low = (low + least[slot]!) | 0
    }
    highest += high
    lowest += low
  }
  return withMargins(highest, lowest)
}

const LOWER_U = 0x75
const WHITE_SPACE: ReadonlySet<number> = new Set(Buffer.from('nrt'))

/** The character that the escape with this letter stands for, or one that costs the same. */
function escapedCharacter(bytes: Buffer, letter: number): number {
  const code = bytes[letter] ?? SPACE
  if (code !== LOWER_U) return WHITE_SPACE.has(code) ? SPACE : code
  let unit = 0
  for (let digit = letter + 1; digit <= letter + 4; digit++) {
    const character = bytes[digit] ?? 0
    // 0 to 9 are 0x30 to 0x39; letters of either case end in 1 to 6 and have bit 6 set.
    unit = (unit << 4) | ((character & 0x0f) + (character >> 6) * 9)
  }
  return unit & 0xffff
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

function times(estimate: TokenEstimate, count: number): TokenEstimate {
  return { charged: estimate.charged * count, likely: estimate.likely * count }
}

/** Used when the engine reports no usage. */
export function likelyOutputTokens(bytes: number): number {
  return Math.ceil(bytes / LIKELY_BYTES_PER_OUTPUT_TOKEN)
}
