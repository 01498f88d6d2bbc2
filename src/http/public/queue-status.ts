import type { Catalog } from '../../catalog/catalog.ts'
import { deploymentFor } from '../../core/catalog.ts'
import { isVisible } from '../../core/catalog.ts'
import type { Workspace } from '../../ports/accounts.ts'
import type { Admission } from '../../ports/admission.ts'

/** GET /queue/status: the lanes this workspace's requests would join, all at one instant. */
export function queueStatus(catalog: Catalog, admission: Admission, workspace: Workspace): object {
  const lanes = admission.status()
  const data = catalog.models().flatMap((model) => {
    const deployment = isVisible(model, workspace.name) ? deploymentFor(model, workspace.name) : undefined
    const lane = deployment && lanes.get(deployment.lane)
    if (!lane) return []
    return [
      {
        object: 'queue.status',
        model: model.id,
        in_flight_requests: lane.inFlightRequests,
        committed_tokens: lane.committedTokens,
        available_budget: lane.limits.tokenBudget - lane.committedTokens,
        queue_depth: lane.queueDepth,
        limits: {
          max_concurrent_requests: lane.limits.maxConcurrentRequests,
          token_budget: lane.limits.tokenBudget,
          max_queue_depth: lane.limits.maxQueueDepth,
          max_wait_ms: lane.limits.maxWaitMs,
        },
      },
    ]
  })
  return { object: 'list', data }
}
