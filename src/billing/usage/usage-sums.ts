import type { PicoAud } from '../../shared/money/money.ts'

/** Sums over ledger rows. The store keeps them up to date, so that a report need not read millions of rows. */
export interface UsageSums {
  /** All ledger rows, including corrections and reserved capacity. */
  readonly rows: number
  readonly requests: number
  /** Requests whose figures are Weir's own estimate. */
  readonly estimatedRequests: number
  readonly inputTokens: bigint
  readonly cachedInputTokens: bigint
  readonly outputTokens: bigint
  readonly images: bigint
  readonly audioMs: bigint
  readonly capacityMs: bigint
  readonly amount: PicoAud
}

/** The usage of one model at one price version. */
export interface PricedSums extends UsageSums {
  readonly model: string
  readonly priceVersion: number
}

/** What usage reports can group by. */
export const groupings = ['workspace', 'model', 'key', 'day', 'service_tier'] as const
export type Grouping = (typeof groupings)[number]

export interface GroupedSums extends UsageSums {
  /** The workspace id, model slug, key id, tier, or Unix ms of midnight in Sydney. */
  readonly group: string | number
}

/** All of them together. */
export function added(all: readonly UsageSums[]): UsageSums {
  const sum = (pick: (it: UsageSums) => bigint): bigint => all.reduce((total, it) => total + pick(it), 0n)
  const count = (pick: (it: UsageSums) => number): number => all.reduce((total, it) => total + pick(it), 0)
  return {
    rows: count(({ rows }) => rows),
    requests: count(({ requests }) => requests),
    estimatedRequests: count(({ estimatedRequests }) => estimatedRequests),
    inputTokens: sum(({ inputTokens }) => inputTokens),
    cachedInputTokens: sum(({ cachedInputTokens }) => cachedInputTokens),
    outputTokens: sum(({ outputTokens }) => outputTokens),
    images: sum(({ images }) => images),
    audioMs: sum(({ audioMs }) => audioMs),
    capacityMs: sum(({ capacityMs }) => capacityMs),
    amount: sum(({ amount }) => amount),
  }
}
