import { Type, type Static } from 'typebox'
import type { Catalog } from '../../catalog/catalog.ts'
import { laneLimitsSchema } from '../../catalog/file.ts'
import type { LaneSettings } from '../../catalog/lane-settings.ts'
import type { LaneLimits } from '../../core/admission/lane.ts'
import { deploymentsOf, type Deployment } from '../../core/catalog.ts'
import { ApiError } from '../../core/errors.ts'
import { nullable } from '../common-schema.ts'
import { jsonResponse } from '../route.ts'
import { operatorRoute, type OperatorRoute } from './operator-route.ts'

/** The limits of a lane, which an operator may set beside the file. */

export interface LaneLimitsParts {
  readonly catalog: Catalog
  readonly lanes: LaneSettings
}

export const limitsExample = {
  token_budget: 16_384,
  max_concurrent_requests: 4,
  max_queue_depth: 100,
  max_wait_ms: 60_000,
}

const laneSchema = Type.Object({
  lane: Type.String(),
  limits: laneLimitsSchema,
  limits_in_file: nullable(laneLimitsSchema, 'What the catalog says, if an operator has set others; else null.'),
})

const parameters = {
  lane: { description: 'A lane, as listed. Slashes may stand as they are.', example: 'meta/llama-3.1-8b-instruct' },
}
const laneExample = {
  lane: parameters.lane.example,
  limits: { ...limitsExample, max_concurrent_requests: 8 },
  limits_in_file: limitsExample,
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
        'In force at once, also after a restart. Nobody who waits or runs is turned away. They end when you return to the catalog, or when the catalog changes the limits of this lane. POST /admin/v1/queues/simulate tries limits before you set them.',
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
      description: 'Ends limits that an operator has set. The lane itself stays.',
      parameters,
      response: jsonResponse(laneSchema, { ...laneExample, limits: limitsExample, limits_in_file: null }),
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
  return { lane, limits: limitsView(limits), limits_in_file: limitsInFile ? limitsView(limitsInFile) : null }
}

export function limitsView(limits: LaneLimits) {
  return {
    token_budget: limits.tokenBudget,
    max_concurrent_requests: limits.maxConcurrentRequests,
    max_queue_depth: limits.maxQueueDepth,
    max_wait_ms: limits.maxWaitMs,
  }
}

export function limitsIn(body: Static<typeof laneLimitsSchema>): LaneLimits {
  return {
    tokenBudget: body.token_budget,
    maxConcurrentRequests: body.max_concurrent_requests,
    maxQueueDepth: body.max_queue_depth,
    maxWaitMs: body.max_wait_ms,
  }
}
