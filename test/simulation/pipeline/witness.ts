import { ApiError, CallerLeft, errorTable, type ErrorCode } from '../../../src/shared/errors.ts'
import type { LedgerRow } from '../../../src/ledger/rows.ts'
import type { Rates, Usage } from '../../../src/billing/rating/rating.ts'
import { expectedRow, type RequestSeen } from './request-seen.ts'
import type { Stage } from './stage.ts'

/** Says whether what the pipeline did is allowed, from what the fake ports have seen. */
export function witnessOn(stage: Stage) {
  const { demand } = stage

  /** The pipeline hands a row to the ledger. */
  function settles(seen: RequestSeen, row: LedgerRow, late: LedgerRow | undefined): void {
    stage.log(seen, `row ${row.outcome} ${row.amount}`)
    demand(seen.note === 'noted', 'row', seen, 'a row without an intent')
    demand(seen.row === undefined, 'row', seen, 'a second row')
    demand(seen.result === 'pending', 'end', seen, 'a row after the end')
    demand(seen.isWaitingAgain || seen.isEngineDone(), 'row', seen, 'a row before the engine was done')
    const isReleased = seen.isWaitingAgain || seen.plan.answer.kind === 'streamed' || seen.place === 'released'
    demand(isReleased, 'capacity', seen, 'a whole answer is settled before its capacity is given back')
    seen.row = row
    seen.late = late
    checkRow(seen, row, late)
  }

  function checkRow(seen: RequestSeen, row: LedgerRow, late: LedgerRow | undefined): void {
    const expected = expectedRow(seen)
    const { priceVersions, held, waitMs } = seen
    stage.count(row.outcome)
    demand(row.outcome === expected.outcome, 'row', seen, `${row.outcome} instead of ${expected.outcome}`)
    const sent = responseSentFor(seen, row)
    // A caller that left as well got no status.
    const isUnseen = seen.isGone && row.outcome === 'engine_failed'
    demand(isUnseen || row.httpStatus === sent.status, 'row', seen, `status ${row.httpStatus}, not ${sent.status}`)
    demand(row.errorCode === sent.code, 'row', seen, `code ${row.errorCode} instead of ${sent.code}`)
    demand(row.estimated === expected.isEstimated, 'row', seen, `estimated: ${row.estimated}`)
    demand(isSameUsage(row, expected.usage), 'row', seen, `usage ${JSON.stringify(expected.usage)} was expected`)
    demand(row.priceVersion === priceVersions[1], 'row', seen, 'the price is not the one at admission')
    demand(row.amount === amountOf(expected.usage, row.priceVersion), 'row', seen, `amount ${row.amount}`)
    demand(row.amount <= held, 'hold', seen, 'it costs more than was held')
    demand(row.queueWaitMs === Math.round(waitMs), 'row', seen, `queue wait ${row.queueWaitMs}`)
    const isPastLimit = expected.isPastLimit === true
    if (isPastLimit) stage.count('engine past the limit')
    demand(seen.pastLimitReported === (isPastLimit ? 1 : 0), 'row', seen, 'the breach of the engine is not reported')
    demand(row.outputTokens <= seen.plan.maxTokens, 'row', seen, 'more output is billed than was allowed')
    demand(late?.outcome === expected.late, 'row', seen, `if late, ${late?.outcome} instead of ${expected.late}`)
    if (!late) return
    demand(late.amount === 0n && isSameUsage(late, nothing), 'row', seen, 'a late row costs something')
    const isReportedLate = late.errorCode === 'service_unavailable' && late.httpStatus === (seen.isOpen ? 200 : 503)
    demand(isReportedLate, 'row', seen, `if late, status ${late.httpStatus} and code ${late.errorCode}`)
  }

  /** The pipeline returns a row. */
  function fulfilled(seen: RequestSeen, row: LedgerRow): void {
    ends(seen, 'fulfilled')
    demand(row === seen.row, 'outcome', seen, 'it returns another row')
    demand(seen.settling === 'durable', 'durable', seen, 'it succeeds, and its row is late')
    const isAnswered = seen.isGone || seen.ending === (row.outcome === 'completed' ? 'complete' : 'error')
    demand(isAnswered, 'outcome', seen, `its row is ${row.outcome}, and the end of its answer ${seen.ending}`)
  }

  function rejected(seen: RequestSeen, error: unknown): void {
    ends(seen, 'rejected')
    // As the server answers an error that is not in the table.
    const code = error instanceof ApiError ? error.code : error instanceof CallerLeft ? 'caller left' : 'internal_error'
    const codes = errorsFor(seen)
    stage.log(seen, `rejects with ${code}`)
    demand(seen.ending !== 'complete', 'outcome', seen, 'a complete answer, and yet an error')
    demand(codes.includes(code), 'outcome', seen, `${String(error)} instead of ${codes.join(' or ')}`)
  }

  function ends(seen: RequestSeen, result: 'fulfilled' | 'rejected'): void {
    demand(seen.result === 'pending', 'outcome', seen, 'a second end')
    seen.result = result
    demand(seen.letGo === seen.retained, 'end', seen, 'the engine is not let go')
    demand((seen.hold === 'granted') === (seen.holdSettledWith !== undefined), 'hold', seen, 'the hold is not settled')
    demand(seen.note !== 'noted' || seen.row !== undefined, 'row', seen, 'no row')
    demand(seen.settling !== 'pending', 'durable', seen, 'the end before the row is durable')
    demand(seen.reported === (seen.row ? 1 : 0), 'row', seen, `reported ${seen.reported} times`)
    // The server cuts the connection of a whole answer that was opened and cannot be finished.
    const isLeftOpen = seen.isOpen && seen.ending === 'none' && seen.plan.answer.kind === 'streamed'
    demand(!isLeftOpen || seen.isGone, 'outcome', seen, 'a stream is left open')
  }

  /** Holds whenever the pipeline has had time to react. */
  function inspect(seen: RequestSeen, goneListeners: number): void {
    const { place, note, settling, result, isEngineBusy, isGone, latestCall } = seen
    const isAdmitted = place === 'admitted'
    demand(!isAdmitted || note !== 'none', 'outcome', seen, 'admitted, and nothing happens')
    demand(!isAdmitted || isEngineBusy, 'capacity', seen, 'capacity is kept for nothing')
    const isWorking = latestCall?.end === undefined && latestCall?.isAborted === false
    demand(!isGone || !isWorking, 'engine', seen, 'the engine works for a caller that has left')
    demand(!seen.isPreempted || !isWorking, 'engine', seen, 'the engine works for a request that has to give way')
    demand(!seen.stream.isPastLimit || !isWorking, 'engine', seen, 'the engine works past the limit')
    const isRefused = note === 'failed' || (seen.hold === 'refused' && settling === 'none' && !seen.isWaitingAgain)
    const isSettled = settling === 'durable' || settling === 'late' || isRefused
    demand(!isSettled || result !== 'pending', 'outcome', seen, 'everything is settled, and it does not end')
    demand(result === 'pending' || place !== 'waiting', 'capacity', seen, 'it is over, and still waits')
    const isListening = goneListeners > 0 && !isEngineBusy && place !== 'waiting'
    demand(!isListening, 'end', seen, 'a listener for the disconnect remains')
  }

  return { settles, fulfilled, rejected, inspect }
}

/** What a request may reject with, by what happened to it. */
function errorsFor(seen: RequestSeen): readonly string[] {
  const { hold, place, note, settling, row } = seen
  if (!seen.isEngineUsable) return ['model_not_configured']
  if (seen.isWaitingAgain && settling === 'late') return ['service_unavailable']
  if (hold === 'refused') return ['spend_limit_exceeded']
  if (place === 'outside' || place === 'left the queue') return ['caller left']
  if (place === 'refused') return [seen.refusal]
  if (seen.isRaiseRefused) return ['spend_limit_exceeded']
  if (note === 'failed' || settling === 'late') return ['service_unavailable']
  if (row?.outcome === 'engine_failed') return [seen.read === 'failed' ? 'internal_error' : 'upstream_error']
  return row?.outcome === 'caller_left' || row?.outcome === 'interrupted' ? ['caller left'] : []
}

/** The status and the error code that a row must have, as docs/billing.md says. */
function responseSentFor(seen: RequestSeen, { outcome }: LedgerRow): { status: number | null; code: string | null } {
  const { isOpen, read } = seen
  switch (outcome) {
    case 'completed':
      return { status: 200, code: null }
    case 'engine_broke':
      return { status: 200, code: 'upstream_error' }
    case 'engine_failed':
      if (seen.isWaitingAgain) return refusalOf(seen)
      return read === 'failed'
        ? { status: isOpen ? 200 : 500, code: 'internal_error' }
        : { status: isOpen ? 200 : 502, code: 'upstream_error' }
    case 'caller_left':
      return { status: 499, code: null }
    case 'interrupted':
    case 'withheld':
      return { status: null, code: null }
  }
}

/** A request that was preempted and refused when it waited again. */
function refusalOf({ hold, refusal }: RequestSeen): { status: number; code: string } {
  const code = hold === 'refused' ? 'spend_limit_exceeded' : (refusal as ErrorCode)
  return { status: errorTable[code].status, code }
}

export function ratesOf(version: number): Rates {
  return {
    inputPerToken: BigInt(10 * version),
    outputPerToken: BigInt(100 * version),
    cachedInputPerToken: 1n,
    perImage: 1000n,
    perAudioMinute: 60_000n,
  }
}

function amountOf(usage: Usage, version: number): bigint {
  const { inputTokens, cachedInputTokens, outputTokens, images, audioMs } = usage
  const fresh = inputTokens - cachedInputTokens
  return BigInt(fresh * 10 * version + cachedInputTokens + outputTokens * 100 * version + images * 1000 + audioMs)
}

const nothing: Usage = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, images: 0, audioMs: 0 }

function isSameUsage(row: Usage, usage: Usage): boolean {
  return (
    row.inputTokens === usage.inputTokens &&
    row.cachedInputTokens === usage.cachedInputTokens &&
    row.outputTokens === usage.outputTokens &&
    row.images === usage.images &&
    row.audioMs === usage.audioMs
  )
}
