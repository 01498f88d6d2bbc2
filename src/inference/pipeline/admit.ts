import { ApiError, CallerLeft } from '../../shared/errors.ts'
import type { Job } from '../../engines/job.ts'
import { tokenBudgetExceeded } from '../metering/token-budget.ts'
import type { Decision, Ticket } from '../../queue/admission.ts'
import type { Caller } from '../../workspaces/workspace.ts'
import type { Reply } from '../../server/reply.ts'
import type { PipelineParts } from './parts.ts'

export interface Admitted {
  readonly ticket: Ticket
  readonly waitMs: number
}

/** Waits for a place in the lane. Rejects with the refusal, or with CallerLeft if the caller disconnects first. */
export function admit(parts: PipelineParts, job: Job, { workspace }: Caller, reply: Reply): Promise<Admitted> {
  return new Promise((resolve, reject) => {
    if (reply.isGone) throw new CallerLeft()
    let isDecided = false
    let stopWatching: (() => void) | undefined
    const entered = parts.admission.enter(job.deployment.lane, workspace.id, job.cost, (decision, ticket) => {
      isDecided = true
      stopWatching?.()
      if (decision.kind === 'admitted') resolve({ ticket, waitMs: Math.round(decision.waitMs) })
      else reject(refusal(decision, job, parts.random))
    })
    if (isDecided) return
    stopWatching = reply.onGone(() => {
      entered.leave()
      reject(new CallerLeft())
    })
  })
}

/** Clients sleep exactly this long. Without jitter they would all retry at the same moment. */
function retrySeconds(random: () => number): number {
  return 2 + Math.floor(random() * 7)
}

type Refusal = Exclude<Decision, { kind: 'admitted' }>

function refusal({ kind }: Refusal, job: Job, random: () => number): ApiError {
  const { model, deployment } = job
  const { maxWaitMs } = deployment.limits
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
      return tokenBudgetExceeded(job)
    case 'closed':
      return new ApiError('service_unavailable', 'The service is shutting down. Try again.')
    case 'unavailable':
      return new ApiError('service_unavailable', `Requests to ${model.id} cannot be coordinated now. Try again.`)
  }
}
