import type { ServiceTier, Usage } from '../../../src/billing/rating/rating.ts'

/** What one simulated request asks for, and what its engine would answer if nothing went wrong. */
export interface RequestPlan {
  readonly tier: ServiceTier
  readonly cost: number
  /** The output that it allows: of all calls together, and in the stream of each. */
  readonly maxTokens: number
  readonly maxTokensPerCall: number
  readonly audioMs: number
  readonly answer: StreamPlan | WholePlan
}

/** r role, t token, u usage so far, f finish reason, d done, x not a stream. Anything may come after the end. */
export interface StreamPlan {
  readonly kind: 'streamed'
  /** What the engine says in each call. */
  readonly streams: readonly string[]
  /** Every call has the same input, which counts once. */
  readonly repeatsInput: boolean
}

export interface WholePlan {
  readonly kind: 'whole'
  readonly calls: number
  /** A refused first call has a fallback. */
  readonly hasFallback: boolean
  /** Whether the answer is sent on while it comes. `fails`: it turns out to be something else after the first piece. */
  readonly passThrough: 'none' | 'all' | 'declines' | 'fails'
  readonly read: 'good' | 'useless' | 'failed'
  /** Reading takes time, as when images are stored first. */
  readonly isReadSlow: boolean
  readonly usage: Usage | undefined
  readonly outputBytes: number
  /** The text has more output than the request allowed, and was cut. */
  readonly isCut: boolean
}

/** Random choices that depend on the seed alone. */
export interface Choices {
  below(count: number): number
  chance(probability: number): boolean
  oneOf<T>(list: readonly T[]): T
}

export function choicesFrom(random: () => number): Choices {
  const below = (count: number): number => Math.floor(random() * count)
  return { below, chance: (probability) => random() < probability, oneOf: (list) => list[below(list.length)]! }
}

export const likelyInputTokens = 40
export const bodyBytes = 100
/** What an engine counts as the input of one call. */
export const inputTokens = 30
export const cachedTokens = 5
export const CONTEXT_LENGTH = 1000

/** The most input that can be billed: a context for each input. */
export function maxInputTokensOf(plan: RequestPlan): number {
  return CONTEXT_LENGTH * inputsOf(plan)
}

/** The input that is held from the start. */
export function heldInputTokensOf(plan: RequestPlan): number {
  return bodyBytes * inputsOf(plan)
}

/** How many calls have an input of their own. */
export function inputsOf({ answer }: RequestPlan): number {
  if (answer.kind === 'whole') return answer.calls
  return answer.repeatsInput ? 1 : answer.streams.length
}

export function planRequest(choices: Choices): RequestPlan {
  const { below, chance, oneOf } = choices
  // Some engines produce more than the smaller limits.
  const maxTokensPerCall = oneOf([2, 4, 50])
  const answer = chance(0.5) ? planStreams(choices) : planWhole(choices, maxTokensPerCall)
  return {
    tier: oneOf(['default', 'default', 'flex', 'batch']),
    cost: 1 + below(8),
    maxTokens: maxTokensPerCall * (answer.kind === 'streamed' ? answer.streams.length : 1),
    maxTokensPerCall,
    audioMs: chance(0.1) ? 1 + below(1000) : 0,
    answer,
  }
}

function planStreams(choices: Choices): StreamPlan {
  const { oneOf, chance } = choices
  const streams = Array.from({ length: oneOf([1, 1, 1, 2, 3]) }, () => planStream(choices))
  return { kind: 'streamed', streams, repeatsInput: chance(0.5) }
}

function planStream({ below, chance, oneOf }: Choices): string {
  const counts = oneOf([0, 0.3, 1])
  let symbols = chance(0.8) ? 'r' : ''
  for (let tokens = below(6); tokens > 0; tokens -= 1) symbols += chance(counts) ? 'tu' : 't'
  if (chance(0.9)) symbols += 'f'
  if (counts > 0 && chance(0.7)) symbols += 'u'
  if (chance(0.9)) symbols += 'd'
  if (chance(0.1)) {
    const at = below(symbols.length + 1)
    symbols = `${symbols.slice(0, at)}x${symbols.slice(at)}`
  }
  return chance(0.15) ? `${symbols}rt` : symbols
}

function planWhole({ below, chance, oneOf }: Choices, maxTokens: number): WholePlan {
  const calls = oneOf([1, 1, 1, 2, 3])
  return {
    kind: 'whole',
    calls,
    hasFallback: chance(0.2),
    passThrough: calls === 1 ? oneOf(['none', 'none', 'all', 'declines', 'fails']) : 'none',
    read: oneOf(['good', 'good', 'good', 'good', 'good', 'useless', 'failed']),
    isReadSlow: chance(0.3),
    usage: chance(0.7)
      ? {
          // More than is held, or more than there is.
          inputTokens: chance(0.05) ? 90_000_000 : (chance(0.3) ? 15 * inputTokens : inputTokens) * calls,
          cachedInputTokens: chance(0.5) ? cachedTokens : 0,
          outputTokens: chance(0.1) ? maxTokens + 1 + below(90_000_000) : below(maxTokens + 1),
          images: chance(0.2) ? 1 + below(3) : 0,
          audioMs: 0,
        }
      : undefined,
    outputBytes: below(100),
    isCut: chance(0.1),
  }
}
