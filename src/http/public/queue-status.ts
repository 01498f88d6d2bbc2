import { Type } from 'typebox'
import type { Catalog } from '../../catalog/catalog.ts'
import { deploymentFor, isVisible } from '../../core/catalog.ts'
import type { Workspace } from '../../ports/accounts.ts'
import type { Admission } from '../../ports/admission.ts'
import { listSchema } from '../common-schema.ts'
import { jsonResponse } from '../route.ts'
import { keyRoute, type KeyRoute } from './key-route.ts'
import { limitsExample, limitsSchema, modelEntryExample } from './model-schema.ts'

export interface QueueStatusParts {
  readonly catalog: Catalog
  readonly admission: Admission
}

const queueStatusSchema = listSchema(
  Type.Object({
    object: Type.Literal('queue.status'),
    model: Type.String(),
    in_flight_requests: Type.Integer(),
    committed_tokens: Type.Integer(),
    available_budget: Type.Integer(),
    queue_depth: Type.Integer(),
    limits: limitsSchema,
  }),
)

const queueStatusExample = {
  object: 'list',
  data: [
    {
      object: 'queue.status',
      model: modelEntryExample.id,
      in_flight_requests: 2,
      committed_tokens: 4384,
      available_budget: 12000,
      queue_depth: 0,
      limits: limitsExample,
    },
  ],
}

export function queueStatusRoute({ catalog, admission }: QueueStatusParts): KeyRoute {
  return keyRoute({
    method: 'GET',
    path: '/queue/status',
    id: 'queueStatus',
    summary: 'Queue status',
    description: 'How busy the models are that this key can call. The request itself is never queued.',
    response: jsonResponse(queueStatusSchema, queueStatusExample),
    errors: [],
    answer: async ({ exchange, caller }) =>
      exchange.sendJson(JSON.stringify(await queueStatus(catalog, admission, caller.workspace))),
  })
}

/** The lanes that this workspace's requests would join, all at one instant. */
async function queueStatus(catalog: Catalog, admission: Admission, workspace: Workspace): Promise<object> {
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
