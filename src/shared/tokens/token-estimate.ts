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

/**
 * How many tokens a character takes in each tokenizer that a catalog may name, by kind of character. Measured
 * with the real tokenizers, as docs/guides/token-estimates.md describes; `npm run bench -- tokens` compares
 * some of them again.
 */
const kinds = [
  'lower-case letter',
  'upper-case letter',
  'digit',
  'punctuation',
  'space',
  'control',
  'accented Latin',
  'Cyrillic',
  'other alphabets',
  'Devanagari or Thai',
  'other scripts of Asia and Africa',
  'symbol',
  'Chinese, Japanese or Korean',
  'half of a surrogate pair',
] as const

type Kind = (typeof kinds)[number]

const sentencePiece32k = [0.26, 0.86, 1.24, 0.42, 0.21, 1, 2.26, 0.46, 1.12, 1.19, 1.29, 2.56, 1.22, 1.33]
const qwen = [0.26, 0.62, 1.27, 0.2, 0.13, 0.99, 1.06, 0.41, 0.59, 0.85, 1.19, 2.56, 0.76, 0.5]

/** By lower-case name: one number for each kind, in the order above. */
const tokensByKind: Readonly<Record<string, readonly number[]>> = {
  cl100k_base: [0.26, 0.63, 0.54, 0.28, 0.1, 1, 1.79, 0.54, 0.95, 1.14, 1.5, 2.49, 1.17, 1.3],
  o200k_base: [0.25, 0.64, 0.53, 0.31, 0.1, 0.98, 0.84, 0.32, 0.42, 0.38, 0.44, 2.87, 0.81, 0.77],
  llama2: sentencePiece32k,
  llama3: [0.27, 0.63, 0.54, 0.26, 0.1, 0.99, 1, 0.37, 0.51, 0.6, 1.51, 2.69, 0.83, 1.26],
  mistral: sentencePiece32k,
  tekken: [0.26, 0.73, 1.27, 0.26, 0.12, 1, 0.9, 0.36, 0.41, 0.45, 0.53, 2.62, 0.84, 2.07],
  qwen2: qwen,
  qwen3: qwen,
  gemma: [0.24, 0.7, 1.23, 0.42, 0.19, 1, 0.59, 0.29, 0.43, 0.4, 0.55, 2.14, 0.67, 0.36],
  deepseek: [0.26, 0.75, 0.53, 0.32, 0.12, 1, 1.38, 0.36, 0.51, 0.56, 0.55, 2.2, 0.74, 0.92],
  cohere: [0.23, 0.78, 1.25, 0.36, 0.16, 1, 0.7, 0.31, 0.39, 0.82, 1.39, 2.61, 0.71, 1],
}

export const tokenizerNames: readonly string[] = Object.keys(tokensByKind)

export function isTokenizer(name: string): boolean {
  return Object.hasOwn(tokensByKind, name.toLowerCase())
}

/** The highest and lowest cost of a character in hundredths of a token, by its `slotOf`. */
interface CharacterCosts {
  readonly most: Int32Array
  readonly least: Int32Array
  /** For two ASCII characters at once: their highest cost in the lower 16 bits, the lowest in the upper 16. */
  pairs(): Int32Array
}

/** Each ASCII character has its own slot. All others share one with their block of 128. */
function slotOf(code: number): number {
  return code < 128 ? code : 128 + (code >> 7)
}

const slots = 128 + 512
const kindOfSlot = Array.from({ length: slots }, (_, slot) =>
  kinds.indexOf(slot < 128 ? kindOfAscii(slot) : kindOfBlock(slot - 128)),
)

const all = Object.values(tokensByKind)
const costsByName = new Map(
  Object.entries(tokensByKind).map(([name, tokens]) => {
    const costs = spread(tokens)
    return [name, characterCosts(costs, costs)]
  }),
)
const costsOfUnknown = characterCosts(
  spread(kinds.map((_, kind) => Math.max(...all.map((tokens) => tokens[kind] ?? 0)))),
  spread(kinds.map((_, kind) => Math.min(...all.map((tokens) => tokens[kind] ?? 0)))),
)

/** Without a known tokenizer, the costs are the highest and lowest over all of them. */
function costsOf(tokenizer: string | undefined): CharacterCosts {
  return (tokenizer === undefined ? undefined : costsByName.get(tokenizer.toLowerCase())) ?? costsOfUnknown
}

/** The pairs take 128 KB, so they are computed when they are first used. */
function characterCosts(most: Int32Array, least: Int32Array): CharacterCosts {
  let pairs: Int32Array | undefined
  const both = (code: number): number => (least[code]! << 16) | most[code]!
  return {
    most,
    least,
    pairs: () => (pairs ??= Int32Array.from({ length: 1 << 15 }, (_, pair) => both(pair & 0x7f) + both(pair >> 8))),
  }
}

function spread(tokens: readonly number[]): Int32Array {
  return Int32Array.from(kindOfSlot, (kind) => Math.round((tokens[kind] ?? 0) * 100))
}

function kindOfAscii(code: number): Kind {
  const character = String.fromCharCode(code)
  if (/[a-z]/.test(character)) return 'lower-case letter'
  if (/[A-Z]/.test(character)) return 'upper-case letter'
  if (/[0-9]/.test(character)) return 'digit'
  if (/[ \t\r\n]/.test(character)) return 'space'
  return code < 0x20 || code === 0x7f ? 'control' : 'punctuation'
}

function kindOfBlock(block: number): Kind {
  const first = block << 7
  if (first < 0x280 || (first >= 0x1e00 && first < 0x1f00)) return 'accented Latin'
  if (first >= 0x400 && first < 0x580) return 'Cyrillic'
  if (first < 0x800) return 'other alphabets'
  if (first === 0x900 || first === 0xe00) return 'Devanagari or Thai'
  if (first < 0x2000) return 'other scripts of Asia and Africa'
  if (first < 0x2c00) return 'symbol'
  return first >= 0xd800 && first < 0xe000 ? 'half of a surrogate pair' : 'Chinese, Japanese or Korean'
}
