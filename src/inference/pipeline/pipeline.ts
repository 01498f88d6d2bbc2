import { ApiError } from '../../shared/errors.ts'
import type { AnswerHead, Job, Price } from '../../engines/job.ts'
import type { Intent, RequestRow } from '../../ledger/rows.ts'
import { maximumCharge } from '../metering/usage-bounds.ts'
import { saltedPrompt } from '../../engines/prefix/warm-prefixes.ts'
import { withoutUsableEngine } from '../../catalog/unavailable-model.ts'
import type { Caller } from '../../workspaces/workspace.ts'
import type { Engine, EngineCall } from '../../engines/engine.ts'
import type { Reply } from '../../server/reply.ts'
import type { SpendingHold } from '../../workspaces/spend-limits/spending.ts'
import { admit } from './admit.ts'
import type { AdmittedRequest, AnswerPath } from './admitted-request.ts'
import { engineCalls } from './engine-calls.ts'
import type { PipelineParts } from './parts.ts'
import { settlePreempted } from './settle.ts'
import { streamedAnswer } from './streamed-answer.ts'
import { wholeAnswer } from './whole-answer.ts'

export type Pipeline = (job: Job, caller: Caller, reply: Reply) => Promise<RequestRow>

/**
 * The life of one request, from a valid job to a settled row:
 * usable engine → hold spending → admit → note intent → engine → release → settle → reply.
 * A request of the flex or batch tier that is preempted is not billed: it waits again and runs again.
 */
export function createPipeline(parts: PipelineParts): Pipeline {
  // One function on purpose: every async function that is suspended takes memory for every request in the queue.
  return async (job, caller, reply) => {
    const engine = usableEngine(job)
    const letGo = engine.retain()
    let hold: SpendingHold | undefined
    /** The request, if it gave way to online requests and has no row yet. Its intent stays open while it waits again. */
    let preempted: AdmittedRequest | undefined
    try {
      for (;;) {
        const quoted = preempted?.price ?? priceOf(job, caller)
        const spender = { id: caller.keyId, ...caller.rules?.spend }
        hold = await parts.spending.hold(caller.workspace, maximumCharge(job, quoted), spender)
        const admitted = await admit(parts, job, caller, reply, preempted?.waitMs ?? 0)
        const { ticket, waitMs } = admitted
        if (job.tier === 'default') parts.admitted(job.deployment.lane, waitMs)
        const calls = engineCalls(engine, reply, inputOf(job, caller), admitted)
        let answer: AnswerPath
        try {
          // Read again, because it may have changed while the request waited.
          const price = preempted?.price ?? priceOf(job, caller)
          if (price.version !== quoted.version) await hold.raise(maximumCharge(job, price))
          const intent = preempted?.intent ?? noteIntent(job, caller, reply, price)
          reply.setWaiting(false)
          const admittedAt = parts.clock.monotonic()
          const request = { job, reply, calls, intent, head: headOf(job, intent), price, hold, waitMs, admittedAt }
          answer = answerPath(request)
          preempted = undefined
          await answer.takeFromEngine()
          if (calls.isPreempted()) preempted = request
        } finally {
          // The only place that releases the lane's capacity: as soon as the engine is done with the request.
          calls.whenIdle(() => ticket.leave())
        }
        if (preempted) {
          // The engine may be done with its answer before the call is aborted.
          await new Promise<void>((resolve) => calls.whenIdle(resolve))
          hold.settle(0n)
          reply.setWaiting(true)
          continue
        }
        const row = await answer.giveToCaller()
        // The engine counts every call separately, and an estimate tells nothing about its cache.
        const placement = job.calls.length > 1 || row.estimated ? undefined : calls.learn(row.cachedInputTokens)
        parts.cacheUsed(row, job.prompt, placement)
        return row
      }
    } catch (error) {
      if (preempted) await settlePreempted(parts, preempted, error)
      throw error
    } finally {
      // Releases the hold of a request that produced no row.
      hold?.settle(0n)
      letGo()
    }
  }

  function priceOf({ deployment, model, tier, media }: Job, { workspace }: Caller): Price {
    return parts.priceOf(deployment, model, workspace.id, tier === 'default' ? media?.imageKind : tier)
  }

  function usableEngine(job: Job): Engine {
    const engine = parts.engineOf(job.deployment)
    if (engine?.usable()) return engine
    throw withoutUsableEngine(job.model, job.deployment, engine?.missingFiles?.()).error
  }

  function noteIntent(job: Job, caller: Caller, reply: Reply, price: Price): Intent {
    const intent = {
      requestId: reply.requestId,
      workspaceId: caller.workspace.id,
      keyId: caller.keyId,
      model: job.model.id,
      lane: job.deployment.lane,
      endpoint: job.endpoint,
      priceVersion: price.version,
      maxTokens: job.maxTokens,
      startedAt: parts.clock.now(),
      tier: job.tier,
    }
    try {
      parts.ledger.note(intent)
    } catch (cause) {
      throw new ApiError('service_unavailable', 'Usage cannot be recorded now, so nothing is served. Try again.', {
        cause,
      })
    }
    reply.isOnRecord = true
    return intent
  }

  function answerPath(request: AdmittedRequest): AnswerPath {
    const { answer } = request.job
    return answer.kind === 'streamed' ? streamedAnswer(parts, request, answer) : wholeAnswer(parts, request, answer)
  }
}

function headOf({ model, tier }: Job, { requestId, startedAt }: Intent): AnswerHead {
  const head = { id: requestId, created: Math.floor(startedAt / 1000), model: model.id }
  return tier === 'default' ? head : { ...head, tier }
}

/**
 * The same prompt has different keys in different workspaces, unless the operator allows sharing: response times and
 * cached token counts would reveal to one workspace what another has asked. An adapter has another cache than its base.
 */
function inputOf({ prompt, deployment }: Job, { workspace }: Caller): Pick<EngineCall, 'prompt' | 'adapter'> {
  const { engine, adapter } = deployment
  const salt = `${engine?.sharePrefixes ? '' : workspace.id}${adapter ? ` ${adapter.name}` : ''}`
  return { adapter, prompt: prompt && saltedPrompt(prompt, salt) }
}
