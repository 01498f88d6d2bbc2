import { firstTokens, textTokens } from '../../shared/tokens/token-estimate.ts'

/** How much an engine may generate for one request. */
export interface OutputLimit {
  /** The most tokens of each choice. */
  readonly maxTokens: number
  /** How many choices the caller gets, over all prompts. */
  readonly choices: number
  /** How many the engine generates for that: more with best_of. */
  readonly generated: number
  /** If the answer repeats the prompts: the characters of each. */
  readonly echoedCharacters?: readonly number[] | undefined
  readonly tokenizer: string | undefined
}

/** The characters of a choice that repeat its prompt. The choices of one prompt have consecutive indexes. */
export function echoOf({ echoedCharacters: echoes, choices }: OutputLimit, index: number): number {
  return echoes?.[Math.floor((index * echoes.length) / choices)] ?? 0
}

/** The longest tokens of the usual tokenizers: 128 spaces. */
const MAX_BYTES_PER_TOKEN = 128

/** Counts the minimum number of tokens in a text, piece by piece. */
interface LeastTokens {
  add(text: string): void
  count(): number
}

/**
 * No usual tokenizer has a token that continues with a letter or a digit after white space, so there are at least as
 * many tokens as words. The text may be in characters or in bytes.
 */
function leastTokens(): LeastTokens {
  let words = 0
  let length = 0
  let isAfterSpace = true
  return {
    add(text) {
      length += text.length
      for (let index = 0; index < text.length; index++) {
        const code = text.charCodeAt(index)
        if (isAfterSpace && isLetterOrDigit(code)) words++
        isAfterSpace = code <= 0x20
      }
    },
    count: () => Math.max(words, Math.ceil(length / MAX_BYTES_PER_TOKEN)),
  }
}

function isLetterOrDigit(code: number): boolean {
  const lowerCase = code | 0x20
  return (lowerCase >= 0x61 && lowerCase <= 0x7a) || (code >= 0x30 && code <= 0x39)
}

export function leastTokensOf(text: string): number {
  const least = leastTokens()
  least.add(text)
  return least.count()
}

/** Measures one choice of a stream against its limit. */
export interface ChoiceMeter {
  /**
   * Takes the output of an event, if it has any, and the engine's count of the choice so far, if it has one. Returns
   * the part of the output to keep; undefined if all of it may be kept.
   */
  take(output: string | undefined, count: number | undefined, isLast: boolean): TokenBudget | undefined
  /** The events with output, except those of which nothing may be kept. */
  events(): number
  /** Whether the choice has all the tokens that it may have. */
  isFull(): boolean
}

export function choiceMeter(limit: OutputLimit, index: number): ChoiceMeter {
  const least = leastTokens()
  let echoLeft = echoOf(limit, index)
  let events = 0
  let tokens = 0
  let hasCount = false

  /** An event has at least one token. The engine's count is more accurate than the text. */
  function tokensWith(text: string, count: number | undefined): number {
    least.add(text)
    hasCount ||= count !== undefined && count > 0
    return Math.max(events + 1, hasCount ? (count ?? tokens + 1) : least.count())
  }

  function take(output: string | undefined, count: number | undefined, isLast: boolean): TokenBudget | undefined {
    const echoed = Math.min(echoLeft, output?.length ?? 0)
    echoLeft -= echoed
    const hasOutput = output !== undefined && (echoed === 0 || echoed < output.length)
    // The engine may count its last token, the end of the text, which is not output.
    if (!hasOutput && (isLast || (count ?? 0) <= limit.maxTokens)) return undefined
    const left = Math.max(0, limit.maxTokens - tokens)
    const after = hasOutput ? tokensWith(output.slice(echoed), count) : Infinity
    if (hasOutput && left > 0) {
      events++
      tokens = after
    }
    return after <= limit.maxTokens ? undefined : tokenBudget(left, limit.tokenizer, echoed)
  }

  return {
    take,
    events: () => events,
    isFull: () => tokens >= limit.maxTokens,
  }
}

/** Keeps the beginning of one text after the other until the token limit is used up, by the high estimate. */
export interface TokenBudget {
  keep(text: string): string
  /** Whether anything was left out. */
  isExceeded(): boolean
}

/** The first `freeCharacters` cost nothing: they repeat the prompt. */
export function tokenBudget(tokens: number, tokenizer: string | undefined, freeCharacters = 0): TokenBudget {
  let free = freeCharacters
  let left = tokens
  let isExceeded = false
  return {
    keep(text) {
      const paid = text.slice(free)
      const kept = left > 0 && paid !== '' ? firstTokens(paid, left, tokenizer) : ''
      left -= textTokens(kept, tokenizer).charged
      if (kept.length < paid.length) {
        left = 0
        isExceeded = true
      }
      const start = text.slice(0, free)
      free -= start.length
      return start + kept
    },
    isExceeded: () => isExceeded,
  }
}
