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
export interface CharacterCosts {
  readonly most: Int32Array
  readonly least: Int32Array
  /** For two ASCII characters at once: their highest cost in the lower 16 bits, the lowest in the upper 16. */
  pairs(): Int32Array
}

/** Each ASCII character has its own slot. All others share one with their block of 128. */
export function slotOf(code: number): number {
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
export function costsOf(tokenizer: string | undefined): CharacterCosts {
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
