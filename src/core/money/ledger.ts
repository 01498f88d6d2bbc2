import type { PicoAud } from './money.ts'
import type { Usage } from './rating.ts'

/** How a request that reached an engine ended. */
export type Outcome =
  /** The caller has the whole answer. */
  | 'completed'
  /** The engine refused or failed before it produced anything, or its answer was of no use. */
  | 'engine_failed'
  /** The engine broke off in the middle of an answer. */
  | 'engine_broke'
  /** The caller went away. */
  | 'caller_left'
  /** The service stopped before it knew the end. */
  | 'interrupted'
  /** The answer was there, but could not be recorded in time, so the caller did not get it. */
  | 'withheld'

/** Durable before an engine is called: proof that somebody may owe something. */
export interface Intent {
  readonly requestId: string
  readonly workspaceId: string
  readonly keyId: string
  readonly model: string
  readonly lane: string
  readonly endpoint: string
  readonly priceVersion: number
  /** The output it was allowed, and charged for by admission. */
  readonly maxTokens: number
  /** Unix ms of admission. */
  readonly startedAt: number
}

/** Durable before the caller has the last byte. One for each request id, for ever. */
export interface LedgerRow extends Intent, Usage {
  /** The engine reported no usage, so the figures are Weir's own estimate. */
  readonly estimated: boolean
  readonly outcome: Outcome
  readonly amount: PicoAud
  readonly queueWaitMs: number
  readonly firstTokenMs: number | null
  readonly durationMs: number
  /** Unix ms; what decides the month it is billed in. */
  readonly settledAt: number
  /** Of a row that bills reserved capacity: how long it was reserved. */
  readonly capacityMs?: number
  readonly correction?: Correction
}

/** A row that takes another one back. Its figures are the difference, so they may be negative. */
export interface Correction {
  /** The request id of the other. */
  readonly of: string
  readonly reason: string
  /** The adjustment note it stands in; '' where it stands in the invoice of its month. */
  readonly creditNote: string
}

/** The row that undoes another. */
export function reversalOf(row: LedgerRow, requestId: string, at: number, correction: Correction): LedgerRow {
  return {
    ...row,
    requestId,
    inputTokens: -row.inputTokens,
    cachedInputTokens: -row.cachedInputTokens,
    outputTokens: -row.outputTokens,
    images: -row.images,
    audioMs: -row.audioMs,
    capacityMs: -(row.capacityMs ?? 0),
    amount: -row.amount,
    startedAt: at,
    queueWaitMs: 0,
    firstTokenMs: null,
    durationMs: 0,
    correction,
  }
}

/** The endpoint of rows that bill reserved capacity. */
export const CAPACITY_ENDPOINT = 'capacity'
