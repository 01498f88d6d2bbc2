import { ApiError, CallerLeft, errorTable } from '../../shared/errors.ts'
import type { RequestRow } from '../../ledger/rows.ts'
import { type CountedUsage, clampToHeld, clampUsage } from '../metering/usage-bounds.ts'
import { noUsage, rate } from '../../billing/rating/rating.ts'
import type { CallEnd } from '../../engines/engine.ts'
import type { AdmittedRequest } from './admitted-request.ts'
import type { PipelineParts } from './parts.ts'

/** How a request ended, and which status and error its caller got. */
type Ending = Pick<RequestRow, 'outcome' | 'httpStatus' | 'errorCode'>

/** How a request is settled. docs/billing.md has the rule for every outcome. */
interface Settlement extends Ending {
  readonly counted: CountedUsage
  /** By the monotonic clock; null if there was no output. */
  readonly firstTokenAt: number | null
  /** The ending, at no cost, if the row cannot be written in time and the caller gets nothing. */
  readonly ifLate?: Ending
}

/**
 * The part of a count that can be billed under the spend limit. If the engine counts more input than expected, the hold
 * is raised; if the limit has no room for that, only the amount on hold is billed.
 */
export async function withinHold({ job, price, hold }: AdmittedRequest, counted: CountedUsage): Promise<CountedUsage> {
  if (counted.usage.inputTokens <= job.heldInputTokens) return counted
  try {
    await hold.raise(rate(counted.usage, price.rates))
    return counted
  } catch {
    return { ...counted, usage: clampToHeld(counted.usage, job), isEstimated: true, isPastLimit: true }
  }
}

/** Writes the request's only row. Rejects if that takes too long; the ledger keeps the row and writes it later. */
export async function settle(
  parts: PipelineParts,
  request: AdmittedRequest,
  settlement: Settlement,
): Promise<RequestRow> {
  const { hold, reply } = request
  const { counted, ifLate } = settlement
  const row = rowOf(parts, request, settlement)
  parts.settled(row)
  if (counted.isPastLimit) parts.pastLimit(row)
  if (counted.contradictedCount !== undefined) parts.contradicted(request.job, counted.contradictedCount)
  try {
    await parts.ledger.settle(row, ifLate && (() => withoutCost(row, ifLate)))
  } catch (cause) {
    hold.settle(ifLate ? 0n : row.amount, row.settledAt)
    if (!ifLate) reply.countTokens(row.inputTokens + row.outputTokens)
    throw new ApiError('service_unavailable', 'Usage cannot be recorded now, so the answer is withheld.', { cause })
  }
  hold.settle(row.amount, row.settledAt)
  reply.countTokens(row.inputTokens + row.outputTokens)
  return row
}

const nothing: CountedUsage = { usage: noUsage, isEstimated: false, isPastLimit: false }

/** The caller has the whole answer. */
export const completed: Ending = { outcome: 'completed', httpStatus: 200, errorCode: null }

/** The error for the caller if the engine calls ended like this, without a usable answer. */
export function failureOf(end: CallEnd): ApiError {
  return end.kind === 'failed' ? end.error : new ApiError('upstream_error', 'The engine gave no usable answer.')
}

/** The engine produced nothing billable. `isOpen`: its answer had begun, so the caller has seen status 200. */
export function settleFailure(
  parts: PipelineParts,
  request: AdmittedRequest,
  error: unknown,
  { isOpen, firstTokenAt }: { isOpen: boolean; firstTokenAt: number | null },
): Promise<RequestRow> {
  const errorCode = error instanceof ApiError ? error.code : 'internal_error'
  const httpStatus = isOpen ? 200 : errorTable[errorCode].status
  return settle(parts, request, { outcome: 'engine_failed', httpStatus, errorCode, counted: nothing, firstTokenAt })
}

/** The caller disconnected; or the service cut the connection in order to stop, which costs the caller nothing. */
export function settleDeparture(
  parts: PipelineParts,
  request: AdmittedRequest,
  counted: CountedUsage,
  firstTokenAt: number | null,
): Promise<RequestRow> {
  if (request.reply.isCut) {
    const { isPastLimit } = counted
    const ending = { outcome: 'interrupted', httpStatus: null, errorCode: null } as const
    return settle(parts, request, { ...ending, counted: { ...nothing, isPastLimit }, firstTokenAt })
  }
  return settle(parts, request, { outcome: 'caller_left', httpStatus: 499, errorCode: null, counted, firstTokenAt })
}

/** A preempted request was refused before it ran again, or its caller left. It has cost nothing. */
export function settlePreempted(parts: PipelineParts, request: AdmittedRequest, error: unknown): Promise<RequestRow> {
  if (error instanceof CallerLeft) return settleDeparture(parts, request, nothing, null)
  return settleFailure(parts, request, error, { isOpen: false, firstTokenAt: null })
}

/**
 * The usage if the caller disconnected before the first output: the input that was sent to the engine, estimated at the
 * low end. The caller received no output, so none is billed.
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

/** The part of the input that was sent to an engine. */
export function sentShare({ job, calls }: AdmittedRequest): number {
  const bytes = job.calls.reduce((sum, { body, repeatsInput }) => sum + (repeatsInput ? 0 : body.length), 0)
  return calls.sentBytes() / Math.max(1, bytes)
}

function rowOf({ clock }: PipelineParts, request: AdmittedRequest, settlement: Settlement): RequestRow {
  const { intent, price, waitMs, admittedAt } = request
  const { outcome, httpStatus, errorCode, counted, firstTokenAt } = settlement
  const { usage, isEstimated } = counted
  return {
    ...intent,
    // Field by field: V8 is slow to spread a second object.
    inputTokens: usage.inputTokens,
    cachedInputTokens: usage.cachedInputTokens,
    outputTokens: usage.outputTokens,
    images: usage.images,
    audioMs: usage.audioMs,
    estimated: isEstimated,
    outcome,
    httpStatus,
    errorCode,
    amount: rate(usage, price.rates),
    queueWaitMs: waitMs,
    firstTokenMs: firstTokenAt === null ? null : Math.round(firstTokenAt - admittedAt),
    durationMs: Math.round(clock.monotonic() - admittedAt),
    settledAt: clock.now(),
  }
}

function withoutCost(row: RequestRow, ending: Ending): RequestRow {
  return { ...row, ...noUsage, estimated: false, ...ending, amount: 0n }
}
