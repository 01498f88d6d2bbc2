import type { PicoAud } from './money.ts'

/** Sums over ledger rows, kept beside them so that nobody has to read millions of rows. */
export interface UsageSums {
  /** Of the ledger, corrections and reserved capacity included. */
  readonly rows: number
  readonly requests: number
  /** Those of them whose figures are Weir's own estimate. */
  readonly estimatedRequests: number
  readonly inputTokens: bigint
  readonly cachedInputTokens: bigint
  readonly outputTokens: bigint
  readonly images: bigint
  readonly audioMs: bigint
  readonly capacityMs: bigint
  readonly amount: PicoAud
}

/** What was used of one model at one price. */
export interface PricedSums extends UsageSums {
  readonly model: string
  readonly priceVersion: number
}

/** What sums can be asked for by. */
export const groupings = ['workspace', 'model', 'key', 'day'] as const
export type Grouping = (typeof groupings)[number]

export interface GroupedSums extends UsageSums {
  /** The workspace's id, the model's slug, the key's id, or Unix ms of midnight in Sydney. */
  readonly group: string | number
}
