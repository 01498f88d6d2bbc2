import { Type, type Static } from 'typebox'
import type { EngineDescription } from './model.ts'
import type { LaneLimits } from '../queue/lane.ts'
import type { CheckedYaml } from '../shared/checked-yaml.ts'
import type { Path } from '../shared/json/schema-check.ts'

/** `limits` of a deployment. A part of file.ts. */

/** All limits of a lane. */
export const laneLimitsSchema = Type.Object(
  {
    token_budget: Type.Integer({ minimum: 1, maximum: 1_000_000_000_000 }),
    max_concurrent_requests: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
    max_queue_depth: Type.Integer({ minimum: 0, maximum: 1_000_000 }),
    max_wait_ms: Type.Integer({ minimum: 1, maximum: 3_600_000 }),
    max_requests_per_workspace: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description:
          'How many requests one workspace may have at the model, waiting and running together. Others are refused at once with `workspace_queue_full`. Without it, a workspace may fill the queue.',
      }),
    ),
  },
  { additionalProperties: false },
)

/** What lines of batches and flex requests may use. Only the file has these limits. */
const batchLimitsSchema = Type.Object(
  {
    reserve_concurrent: Type.Integer({ minimum: 0, maximum: 1_000_000 }),
    reserve_tokens: Type.Integer({ minimum: 0, maximum: 1_000_000_000_000 }),
    max_share: Type.Number({ minimum: 0, maximum: 1 }),
    preempt: Type.Boolean(),
    max_queue_depth: Type.Integer({ minimum: 0, maximum: 1_000_000 }),
  },
  { additionalProperties: false },
)

export const deploymentLimitsSchema = Type.Object(
  {
    ...Type.Partial(laneLimitsSchema).properties,
    batch: Type.Optional(Type.Object(Type.Partial(batchLimitsSchema).properties, { additionalProperties: false })),
    flex: Type.Optional(
      Type.Object(
        { max_wait_ms: Type.Optional(Type.Integer({ minimum: 1, maximum: 3_600_000 })) },
        { additionalProperties: false },
      ),
    ),
  },
  { additionalProperties: false },
)

/** While an engine starts, requests wait. By default they may wait as long as a start may take. */
function usualWaitMs(engine: EngineDescription | undefined): number {
  return Math.min(Math.max(120_000, engine?.run?.startTimeoutMs ?? 0), 3_600_000)
}

export function toLimits(
  limits: Static<typeof deploymentLimitsSchema> | undefined,
  engine: EngineDescription | undefined,
  path: Path,
  yaml: CheckedYaml<unknown>,
): LaneLimits {
  const { batch } = limits ?? {}
  const result: LaneLimits = {
    tokenBudget: limits?.token_budget ?? 200_000,
    maxConcurrentRequests: limits?.max_concurrent_requests ?? 32,
    maxQueueDepth: limits?.max_queue_depth ?? 256,
    maxWaitMs: limits?.max_wait_ms ?? usualWaitMs(engine),
    maxRequestsPerWorkspace: limits?.max_requests_per_workspace,
    batch: batch && {
      reserveConcurrent: batch.reserve_concurrent,
      reserveTokens: batch.reserve_tokens,
      maxShare: batch.max_share,
      preempt: batch.preempt,
      maxQueueDepth: batch.max_queue_depth,
    },
    maxFlexWaitMs: limits?.flex?.max_wait_ms,
  }
  const reserve = 'leaves nothing for batch work; lower it, or set max_share: 0 to pause batch work'
  if ((batch?.reserve_concurrent ?? 0) >= result.maxConcurrentRequests) {
    yaml.mistake(
      [...path, 'batch', 'reserve_concurrent'],
      `${reserve} (max_concurrent_requests is ${result.maxConcurrentRequests})`,
    )
  }
  if ((batch?.reserve_tokens ?? 0) >= result.tokenBudget) {
    yaml.mistake([...path, 'batch', 'reserve_tokens'], `${reserve} (token_budget is ${result.tokenBudget})`)
  }
  return result
}
