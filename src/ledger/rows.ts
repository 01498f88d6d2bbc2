import type { ErrorCode } from '../shared/errors.ts'
import type { PicoAud } from '../shared/money/money.ts'
import { noUsage, type ServiceTier, type Usage } from '../billing/rating/rating.ts'

/** How a request that reached an engine ended. */
export type Outcome =
  /** The caller received the whole answer. */
  | 'completed'
  /** The engine refused the request, failed before it produced anything, or gave an unusable answer. */
  | 'engine_failed'
  /** The engine stopped in the middle of an answer. */
  | 'engine_broke'
  /** The caller disconnected. */
  | 'caller_left'
  /** The service stopped before the request ended. */
  | 'interrupted'
  /** The answer could not be recorded in time, so it was not sent to the caller. */
  | 'withheld'

/** In the journal before the engine is called, so that a crash leaves a record of what was under way. */
export interface Intent {
  readonly requestId: string
  readonly workspaceId: string
  readonly keyId: string
  readonly model: string
  readonly lane: string
  readonly endpoint: string
  readonly priceVersion: number
  /** The output tokens it was allowed. Admission charged the token budget for them. */
  readonly maxTokens: number
  /** Unix ms of admission. */
  readonly startedAt: number
  readonly tier: ServiceTier
}

/** The row of a request. Durable before the caller gets the last byte. There is only ever one row per request id. */
export interface RequestRow extends Intent, Usage {
  /** The engine reported no usage, so the figures are Weir's own estimate. */
  readonly estimated: boolean
  readonly outcome: Outcome
  /**
   * The status of the response; 499 if the caller left. null if the service stopped before the request ended, in rows of
   * older versions, and in rows that billing adds.
   */
  readonly httpStatus: number | null
  /** Why it failed. null if the caller got the whole answer or left, and wherever `httpStatus` is null. */
  readonly errorCode: ErrorCode | null
  readonly amount: PicoAud
  readonly queueWaitMs: number
  readonly firstTokenMs: number | null
  readonly durationMs: number
  /** Unix ms. Decides which month the row is billed in. */
  readonly settledAt: number
}

/** A row of a request, or one that billing adds: for reserved capacity, a correction or a credit. */
export interface LedgerRow extends RequestRow {
  /** How long the capacity was reserved. Only in rows that bill reserved capacity. */
  readonly capacityMs?: number
  readonly correction?: Correction
  /** Only in rows that credit a free amount. */
  readonly credit?: Credit
}

/** Marks a row that credits an amount for a reason, without reversing another row. */
interface Credit {
  readonly reason: string
  /** The adjustment note that lists it; '' when it is part of its month's invoice. */
  readonly creditNote: string
}

/** Marks a row that reverses another row. Its figures are the difference, so they may be negative. */
interface Correction {
  /** The request id of the reversed row. */
  readonly of: string
  readonly reason: string
  /** The adjustment note that lists it; '' when it is part of its month's invoice. */
  readonly creditNote: string
}

/** The row of a request that was recorded and never settled: it costs nothing. */
export function interruptedRow(intent: Intent, at: number): RequestRow {
  return {
    ...intent,
    ...noUsage,
    estimated: false,
    outcome: 'interrupted',
    httpStatus: null,
    errorCode: null,
    amount: 0n,
    queueWaitMs: 0,
    firstTokenMs: null,
    durationMs: 0,
    settledAt: at,
  }
}

/** The row that reverses `row`. */
export function reversalOf(row: LedgerRow, requestId: string, at: number, correction: Correction): LedgerRow {
  const { credit: _, ...figures } = row
  return {
    ...figures,
    requestId,
    inputTokens: -row.inputTokens,
    cachedInputTokens: -row.cachedInputTokens,
    outputTokens: -row.outputTokens,
    images: -row.images,
    audioMs: -row.audioMs,
    capacityMs: -(row.capacityMs ?? 0),
    httpStatus: null,
    errorCode: null,
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

/** The endpoint and the model of rows that credit a free amount, and of the rows that reverse those. */
export const CREDIT = 'credit'

/** The adjustment note or re-issued invoice that lists a row; '' when it is part of its month's first invoice. */
export function documentOfRow({ correction, credit }: Pick<LedgerRow, 'correction' | 'credit'>): string {
  return correction?.creditNote ?? credit?.creditNote ?? ''
}

/** Only this model, only this key. */
export interface UsageFilter {
  readonly model?: string | undefined
  readonly keyId?: string | undefined
}
