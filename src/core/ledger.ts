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
  readonly settledAt: number
}
