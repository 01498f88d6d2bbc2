import type { Usage } from '../../../src/billing/rating/rating.ts'
import { noUsage } from '../../../src/billing/rating/rating.ts'
import type { LedgerRow, Outcome } from '../../../src/ledger/rows.ts'
import type { CallEnd } from '../../../src/engines/engine.ts'
import {
  bodyBytes,
  cachedTokens,
  inputsOf,
  inputTokens,
  likelyInputTokens,
  heldInputTokensOf,
  maxInputTokensOf,
  type RequestPlan,
  type WholePlan,
} from './plan.ts'

/** The rules of the pipeline. A violation names the one that was broken. */
export type PipelineRule =
  /** Every request ends exactly once, in a way that fits what happened to it. */
  | 'outcome'
  /** One row or none, as docs/billing.md says. */
  | 'row'
  /** Capacity goes back exactly once, when the engine is done with the request and not before. */
  | 'capacity'
  /** The spending hold is settled once, with the amount of the row. */
  | 'hold'
  /** The intent is on record before an engine is called, the row is durable before the caller has the end of the answer. */
  | 'durable'
  /** Nothing happens after the end, and nothing is left behind. */
  | 'end'
  /** The engine is called as often as it must be, stops at the limit and for a caller that has left, and waits for one that reads slowly. */
  | 'engine'

export class PipelineViolation extends Error {
  readonly rule: PipelineRule

  constructor(rule: PipelineRule, message: string) {
    super(`${rule}: ${message}`)
    this.rule = rule
  }
}

/** One engine call as the engine sees it. */
export interface CallSeen {
  readonly bytes: number
  /** An engine was sent the request and has not refused it. */
  hasRequest: boolean
  isStarted: boolean
  isAborted: boolean
  isPaused: boolean
  end: CallEnd | undefined
}

/** Everything the fake ports have seen of one request. Nothing here is read from the pipeline. */
export class RequestSeen {
  readonly index: number
  readonly plan: RequestPlan
  readonly calls: CallSeen[] = []
  isEngineUsable = true
  retained = 0
  letGo = 0
  hold: 'none' | 'pending' | 'granted' | 'refused' = 'none'
  held = 0n
  isRaiseRefused = false
  /** The limit had no room for what the engine counted. */
  isCountRefused = false
  holdSettledWith: bigint | undefined
  /** It has to give way to online requests. */
  isPreempted = false
  /** How often it was preempted and waited again, and how long it had waited before. */
  runs = 0
  waitedMs = 0
  place: 'outside' | 'waiting' | 'admitted' | 'refused' | 'left the queue' | 'released' = 'outside'
  waitMs = 0
  /** The error code of a refused request. */
  refusal = ''
  priceVersions: number[] = []
  note: 'none' | 'noted' | 'failed' = 'none'
  read: 'none' | 'pending' | 'good' | 'useless' | 'failed' = 'none'
  settling: 'none' | 'pending' | 'durable' | 'late' = 'none'
  row: LedgerRow | undefined
  late: LedgerRow | undefined
  reported = 0
  pastLimitReported = 0
  isGone = false
  isCut = false
  isOpen = false
  ending: 'none' | 'complete' | 'error' = 'none'
  result: 'pending' | 'fulfilled' | 'rejected' = 'pending'
  /** What the engine has streamed in the latest call, up to the end of its stream. */
  stream = silentStream()
  /** What it streamed in the calls before. */
  readonly earlierStreams: StreamSeen[] = []

  constructor(index: number, plan: RequestPlan) {
    this.index = index
    this.plan = plan
  }

  /** Nothing of a run that was preempted counts, except its intent and its wait. */
  runAgain(): void {
    this.runs += 1
    this.isPreempted = false
    this.waitedMs = this.waitMs
    this.hold = 'none'
    this.holdSettledWith = undefined
    this.place = 'outside'
    this.read = 'none'
    this.calls.length = 0
    this.earlierStreams.length = 0
    this.stream = silentStream()
  }

  /** It was preempted, and has no place at present. */
  get isWaitingAgain(): boolean {
    return this.runs > 0 && this.place !== 'admitted' && this.place !== 'released'
  }

  get latestCall(): CallSeen | undefined {
    return this.calls.at(-1)
  }

  get isEngineBusy(): boolean {
    return this.calls.some(({ end }) => end === undefined)
  }

  /** Counts what the engine says in a stream. Nothing counts after the end of the stream. */
  hear(symbols: string): void {
    const { stream } = this
    for (const symbol of symbols) {
      if (stream.isOver || stream.isBroken) return
      if (symbol === 't' && stream.tokens === this.plan.maxTokensPerCall) {
        stream.isPastLimit = true
        stream.isFinished = true
        stream.isOver = true
        stream.hasText = true
        return
      }
      if (symbol === 't') stream.tokens += 1
      if (symbol === 'u') stream.tokensReported = stream.tokens
      if (symbol === 'f') stream.isFinished = true
      if (symbol === 'd') stream.isOver = true
      if (symbol === 'x') stream.isBroken = true
      if ('rtf'.includes(symbol)) stream.hasText = true
    }
  }

  hearNext(): void {
    this.earlierStreams.push(this.stream)
    this.stream = silentStream()
  }

  /** The streams of all calls together. */
  wholeStream(): StreamSeen & { readonly callsReported: number } {
    const all = [...this.earlierStreams, this.stream]
    const reported = all.filter(({ tokensReported }) => tokensReported >= 0)
    return {
      tokens: all.reduce((sum, { tokens }) => sum + tokens, 0),
      tokensReported: reported.length > 0 ? reported.reduce((sum, it) => sum + it.tokensReported, 0) : -1,
      hasText: all.some(({ hasText }) => hasText),
      isFinished: this.calls.length === this.callsMax() && all.every(({ isFinished }) => isFinished),
      isOver: this.stream.isOver,
      isBroken: this.stream.isBroken,
      isPastLimit: all.some(({ isPastLimit }) => isPastLimit),
      callsReported: reported.length,
    }
  }

  /** Whether another call must follow: the latest one has ended with a complete stream, and there are more. */
  needsNextStream(): boolean {
    if (this.plan.answer.kind !== 'streamed' || this.calls.length === 0 || this.isGone) return false
    return this.calls.length < this.callsMax() && this.stream.isFinished && !this.stream.isBroken
  }

  /** Whether the engine has said everything, so that the request may be settled. */
  isEngineDone(): boolean {
    const { answer } = this.plan
    if (this.isEngineBusy) {
      const isOver = this.stream.isOver || this.stream.isBroken
      return answer.kind === 'streamed' && isOver && !this.needsNextStream()
    }
    if (this.isGone) return true
    if (answer.kind === 'streamed') return this.calls.length > 0 && !this.needsNextStream()
    if (this.isRefusedFirst()) return false
    return this.latestCall?.end?.kind !== 'ended' || this.answeredCalls() === answer.calls
  }

  /** The first call was refused, and its fallback has not been tried yet. */
  isRefusedFirst(): boolean {
    const { calls, plan } = this
    const [first] = calls
    if (plan.answer.kind !== 'whole' || !plan.answer.hasFallback || calls.length !== 1) return false
    return first?.end?.kind === 'failed' && !first.end.started
  }

  /** The calls that a request may make: those of its plan, and the fallback of a refused first one. */
  callsMax(): number {
    const { answer } = this.plan
    if (answer.kind === 'streamed') return answer.streams.length
    const [first] = this.calls
    const isFirstRefused = first?.end?.kind === 'failed' && !first.end.started
    return answer.calls + (answer.hasFallback && isFirstRefused ? 1 : 0)
  }

  answeredCalls(): number {
    return this.calls.filter(({ end }) => end?.kind === 'ended').length
  }
}

interface StreamSeen {
  tokens: number
  tokensReported: number
  hasText: boolean
  isFinished: boolean
  isOver: boolean
  isBroken: boolean
  isPastLimit: boolean
}

function silentStream(): StreamSeen {
  return {
    tokens: 0,
    tokensReported: -1,
    hasText: false,
    isFinished: false,
    isOver: false,
    isBroken: false,
    isPastLimit: false,
  }
}

export interface ExpectedRow {
  readonly outcome: Outcome
  readonly usage: Usage
  readonly isEstimated: boolean
  /** The engine went past what was allowed or possible. */
  readonly isPastLimit?: boolean
  readonly late?: Outcome
}

const failed: ExpectedRow = { outcome: 'engine_failed', usage: noUsage, isEstimated: false }
const interrupted: ExpectedRow = { outcome: 'interrupted', usage: noUsage, isEstimated: false }

/** The row that docs/billing.md asks for, given what has happened by the time of settlement. */
export function expectedRow(seen: RequestSeen): ExpectedRow {
  if (seen.isWaitingAgain) {
    if (seen.hold === 'refused' || seen.place === 'refused') return failed
    return seen.isCut ? interrupted : { outcome: 'caller_left', usage: noUsage, isEstimated: false }
  }
  return seen.plan.answer.kind === 'streamed' ? expectedStreamRow(seen) : expectedWholeRow(seen)
}

function expectedStreamRow(seen: RequestSeen): ExpectedRow {
  const { tokens, tokensReported, hasText, isFinished, isBroken, isPastLimit, callsReported } = seen.wholeStream()
  const isSilent = tokens === 0 && tokensReported < 0
  const inputs = Math.min(callsReported, inputsOf(seen.plan))
  const usage: Usage =
    tokensReported < 0
      ? { ...noUsage, inputTokens: likelyInputOf(seen), outputTokens: tokens }
      : {
          ...noUsage,
          inputTokens: inputTokens * inputs,
          cachedInputTokens: cachedTokens * inputs,
          outputTokens: tokens,
        }
  const isEstimated = tokensReported !== tokens
  const isComplete = isFinished && !isBroken
  if (isComplete && !seen.isGone) return { outcome: 'completed', usage, isEstimated, isPastLimit }
  if (isComplete || isUnspoiled(seen)) {
    if (seen.isCut) return { ...interrupted, isPastLimit }
    return isSilent ? leftInSilence(seen) : { outcome: 'caller_left', usage, isEstimated, isPastLimit }
  }
  return hasText && tokens > 0 ? { outcome: 'engine_broke', usage, isEstimated, isPastLimit } : failed
}

function expectedWholeRow(seen: RequestSeen): ExpectedRow {
  const answer = seen.plan.answer as WholePlan
  if (seen.read === 'failed' || seen.read === 'useless') return failed
  if (seen.read !== 'good' && !isUnspoiled(seen)) return failed
  if (seen.read !== 'good') return seen.isGone && seen.isCut ? interrupted : leftInSilence(seen)
  const { maxTokens } = seen.plan
  const maxInputTokens = maxInputTokensOf(seen.plan)
  const billedInputTokens = seen.isCountRefused ? heldInputTokensOf(seen.plan) : maxInputTokens
  const outputTokens = Math.ceil(answer.outputBytes / 4)
  const counted = answer.usage ?? { ...noUsage, inputTokens: likelyInputTokens, outputTokens }
  const isImpossible = counted.inputTokens > maxInputTokens || counted.outputTokens > maxTokens
  const usage = {
    ...counted,
    inputTokens: Math.min(counted.inputTokens, billedInputTokens),
    outputTokens: Math.min(counted.outputTokens, maxTokens),
  }
  const isLowered = isImpossible || seen.isCountRefused
  const isEstimated = answer.usage === undefined || isLowered
  const isPastLimit = answer.isCut || (answer.usage !== undefined && isLowered)
  if (seen.isGone && seen.isCut) return { ...interrupted, isPastLimit }
  if (seen.isGone) return { outcome: 'caller_left', usage, isEstimated, isPastLimit }
  return { outcome: 'completed', usage, isEstimated, isPastLimit, late: 'withheld' }
}

/** The caller left and the engine did not spoil the answer. If both happened, the engine failed. */
function isUnspoiled(seen: RequestSeen): boolean {
  const { latestCall, isGone, plan, stream } = seen
  if (!isGone) return false
  if (latestCall === undefined || seen.isRefusedFirst()) return true
  if (plan.answer.kind === 'whole') return latestCall.end?.kind !== 'failed'
  // It left between two calls.
  if (seen.calls.length < seen.callsMax() && stream.isFinished && !stream.isBroken) return true
  return latestCall.end?.kind === 'aborted' && !stream.isOver && !stream.isBroken
}

/** The caller left before the engine said anything: the input that an engine was sent, at the low end. */
function leftInSilence(seen: RequestSeen): ExpectedRow {
  const { latestCall, plan } = seen
  if (!latestCall?.hasRequest) return { outcome: 'caller_left', usage: noUsage, isEstimated: false }
  const tokens = likelyInputOf(seen)
  return {
    outcome: 'caller_left',
    usage: { ...noUsage, inputTokens: tokens, audioMs: plan.audioMs },
    isEstimated: tokens > 0,
  }
}

/** An estimate of the input that engines were sent. What a call repeats counts once. */
function likelyInputOf({ calls, plan }: RequestSeen): number {
  const repeats = plan.answer.kind === 'streamed' && plan.answer.repeatsInput
  const sent = (repeats ? calls.slice(0, 1) : calls).reduce((sum, { bytes }) => sum + bytes, 0)
  return Math.ceil(likelyInputTokens * (sent / (bodyBytes * inputsOf(plan))))
}
