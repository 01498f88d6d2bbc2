import { ApiError } from '../core/errors.ts'
import type { RequestRow, Outcome } from '../core/money/ledger.ts'
import type { CountedUsage } from '../core/estimated-usage.ts'
import { noUsage, rate } from '../core/money/rating.ts'
import { clampUsage } from '../core/money/usage-bounds.ts'
import type { AdmittedRequest } from './admitted-request.ts'
import type { PipelineParts } from './parts.ts'

/** How a request ended. docs/billing.md has the rule for every outcome. */
export interface Settlement {
  readonly outcome: Outcome
  readonly counted: CountedUsage
  /** By the monotonic clock; null if nothing came. */
  readonly firstTokenAt: number | null
  /** The outcome, at no cost, if the row cannot be written in time and the caller gets nothing. */
  readonly ifLate?: Outcome
}

/** Writes the request's only row. Rejects if that takes too long; the ledger keeps the row and writes it later. */
export async function settle(
  parts: PipelineParts,
  request: AdmittedRequest,
  settlement: Settlement,
): Promise<RequestRow> {
  const { hold } = request
  const { counted, ifLate } = settlement
  const row = rowOf(parts, request, settlement)
  parts.settled(row)
  if (counted.isPastLimit) parts.pastLimit(row)
  if (counted.contradictedCount !== undefined) parts.contradicted(request.job, counted.contradictedCount)
  try {
    await parts.ledger.settle(row, ifLate && (() => withoutCost(row, ifLate)))
  } catch (cause) {
    hold.settle(ifLate ? 0n : row.amount)
    throw new ApiError('service_unavailable', 'Usage cannot be recorded now, so the answer is withheld.', { cause })
  }
  hold.settle(row.amount)
  return row
}

const nothing: CountedUsage = { usage: noUsage, isEstimated: false, isPastLimit: false }

/** The engine produced nothing that could be billed. */
export function settleFailure(
  parts: PipelineParts,
  request: AdmittedRequest,
  firstTokenAt: number | null,
): Promise<RequestRow> {
  return settle(parts, request, { outcome: 'engine_failed', counted: nothing, firstTokenAt })
}

/** The caller went away; or the service cut the connection to stop, which costs the caller nothing. */
export function settleDeparture(
  parts: PipelineParts,
  request: AdmittedRequest,
  counted: CountedUsage,
  firstTokenAt: number | null,
): Promise<RequestRow> {
  if (request.reply.isCut) {
    const { isPastLimit } = counted
    return settle(parts, request, { outcome: 'interrupted', counted: { ...nothing, isPastLimit }, firstTokenAt })
  }
  return settle(parts, request, { outcome: 'caller_left', counted, firstTokenAt })
}

/**
 * The usage when the caller left before the engine said anything: the input that was sent to the engine, estimated
 * at the low end. Nobody saw any output, so none is billed.
 */
export function usageWithoutAnswer(request: AdmittedRequest): CountedUsage {
  const { job, calls } = request
  if (!calls.isWithEngine()) return nothing
  const inputTokens = Math.ceil(job.likelyInputTokens * sentShare(request))
  // Only tokens are estimated. The length of audio was measured.
  return {
    usage: clampUsage({ ...noUsage, inputTokens, audioMs: job.media?.audioMs ?? 0 }, job),
    isEstimated: inputTokens > 0,
    isPastLimit: false,
  }
}

/** The part of the input that an engine was sent. */
export function sentShare({ job, calls }: AdmittedRequest): number {
  const bytes = job.calls.reduce((sum, { body, repeatsInput }) => sum + (repeatsInput ? 0 : body.length), 0)
  return calls.sentBytes() / Math.max(1, bytes)
}

function rowOf({ clock }: PipelineParts, request: AdmittedRequest, settlement: Settlement): RequestRow {
  const { intent, price, waitMs, admittedAt } = request
  const { outcome, counted, firstTokenAt } = settlement
  const { usage, isEstimated } = counted
  return {
    ...intent,
    // One by one: V8 copies the fields of a second object slowly.
    inputTokens: usage.inputTokens,
    cachedInputTokens: usage.cachedInputTokens,
    outputTokens: usage.outputTokens,
    images: usage.images,
    audioMs: usage.audioMs,
    estimated: isEstimated,
    outcome,
    amount: rate(usage, price.rates),
    queueWaitMs: waitMs,
    firstTokenMs: firstTokenAt === null ? null : Math.round(firstTokenAt - admittedAt),
    durationMs: Math.round(clock.monotonic() - admittedAt),
    settledAt: clock.now(),
  }
}

function withoutCost(row: RequestRow, outcome: Outcome): RequestRow {
  return { ...row, ...noUsage, estimated: false, outcome, amount: 0n }
}
