import type { Arrival } from './queue-simulation.ts'

/** Token counts: fixed, uniform between two numbers, or with the long tail of real traffic (log-normal). */
export type Sizes =
  | { readonly kind: 'fixed'; readonly tokens: number }
  | { readonly kind: 'between'; readonly low: number; readonly high: number }
  | { readonly kind: 'long_tail'; readonly median: number; readonly p95: number }

/** Independent callers, constant intervals, or groups that arrive at the same time. */
export type ArrivalProcess = 'poisson' | 'constant' | 'bursts'

export interface SyntheticLoad {
  readonly process: ArrivalProcess
  readonly requestsPerSecond: number
  readonly burstSize: number
  readonly durationMs: number
  readonly inputTokens: Sizes
  readonly maxTokens: Sizes
  readonly outputTokens: Sizes
}

/** Standard deviations from the median of a normal distribution to its 95th percentile. */
const p95Deviations = 1.6449

/** Parses `800`, `200-4000` (uniform) or `400/3000` (median/95th percentile). */
export function parseSizes(text: string): Sizes | undefined {
  const [, first, separator, second] = /^(\d+)(?:([-/])(\d+))?$/.exec(text) ?? []
  if (first === undefined) return undefined
  const low = Number(first)
  if (separator === undefined) return { kind: 'fixed', tokens: low }
  const high = Number(second)
  if (high < low) return undefined
  if (separator === '-') return { kind: 'between', low, high }
  return low === 0 ? undefined : { kind: 'long_tail', median: low, p95: high }
}

/** `random` returns numbers in [0, 1). With a seeded generator the load is reproducible. */
export function* syntheticArrivals(load: SyntheticLoad, random: () => number): Generator<Arrival> {
  for (const atMs of arrivalTimes(load, random)) {
    const maxTokens = Math.max(1, sample(load.maxTokens, random))
    yield {
      atMs,
      inputTokens: sample(load.inputTokens, random),
      maxTokens,
      outputTokens: Math.min(maxTokens, sample(load.outputTokens, random)),
    }
  }
}

function* arrivalTimes(load: SyntheticLoad, random: () => number): Generator<number> {
  const { process, requestsPerSecond, burstSize, durationMs } = load
  const groupSize = process === 'bursts' ? burstSize : 1
  const meanGapMs = (groupSize / requestsPerSecond) * 1000
  const gapMs = (): number => (process === 'poisson' ? -Math.log(1 - random()) * meanGapMs : meanGapMs)
  for (let atMs = gapMs(); atMs < durationMs; atMs += gapMs()) {
    for (let member = 0; member < groupSize; member += 1) yield atMs
  }
}

function sample(sizes: Sizes, random: () => number): number {
  if (sizes.kind === 'fixed') return sizes.tokens
  if (sizes.kind === 'between') return sizes.low + Math.floor(random() * (sizes.high - sizes.low + 1))
  const deviation = Math.log(sizes.p95 / sizes.median) / p95Deviations
  return Math.round(sizes.median * Math.exp(deviation * normal(random)))
}

/** The Box–Muller transform: turns two uniform numbers into one from a normal distribution. */
function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}
