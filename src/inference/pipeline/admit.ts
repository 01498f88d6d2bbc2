import { ApiError, CallerLeft } from '../../shared/errors.ts'
import type { Job } from '../../engines/job.ts'
import { tokenBudgetExceeded } from '../metering/token-budget.ts'
import type { BatchArrival, Decision, Ticket } from '../../queue/admission.ts'
import { batchTokensOf } from '../../queue/batch-places.ts'
import { maxFlexWaitOf } from '../../queue/lane.ts'
import type { Caller } from '../../workspaces/workspace.ts'
import type { Reply } from '../../server/reply.ts'
import type { PipelineParts } from './parts.ts'

export interface Admitted {
  readonly ticket: Ticket
  /** In all, if the request was preempted and waited again. */
  readonly waitMs: number
  readonly preemption: PreemptionSignal
  /** How much longer the request may wait, if its engine has to start first. */
  readonly leftMs: number
}

/** Whether a batch place has to give way to online requests. */
export interface PreemptionSignal {
  isDue: boolean
  /** Called when it becomes due. */
  react: (() => void) | undefined
}

/**
 * Waits for a place in the lane. Rejects with the refusal, or with CallerLeft if the caller disconnects first. `waitedMs`: how long
 * the request waited before it was preempted.
 */
export function admit(
  parts: PipelineParts,
  job: Job,
  { workspace }: Caller,
  reply: Reply,
  waitedMs: number,
): Promise<Admitted> {
  return new Promise((resolve, reject) => {
    if (reply.isGone) throw new CallerLeft()
    let isDecided = false
    let stopWatching: (() => void) | undefined
    const preemption: PreemptionSignal = { isDue: false, react: undefined }
    const arrival = { lane: job.deployment.lane, workspace: workspace.id, cost: job.cost }
    const batch = job.tier === 'default' ? undefined : batchArrival(job, waitedMs, preemption)
    const admitted = (ticket: Ticket, waitMs: number): Admitted => ({
      ticket,
      waitMs: waitedMs + Math.round(waitMs),
      preemption,
      leftMs: (batch?.maxWaitMs ?? job.deployment.limits.maxWaitMs) - waitMs,
    })
    const entered = parts.admission.enter({ ...arrival, batch }, (decision, ticket) => {
      isDecided = true
      stopWatching?.()
      if (decision.kind === 'admitted') resolve(admitted(ticket, decision.waitMs))
      else reject(refusal(decision, job, parts.random))
    })
    if (isDecided) return
    stopWatching = reply.onGone(() => {
      entered.leave()
      reject(new CallerLeft())
    })
  })
}

function batchArrival({ tier, deployment }: Job, waitedMs: number, preemption: PreemptionSignal): BatchArrival {
  return {
    maxWaitMs: tier === 'flex' ? Math.max(0, maxFlexWaitOf(deployment.limits) - waitedMs) : Infinity,
    preempted() {
      preemption.isDue = true
      preemption.react?.()
    },
  }
}

/** Clients sleep exactly this long. Without jitter they would all retry at the same moment. */
function retrySeconds(random: () => number): number {
  return 2 + Math.floor(random() * 7)
}

type Refusal = Exclude<Decision, { kind: 'admitted' }>

/** A request that wanted idle capacity, and got none. */
function batchRefusal(kind: Refusal['kind'], job: Job, random: () => number): ApiError | undefined {
  const { model, deployment } = job
  const causes: Partial<Record<Refusal['kind'], string>> = {
    queue_full: `Too many requests wait for idle capacity of ${model.id}.`,
    overloaded: `${model.id} had no idle capacity for ${maxFlexWaitOf(deployment.limits)} ms.`,
  }
  const cause = causes[kind]
  if (cause === undefined) return undefined
  return new ApiError('no_idle_capacity', `${cause} Try again later, or without service_tier.`, {
    param: 'service_tier',
    retryAfter: retrySeconds(random),
  })
}

function refusal({ kind }: Refusal, job: Job, random: () => number): ApiError {
  const { model, deployment } = job
  const { maxWaitMs } = deployment.limits
  const ofBatch = job.tier === 'default' ? undefined : batchRefusal(kind, job, random)
  if (ofBatch) return ofBatch
  switch (kind) {
    case 'queue_full':
      return new ApiError('queue_full', `The queue of ${model.id} is full. Try again shortly.`, {
        param: 'model',
        retryAfter: retrySeconds(random),
      })
    case 'workspace_queue_full': {
      const most = deployment.limits.maxRequestsPerWorkspace
      return new ApiError(
        'workspace_queue_full',
        `Your workspace already has ${most ?? 'the most'} requests waiting or running at ${model.id}, the most that one workspace may have there. Try again when one of them has ended.`,
        { param: 'model', retryAfter: retrySeconds(random) },
      )
    }
    case 'overloaded':
      return new ApiError(
        'model_overloaded',
        `${model.id} is busy: the request waited ${maxWaitMs} ms without being admitted.`,
        { param: 'model' },
      )
    case 'too_large':
      return tokenBudgetExceeded(job, job.tier === 'default' ? undefined : batchTokensOf(deployment.limits))
    case 'closed':
      return new ApiError('service_unavailable', 'The service is shutting down. Try again.')
    case 'unavailable':
      return new ApiError('service_unavailable', `Requests to ${model.id} cannot be coordinated now. Try again.`)
  }
}
