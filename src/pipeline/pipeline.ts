import type { Decision } from '../core/admission/lane.ts'
import type { Deployment } from '../core/catalog.ts'
import { byteCollector, type ByteCollector } from '../core/byte-collector.ts'
import { ApiError, CallerLeft } from '../core/errors.ts'
import type {
  AnswerHead,
  EngineHeaders,
  EngineRequest,
  Job,
  Price,
  ParsedAnswer,
  StreamedAnswer,
  WholeAnswer,
} from '../core/job.ts'
import type { Intent, LedgerRow, Outcome } from '../core/money/ledger.ts'
import { maximumCharge } from '../core/money/maximum-charge.ts'
import { noUsage, rate, type Usage } from '../core/money/rating.ts'
import { likelyOutputTokens } from '../core/token-estimate.ts'
import { estimatedUsage, streamedUsage } from '../core/estimated-usage.ts'
import type { Caller } from '../ports/accounts.ts'
import type { Admission, Ticket } from '../ports/admission.ts'
import type { Clock } from '../ports/clock.ts'
import type { CallEnd, Engine, EngineCall, EngineReceiver, RunningCall } from '../ports/engine.ts'
import type { Ledger } from '../ports/ledger.ts'
import type { Reply } from '../ports/reply.ts'
import type { SpendingHold, Spending } from '../ports/spending.ts'

/** The life of one request, from a valid job to a settled row: admit → engine → relay → settle → release. */

export interface PipelineParts {
  readonly admission: Admission
  readonly ledger: Ledger
  readonly spending: Spending
  readonly clock: Clock
  engineOf(deployment: Deployment): Engine | undefined
  /** As of now. */
  priceOf(job: Job, caller: Caller): Price
  /** A row was settled, whatever the outcome. */
  settled(row: LedgerRow): void
  /** A number from 0 up to 1, for delays that must not be the same for all. */
  random(): number
}

export type Pipeline = (job: Job, caller: Caller, reply: Reply) => Promise<LedgerRow>

const MAX_ANSWER_BYTES = 256 * 1024 * 1024
/** An engine that has said [DONE] may close its response; it is not waited for much longer. */
const AFTER_DONE_MS = 1000

export function createPipeline(parts: PipelineParts): Pipeline {
  const { admission, ledger, clock, spending } = parts

  return async (job, caller, reply) => {
    const engine = usableEngine(job)
    const hold = spending.hold(caller.workspace, maximumCharge(job, parts.priceOf(job, caller)))
    const letGo = engine.retain()
    try {
      return await visitEngine(engine, hold, job, caller, reply)
    } finally {
      letGo()
      // Nothing, where it was never settled.
      hold.settle(0n)
    }
  }

  async function visitEngine(
    engine: Engine,
    hold: SpendingHold,
    job: Job,
    caller: Caller,
    reply: Reply,
  ): Promise<LedgerRow> {
    const { ticket, waitMs } = await admit(job, reply)
    let visit: Visit | undefined
    try {
      // It may have changed while the request waited.
      const price = parts.priceOf(job, caller)
      const intent = await recordIntent(job, caller, reply, price)
      visit = {
        job,
        reply,
        intent,
        price,
        waitMs,
        admittedAt: clock.monotonic(),
        sentBytes: 0,
        hold,
        release: () => ticket.leave(),
      }
      return job.answer.kind === 'streamed'
        ? await streamAnswer(visit, job.answer, engine)
        : await wholeAnswer(visit, job.answer, engine)
    } finally {
      // A stream is over for its caller when the engine has said so; the engine may take a moment longer.
      if (visit?.running) void visit.running.ended.then(() => ticket.leave())
      else ticket.leave()
    }
  }

  function usableEngine(job: Job): Engine {
    const engine = parts.engineOf(job.deployment)
    if (engine?.usable()) return engine
    throw new ApiError('model_not_configured', `No engine of ${job.model.id} is up now. Try again later.`, {
      param: 'model',
    })
  }

  function admit(job: Job, reply: Reply): Promise<{ ticket: Ticket; waitMs: number }> {
    return new Promise((resolve, reject) => {
      let admitted: number | undefined
      const ticket = admission.enter(job.deployment.lane, job.cost, (decision) => {
        if (decision.kind !== 'admitted') return reject(refusal(decision, job))
        admitted = decision.waitMs
        // `enter` may decide before it has returned the ticket.
        queueMicrotask(() => resolve({ ticket, waitMs: Math.round(decision.waitMs) }))
      })
      reply.onGone(() => {
        if (admitted !== undefined) return
        ticket.leave()
        reject(new CallerLeft())
      })
    })
  }

  function refusal(decision: Exclude<Decision, { kind: 'admitted' }>, job: Job): ApiError {
    const { model, deployment } = job
    switch (decision.kind) {
      case 'queue_full':
        // Clients sleep exactly this long, so equal answers would come back together.
        return new ApiError('queue_full', `The queue of ${model.id} is full. Try again shortly.`, {
          param: 'model',
          retryAfter: 2 + Math.floor(parts.random() * 7),
        })
      case 'overloaded':
        return new ApiError(
          'model_overloaded',
          `${model.id} is busy: the request waited ${deployment.limits.maxWaitMs} ms without being admitted.`,
          { param: 'model' },
        )
      case 'too_large':
        return new ApiError(
          'token_budget_exceeded',
          `The request needs about ${job.cost} tokens${job.maxTokens > 0 ? ' (input and max_tokens)' : ''}, more than the ${deployment.limits.tokenBudget} that ${model.id} admits at once. ${job.maxTokens > 0 ? 'Lower max_tokens or shorten the input.' : 'Ask for less at a time.'}`,
          job.maxTokens > 0 ? { param: 'max_tokens' } : {},
        )
      case 'closed':
        return new ApiError('service_unavailable', 'The service is shutting down. Try again.')
    }
  }

  async function recordIntent(job: Job, caller: Caller, reply: Reply, price: Price): Promise<Intent> {
    const intent = {
      requestId: reply.requestId,
      workspaceId: caller.workspace.id,
      keyId: caller.keyId,
      model: job.model.id,
      lane: job.deployment.lane,
      endpoint: job.endpoint,
      priceVersion: price.version,
      maxTokens: job.maxTokens,
      startedAt: clock.now(),
    }
    try {
      await ledger.note(intent)
    } catch (cause) {
      throw new ApiError('service_unavailable', 'Usage cannot be recorded now, so nothing is served. Try again.', {
        cause,
      })
    }
    return intent
  }

  /** What one admitted request carries along. */
  interface Visit {
    readonly job: Job
    readonly reply: Reply
    readonly intent: Intent
    readonly price: Price
    readonly waitMs: number
    readonly admittedAt: number
    running?: RunningCall
    /** Of the bodies of all calls made so far. */
    sentBytes: number
    readonly hold: SpendingHold
    /** Gives the lane's capacity back: as soon as the engine call has ended. */
    release(): void
  }

  async function callEngine(visit: Visit, engine: Engine, call: EngineCall, done?: Promise<void>): Promise<CallEnd> {
    if (visit.reply.isGone) return { kind: 'aborted' }
    const running = engine.run(call)
    visit.running = running
    visit.sentBytes += call.body.length
    visit.reply.onGone(() => running.abort())
    return done ? Promise.race([running.ended, done.then(() => finishSoon(running))]) : running.ended
  }

  async function wholeAnswer(visit: Visit, answer: WholeAnswer, engine: Engine): Promise<LedgerRow> {
    const { job, reply, waitMs } = visit
    const passThrough = answer.passThrough?.(headOf(visit))
    const ownHeaders = { 'X-Queue-Wait-Ms': String(waitMs) }
    let isOpen = false
    const bodies: ByteCollector[] = []
    const headers: EngineHeaders[] = []
    let bytes = 0
    let firstByteAt: number | null = null
    let end: CallEnd = { kind: 'ended' }
    for (const call of job.calls) {
      const body = byteCollector(MAX_ANSWER_BYTES)
      const receiver: EngineReceiver = {
        start(answerHeaders) {
          firstByteAt ??= clock.monotonic()
          headers.push(answerHeaders)
          body.expect(Number(answerHeaders['content-length']))
        },
        data(chunk) {
          bytes += chunk.length
          if (bytes > MAX_ANSWER_BYTES) throw new RangeError('the engine answered with more than 256 MiB')
          const passing = passThrough?.push(chunk)
          if (passing) sendOn(passing)
          else body.push(chunk)
        },
      }
      end = await callEngine(visit, engine, { ...call, receiver })
      const fallback = end.kind === 'failed' && !end.started ? call.fallback?.(end.error) : undefined
      if (fallback) end = await callEngine(visit, engine, { ...fallback, receiver })
      if (end.kind !== 'ended') break
      bodies.push(body)
    }
    visit.release()
    const read = end.kind === 'ended' ? await readWhole() : undefined
    if (reply.isGone) {
      const usage = read && (read.usage ?? estimatedUsage(job, likelyOutputTokens(read.outputBytes())))
      await settleLeft(visit, usage ?? abandoned(visit), read?.usage === undefined, firstByteAt)
      throw new CallerLeft()
    }
    if (!read) {
      await settle(visit, 'engine_failed', noUsage, false, firstByteAt)
      throw end.kind === 'failed' ? end.error : new ApiError('upstream_error', 'The engine gave no usable answer.')
    }
    const usage = read.usage ?? estimatedUsage(job, likelyOutputTokens(read.outputBytes()))
    const row = await settle(visit, 'completed', usage, read.usage === undefined, firstByteAt, 'withheld')
    reply.sendAnswer(read.contentType ?? 'application/json', read.render(usage), ownHeaders)
    return row

    function sendOn(bytes: Buffer): void {
      if (!isOpen) reply.openAnswer('application/json', ownHeaders)
      isOpen = true
      if (!reply.write(bytes)) holdEngine(visit)
    }

    async function readWhole(): Promise<ParsedAnswer | undefined> {
      if (isOpen) return passThrough?.end(headers[0] ?? {})
      try {
        return await answer.read(bodies, headOf(visit), headers)
      } catch (error) {
        await settle(visit, 'engine_failed', noUsage, false, firstByteAt)
        throw error
      }
    }
  }

  function holdEngine(visit: Visit): void {
    visit.running?.pause()
    visit.reply.onDrain(() => visit.running?.resume())
  }

  async function streamAnswer(visit: Visit, answer: StreamedAnswer, engine: Engine): Promise<LedgerRow> {
    const { job, reply, waitMs } = visit
    const relay = answer.relay(headOf(visit))
    const done = Promise.withResolvers<void>()
    let isOpen = false
    let firstTokenAt: number | null = null
    const [call] = job.calls
    if (!call) throw new Error('a streamed answer needs a call')
    const end = await callEngine(visit, engine, { ...call, receiver: streamReceiver() }, done.promise)
    void visit.running?.ended.then(() => visit.release())

    const { usage, isEstimated } = streamedUsage(job, relay)
    if (reply.isGone) {
      const nothingSeen = relay.deltaCount() === 0 && relay.reportedUsage() === undefined
      await settleLeft(visit, nothingSeen ? abandoned(visit) : usage, isEstimated, firstTokenAt)
      throw new CallerLeft()
    }
    if (!isOpen) {
      await settle(visit, 'engine_failed', noUsage, false, firstTokenAt)
      throw end.kind === 'failed' ? end.error : new ApiError('upstream_error', 'The engine gave no usable answer.')
    }
    if (!relay.isComplete()) {
      // A role is no output: an engine that said no more than that has failed before it produced anything.
      const settled =
        relay.deltaCount() === 0
          ? settle(visit, 'engine_failed', noUsage, false, firstTokenAt)
          : settle(visit, 'engine_broke', usage, isEstimated, firstTokenAt)
      const broke = new ApiError('upstream_error', 'The engine broke off in the middle of its answer.')
      return settled.finally(() => reply.end(errorEvent(broke)))
    }
    const row = await settle(visit, 'completed', usage, isEstimated, firstTokenAt).catch((error: ApiError) => {
      reply.end(errorEvent(error))
      throw error
    })
    reply.end(relay.closing(usage))
    return row

    function streamReceiver(): EngineReceiver {
      return {
        start() {},
        data(chunk) {
          const text = relay.push(chunk)
          if (text !== '') {
            if (!isOpen) {
              isOpen = true
              reply.openStream({ 'X-Queue-Wait-Ms': String(waitMs) })
            }
            if (relay.deltaCount() > 0) firstTokenAt ??= clock.monotonic()
            if (!reply.write(text)) holdEngine(visit)
          }
          if (relay.isDone() || relay.isBroken()) done.resolve()
        },
      }
    }
  }

  function headOf(visit: Visit): AnswerHead {
    const { job, intent } = visit
    return { id: intent.requestId, created: Math.floor(intent.startedAt / 1000), model: job.model.id }
  }

  /**
   * The caller left before the engine said anything. What the engine was handed is estimated, at the low end;
   * of output nothing was seen, so none is billed.
   */
  function abandoned({ job, running, sentBytes }: Visit): Usage {
    if (!running?.isWithEngine()) return noUsage
    const share = sentBytes / Math.max(1, bytesOf(job.calls))
    return {
      ...noUsage,
      inputTokens: Math.ceil(job.likelyInputTokens * share),
      audioMs: job.media?.audioMs ?? 0,
    }
  }

  /** The caller did not stay for the end; or was cut off by a stop of the service, which costs nothing. */
  function settleLeft(visit: Visit, usage: Usage, estimated: boolean, firstTokenAt: number | null): Promise<LedgerRow> {
    if (visit.reply.isCut) return settle(visit, 'interrupted', noUsage, false, firstTokenAt)
    // Tokens are what is estimated: the length of audio was measured.
    const hasTokens = usage.inputTokens > 0 || usage.outputTokens > 0
    return settle(visit, 'caller_left', usage, estimated && hasTokens, firstTokenAt)
  }

  /** `ifLate`: what becomes of the row, at no cost, where it cannot be written in time and the caller gets nothing. */
  async function settle(
    visit: Visit,
    outcome: Outcome,
    usage: Usage,
    estimated: boolean,
    firstTokenAt: number | null,
    ifLate?: Outcome,
  ): Promise<LedgerRow> {
    const { intent, admittedAt } = visit
    const row: LedgerRow = {
      ...intent,
      ...usage,
      estimated,
      outcome,
      amount: rate(usage, visit.price.rates),
      queueWaitMs: visit.waitMs,
      firstTokenMs: firstTokenAt === null ? null : Math.round(firstTokenAt - admittedAt),
      durationMs: Math.round(clock.monotonic() - admittedAt),
      settledAt: clock.now(),
    }
    parts.settled(row)
    try {
      await ledger.settle(row, ifLate && { ...row, ...noUsage, estimated: false, outcome: ifLate, amount: 0n })
    } catch (cause) {
      visit.hold.settle(ifLate ? 0n : row.amount)
      throw new ApiError('service_unavailable', 'Usage cannot be recorded now, so the answer is withheld.', { cause })
    }
    visit.hold.settle(row.amount)
    return row
  }
}

function bytesOf(calls: readonly EngineRequest[]): number {
  return calls.reduce((sum, { body }) => sum + body.length, 0)
}

async function finishSoon(running: RunningCall): Promise<CallEnd> {
  const timer = setTimeout(() => running.abort(), AFTER_DONE_MS)
  void running.ended.then(() => clearTimeout(timer))
  return { kind: 'ended' }
}

/** CONTRACT: the one event that ends a broken stream. */
function errorEvent(error: ApiError): string {
  return `data: ${JSON.stringify(error.body())}\n\n`
}
