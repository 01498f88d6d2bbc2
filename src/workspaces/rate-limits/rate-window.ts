/**
 * Counts requests in windows of one minute on the wall clock, so that every replica has the same windows.
 * Pure: callers pass the time and keep the count.
 */
export const WINDOW_MS = 60_000

export interface WindowCount {
  readonly window: number
  readonly count: number
}

export interface Allowance {
  readonly limit: number
  readonly remaining: number
  /** Unix seconds at which the window ends. */
  readonly resetAt: number
}

export function windowAt(nowMs: number): number {
  return Math.floor(nowMs / WINDOW_MS)
}

/** Counts one request if the window has room for it. */
export function take(
  held: WindowCount | undefined,
  limit: number,
  nowMs: number,
): { readonly accepted: boolean; readonly held: WindowCount } {
  const window = windowAt(nowMs)
  const count = held?.window === window ? held.count : 0
  if (count >= limit) return { accepted: false, held: { window, count } }
  return { accepted: true, held: { window, count: count + 1 } }
}

export function allowance(held: WindowCount | undefined, limit: number, nowMs: number): Allowance {
  const window = windowAt(nowMs)
  const count = held?.window === window ? held.count : 0
  return { limit, remaining: Math.max(0, limit - count), resetAt: ((window + 1) * WINDOW_MS) / 1000 }
}

/** For Retry-After: 1 to 59, because several SDKs ignore 60, and retry immediately on 0. */
export function secondsLeft(nowMs: number): number {
  const left = WINDOW_MS - (nowMs % WINDOW_MS)
  return Math.min(59, Math.max(1, Math.ceil(left / 1000)))
}
