import type { Sampling, TokenLogprob } from '../runtime/engine-model.ts'
import { seededSamples } from './seeded-samples.ts'

export interface TokenChoice {
  readonly token: number
  readonly logprob: number
}

export type ChooseToken = (logits: Float32Array) => TokenChoice

/** Picks the next token: the best one at temperature 0, otherwise a random one of those that top_k and top_p leave. */
export function tokenChooser(sampling: Sampling): ChooseToken {
  const temperature = sampling.temperature ?? 0
  const random = seededSamples(sampling.seed ?? Math.floor(Math.random() * 2 ** 31))
  return (logits) => {
    const best = bestToken(logits)
    const normaliser = logSumExp(logits, logits[best] ?? 0)
    const logprobOf = (token: number): number => (logits[token] ?? -Infinity) - normaliser
    if (temperature <= 0) return { token: best, logprob: logprobOf(best) }
    const token = draw(logits, best, sampling, temperature, random())
    return { token, logprob: logprobOf(token) }
  }
}

export function bestToken(logits: Float32Array): number {
  let best = 0
  for (let token = 1; token < logits.length; token++) if ((logits[token] ?? 0) > (logits[best] ?? 0)) best = token
  return best
}

export function logSumExp(logits: Float32Array, max: number): number {
  let sum = 0
  for (const logit of logits) sum += Math.exp(logit - max)
  return max + Math.log(sum)
}

export function topAlternatives(
  logits: Float32Array,
  count: number,
  text: (token: number) => string,
): TokenLogprob['top'] {
  const normaliser = logSumExp(logits, logits[bestToken(logits)] ?? 0)
  return [...logits.keys()]
    .sort((a, b) => (logits[b] ?? 0) - (logits[a] ?? 0))
    .slice(0, count)
    .map((token) => ({ text: text(token), logprob: (logits[token] ?? 0) - normaliser }))
}

function draw(logits: Float32Array, best: number, { topK, topP }: Sampling, temperature: number, at: number): number {
  const max = logits[best] ?? 0
  const weight = (token: number): number => Math.exp(((logits[token] ?? 0) - max) / temperature)
  const whole = (topK === undefined || topK <= 0) && (topP === undefined || topP >= 1)
  // Sort only if top_k or top_p cut something off: whisper draws from fifty thousand tokens with neither.
  const tokens = whole ? [...logits.keys()] : nucleus(logits, weight, topK, topP)
  let left = at * tokens.reduce((sum, token) => sum + weight(token), 0)
  for (const token of tokens) {
    left -= weight(token)
    if (left < 0) return token
  }
  return best
}

/** The most likely tokens: at most `topK`, and no more than it takes to reach `topP` of the probability. */
function nucleus(logits: Float32Array, weight: (token: number) => number, topK = 0, topP = 1): number[] {
  const order = [...logits.keys()].sort((a, b) => (logits[b] ?? 0) - (logits[a] ?? 0))
  const kept = topK > 0 ? order.slice(0, topK) : order
  const total = kept.reduce((sum, token) => sum + weight(token), 0)
  let sum = 0
  const end = kept.findIndex((token) => (sum += weight(token)) >= topP * total)
  return end < 0 ? kept : kept.slice(0, end + 1)
}
