import { Type, type Static } from 'typebox'
import type { Catalog } from '../../catalog/catalog.ts'
import { laneLimitsSchema } from '../../catalog/file-limits.ts'
import type { LaneSettings } from '../../catalog/lane-settings.ts'
import { batchLimitsOf } from '../batch-places.ts'
import { maxFlexWaitOf, type LaneLimits, type LaneStatus } from '../lane.ts'
import { deploymentsOf, type Deployment } from '../../catalog/model.ts'
import { ApiError } from '../../shared/errors.ts'
import { nullable } from '../../server/common-schema.ts'
import { jsonResponse } from '../../server/route.ts'
import { operatorRoute, type OperatorRoute } from '../../server/operator-route.ts'

/** The limits of a lane. An operator can override those in the catalog file. */

export interface LaneLimitsParts {
  readonly catalog: Catalog
  readonly lanes: LaneSettings
}

export const laneLimitsExample = {
  token_budget: 16_384,
  max_concurrent_requests: 4,
  max_queue_depth: 100,
  max_wait_ms: 60_000,
}

const batchLimitsSchema = Type.Object(
  {
    reserve_concurrent: Type.Integer({ example: 1 }),
    reserve_tokens: Type.Integer({ example: 1638 }),
    max_share: Type.Number({ example: 1 }),
    preempt: Type.Boolean({ example: true }),
    max_queue_depth: Type.Integer({ example: 100 }),
  },
  { description: 'What lines of batches and flex requests may use. The catalog sets these limits.' },
)

const laneSchema = Type.Object({
  lane: Type.String(),
  limits: laneLimitsSchema,
  batch_limits: batchLimitsSchema,
  flex: Type.Object({ max_wait_ms: Type.Integer({ example: 600_000 }) }),
  limits_in_file: nullable(
    laneLimitsSchema,
    'The limits in the catalog, if an operator has overridden them; otherwise null.',
  ),
})

const parameters = {
  lane: {
    description: 'The name of a lane, as listed. Slashes need no escaping.',
    example: 'meta/llama-3.1-8b-instruct',
  },
}
const laneExample = {
  lane: parameters.lane.example,
  batch_limits: { reserve_concurrent: 1, reserve_tokens: 1638, max_share: 1, preempt: true, max_queue_depth: 100 },
  flex: { max_wait_ms: 600_000 },
  limits: { ...laneLimitsExample, max_concurrent_requests: 8 },
  limits_in_file: laneLimitsExample,
}

export function laneLimitsRoutes({ catalog, lanes }: LaneLimitsParts): readonly OperatorRoute[] {
  const view = (lane: string): object => laneView(deploymentAt(catalog, lane))
  return [
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/queues/{lane+}',
      id: 'getLaneLimits',
      summary: 'Limits of a lane',
      description: 'The limits in force, and those in the catalog where they differ.',
      parameters,
      response: jsonResponse(laneSchema, laneExample),
      errors: ['not_found'],
      answer: async ({ exchange, parameters: { lane } }) => exchange.sendJson(JSON.stringify(view(lane))),
    }),
    operatorRoute({
      method: 'PUT',
      path: '/admin/v1/queues/{lane+}',
      id: 'setLaneLimits',
      summary: 'Set the limits of a lane',
      description:
        'The limits take effect at once and survive a restart. Requests that are waiting or running are not evicted. The limits apply until you clear them, or until the catalog changes the limits of this lane. Use POST /admin/v1/queues/simulate to try limits before you set them.',
      parameters,
      body: laneLimitsSchema,
      example: laneExample.limits,
      response: jsonResponse(laneSchema, laneExample),
      errors: ['not_found'],
      state: async ({ parameters: { lane } }) => view(lane),
      async answer({ exchange, parameters: { lane }, body }) {
        await lanes.setLimits(deploymentAt(catalog, lane), limitsIn(body))
        exchange.sendJson(JSON.stringify(view(lane)))
      },
    }),
    operatorRoute({
      method: 'DELETE',
      path: '/admin/v1/queues/{lane+}',
      id: 'clearLaneLimits',
      summary: 'Return to the limits in the catalog',
      description: 'Removes the limits that an operator has set. The lane itself stays.',
      parameters,
      response: jsonResponse(laneSchema, { ...laneExample, limits: laneLimitsExample, limits_in_file: null }),
      errors: ['not_found'],
      state: async ({ parameters: { lane } }) => view(lane),
      async answer({ exchange, parameters: { lane } }) {
        await lanes.clearLimits(deploymentAt(catalog, lane).lane)
        exchange.sendJson(JSON.stringify(view(lane)))
      },
    }),
  ]
}

export function deploymentAt(catalog: Catalog, lane: string): Deployment {
  const found = catalog
    .models()
    .flatMap(deploymentsOf)
    .find((it) => it.lane === lane)
  if (found) return found
  throw new ApiError('not_found', `There is no lane "${lane.slice(0, 200)}".`, { param: 'lane' })
}

function laneView({ lane, limits, limitsInFile }: Deployment): object {
  const { reserveConcurrent, reserveTokens, maxShare, preempt, maxQueueDepth } = batchLimitsOf(limits)
  return {
    lane,
    limits: limitsView(limits),
    batch_limits: {
      reserve_concurrent: reserveConcurrent,
      reserve_tokens: reserveTokens,
      max_share: maxShare,
      preempt,
      max_queue_depth: maxQueueDepth,
    },
    flex: { max_wait_ms: maxFlexWaitOf(limits) },
    limits_in_file: limitsInFile ? limitsView(limitsInFile) : null,
  }
}

/** What batch work has of a lane. */
export const batchLoadSchema = Type.Object(
  {
    in_flight_requests: Type.Integer({ example: 1 }),
    committed_tokens: Type.Integer({ example: 900 }),
    queue_depth: Type.Integer({ example: 12 }),
  },
  {
    description:
      'The part of lines of batches and flex requests, which are included in what is in flight, but not in `queue_depth`.',
  },
)

export function batchLoadView({ batch }: LaneStatus): object {
  const { inFlightRequests, committedTokens, queueDepth } = batch
  return { in_flight_requests: inFlightRequests, committed_tokens: committedTokens, queue_depth: queueDepth }
}

export function limitsView(limits: LaneLimits) {
  return {
    token_budget: limits.tokenBudget,
    max_concurrent_requests: limits.maxConcurrentRequests,
    max_queue_depth: limits.maxQueueDepth,
    max_wait_ms: limits.maxWaitMs,
    max_requests_per_workspace: limits.maxRequestsPerWorkspace,
  }
}

export function limitsIn(body: Static<typeof laneLimitsSchema>): LaneLimits {
  return {
    tokenBudget: body.token_budget,
    maxConcurrentRequests: body.max_concurrent_requests,
    maxQueueDepth: body.max_queue_depth,
    maxWaitMs: body.max_wait_ms,
    maxRequestsPerWorkspace: body.max_requests_per_workspace,
  }
}
