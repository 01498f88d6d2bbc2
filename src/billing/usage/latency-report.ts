import type { SampledRequest } from './report-store.ts'

/** How long requests took, by hour or day. */
export interface LatencyBucket {
  readonly at: number
  readonly requests: number
  readonly failed: number
  readonly queueWaitMs: Percentiles
  readonly firstTokenMs: Percentiles
  readonly durationMs: Percentiles
  /** Output tokens for each second from admission to the end. p95: 95 of 100 requests are at least as fast. */
  readonly tokensPerSecond: Percentiles
}

/** null when nothing was measured. */
export interface Percentiles {
  readonly p50: number | null
  readonly p95: number | null
}

export function latencyBuckets(
  rows: readonly SampledRequest[],
  startOf: (at: number) => number,
): readonly LatencyBucket[] {
  const byTime = Map.groupBy(rows, ({ settledAt }) => startOf(settledAt))
  return [...byTime]
    .sort(([one], [other]) => one - other)
    .map(([at, members]) => ({
      at,
      requests: members.length,
      failed: members.filter(({ outcome }) => outcome !== 'completed').length,
      queueWaitMs: percentiles(members.map(({ queueWaitMs }) => queueWaitMs)),
      firstTokenMs: percentiles(members.flatMap(({ firstTokenMs }) => firstTokenMs ?? [])),
      durationMs: percentiles(members.map(({ durationMs }) => durationMs)),
      tokensPerSecond: percentiles(members.flatMap(speedOf), (one, other) => other - one),
    }))
}

/** None without output, as of embeddings. */
function speedOf({ outputTokens, durationMs }: SampledRequest): readonly number[] {
  return outputTokens === 0 || durationMs === 0 ? [] : [Math.round((outputTokens / durationMs) * 10_000) / 10]
}

export function percentiles(
  values: readonly number[],
  fromBest: (one: number, other: number) => number = (one, other) => one - other,
): Percentiles {
  const sorted = values.toSorted(fromBest)
  const at = (share: number): number | null =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null
  return { p50: at(0.5), p95: at(0.95) }
}
