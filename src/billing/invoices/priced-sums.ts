import type { LedgerRow } from '../../ledger/rows.ts'
import type { PricedSums } from '../usage/usage-sums.ts'

/** Computes sums from ledger rows, independently of the sums that the store keeps. */

export function emptySums(model: string, priceVersion: number): PricedSums {
  return {
    model,
    priceVersion,
    rows: 0,
    requests: 0,
    estimatedRequests: 0,
    inputTokens: 0n,
    cachedInputTokens: 0n,
    outputTokens: 0n,
    images: 0n,
    audioMs: 0n,
    capacityMs: 0n,
    amount: 0n,
  }
}

export function addTo(sums: PricedSums, row: LedgerRow): PricedSums {
  const isRequest = row.correction === undefined && row.capacityMs === undefined && row.credit === undefined
  return {
    model: sums.model,
    priceVersion: sums.priceVersion,
    rows: sums.rows + 1,
    requests: sums.requests + (isRequest ? 1 : 0),
    estimatedRequests: sums.estimatedRequests + (isRequest && row.estimated ? 1 : 0),
    inputTokens: sums.inputTokens + BigInt(row.inputTokens),
    cachedInputTokens: sums.cachedInputTokens + BigInt(row.cachedInputTokens),
    outputTokens: sums.outputTokens + BigInt(row.outputTokens),
    images: sums.images + BigInt(row.images),
    audioMs: sums.audioMs + BigInt(row.audioMs),
    capacityMs: sums.capacityMs + BigInt(row.capacityMs ?? 0),
    amount: sums.amount + row.amount,
  }
}

/** The reversals of these rows. */
export function negated(sums: PricedSums): PricedSums {
  return {
    ...sums,
    inputTokens: -sums.inputTokens,
    cachedInputTokens: -sums.cachedInputTokens,
    outputTokens: -sums.outputTokens,
    images: -sums.images,
    audioMs: -sums.audioMs,
    capacityMs: -sums.capacityMs,
    amount: -sums.amount,
  }
}
