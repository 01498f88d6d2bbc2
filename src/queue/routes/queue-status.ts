import { Type } from 'typebox'
import type { Catalog } from '../../catalog/catalog.ts'
import { deploymentFor, isVisible, type Deployment } from '../../catalog/model.ts'
import type { Workspace } from '../../workspaces/workspace.ts'
import type { Admission } from '../admission.ts'
import { EXAMPLE_MODEL, listSchema } from '../../server/common-schema.ts'
import { jsonResponse } from '../../server/route.ts'
import { keyRoute, type KeyRoute } from '../../server/key-route.ts'
import type { Engine } from '../../engines/engine.ts'
import { engineStartSchema, engineStartView, limitsSchema } from '../../catalog/routes/model-schema.ts'
import { batchLoadSchema, batchLoadView } from './lane-limits.ts'

export interface QueueStatusParts {
  readonly catalog: Catalog
  readonly admission: Admission
  engineOf(deployment: Deployment): Engine | undefined
}

const queueStatusSchema = listSchema(
  Type.Object({
    object: Type.Literal('queue.status'),
    model: Type.String({ example: EXAMPLE_MODEL }),
    in_flight_requests: Type.Integer({ example: 2 }),
    committed_tokens: Type.Integer({ example: 4384 }),
    available_budget: Type.Integer({ example: 12000 }),
    queue_depth: Type.Integer(),
    // Only while there is any.
    batch: Type.Optional(batchLoadSchema),
    engine: Type.Optional(engineStartSchema),
    limits: limitsSchema,
  }),
)

export function queueStatusRoute(parts: QueueStatusParts): KeyRoute {
  return keyRoute({
    method: 'GET',
    path: '/queue/status',
    id: 'queueStatus',
    summary: 'Queue status',
    description: 'The load of the models that this key can call. This request itself is never queued.',
    response: jsonResponse(queueStatusSchema),
    errors: [],
    answer: async ({ exchange, caller }) =>
      exchange.sendJson(JSON.stringify(await queueStatus(parts, caller.workspace))),
  })
}

/** The lanes that serve this workspace. */
async function queueStatus({ catalog, admission, engineOf }: QueueStatusParts, workspace: Workspace): Promise<object> {
  const lanes = await admission.status()
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
        batch: lane.batch.inFlightRequests + lane.batch.queueDepth > 0 ? batchLoadView(lane) : undefined,
        engine: engineStartView(engineOf(deployment)),
        limits: {
          max_concurrent_requests: lane.limits.maxConcurrentRequests,
          token_budget: lane.limits.tokenBudget,
          max_queue_depth: lane.limits.maxQueueDepth,
          max_wait_ms: lane.limits.maxWaitMs,
          max_requests_per_workspace: lane.limits.maxRequestsPerWorkspace,
        },
      },
    ]
  })
  return { object: 'list', data }
}
