import type { Catalog } from '../../catalog/catalog.ts'
import { endpointsOf, type Category, type Deployment, type Model } from '../../catalog/model.ts'
import { ApiError, type ErrorCode } from '../../shared/errors.ts'
import type { Job } from '../../engines/job.ts'
import { invalidParameter } from '../../shared/json/schema-check.ts'
import { MAX_MODEL_NAME } from '../request/shared-schema.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import type { Caller } from '../../workspaces/workspace.ts'
import type { Exchange } from '../../server/exchange.ts'
import type { RequestNotes } from '../../server/request-line.ts'
import { BASE } from '../../server/key-route.ts'

/** What all inference endpoints share: find the model, check that it can be called on the endpoint, run the job. */

const MAX_HEADER_CHARACTERS = 1000

export interface JobParts {
  readonly catalog: Catalog
  readonly pipeline: Pipeline
}

export interface InferenceEndpoint {
  /** Below the base path. The ledger records it with each request. */
  readonly path: string
  /** Models of this category may be called here, although they do not list the endpoint. */
  readonly alsoServes?: Category
  /** The endpoint that this one is a variant of: it serves the same models. */
  readonly formOf?: string
}

/** The errors that every inference endpoint may give. */
export const inferenceErrors: readonly ErrorCode[] = [
  'invalid_json',
  'missing_required_parameter',
  'invalid_type',
  'invalid_value',
  'unsupported_parameter',
  'unsupported_value',
  'unsupported_content',
  'wrong_endpoint',
  'context_length_exceeded',
  'token_budget_exceeded',
  'spend_limit_exceeded',
  'key_not_allowed',
  'model_access_denied',
  'model_not_found',
  'request_timeout',
  'request_too_large',
  'unsupported_media_type',
  'queue_full',
  'workspace_queue_full',
  'no_idle_capacity',
  'upstream_error',
  'upstream_timeout',
  'model_overloaded',
  'model_not_configured',
  'model_unavailable',
  'service_unavailable',
]

/** For endpoints whose requests may offer more than a model supports. */
export const leftOutHeaders = {
  'X-Left-Out': { description: 'What was left out of the request, and why.', schema: { type: 'string' } },
} as const

export const queueHeaders = {
  'X-Queue-Wait-Ms': { description: 'Milliseconds the request waited in the queue.', schema: { type: 'integer' } },
} as const

/** The model that the caller named, if it may be called on this endpoint. */
export function resolveFor(
  { catalog }: JobParts,
  exchange: { notes: RequestNotes },
  endpoint: InferenceEndpoint,
  name: string,
  caller: Caller,
): { model: Model; deployment: Deployment } {
  if (name.length > MAX_MODEL_NAME) {
    throw invalidParameter('invalid_value', 'model', `a string of 1 to ${MAX_MODEL_NAME} characters`)
  }
  // Noted first: a model that nothing serves is refused, and the refusal is about that model.
  const known = catalog.find(name, caller.workspace.name)
  if (known) exchange.notes = { model: known.id }
  const found = catalog.resolve(name, caller.workspace.name)
  if (caller.rules?.allowsModel(found.model) === false) {
    throw new ApiError('model_access_denied', `This API key may not call ${found.model.id}.`, { param: 'model' })
  }
  requireEndpoint(found.model, endpoint)
  return found
}

export async function runJob({ pipeline }: JobParts, exchange: Exchange, caller: Caller, job: Job): Promise<void> {
  const { model, deployment, warnings = [] } = job
  const { lane } = deployment
  if (warnings.length > 0) exchange.headers['X-Left-Out'] = headerText(warnings.join('; '))
  exchange.notes = { model: model.id, lane }
  const row = await pipeline(job, caller, exchange)
  exchange.notes = {
    model: model.id,
    lane,
    outcome: row.outcome,
    queue_wait_ms: row.queueWaitMs,
    first_token_ms: row.firstTokenMs,
    duration_ms: row.durationMs,
    input_tokens: row.inputTokens,
    output_tokens: row.outputTokens,
  }
}

function requireEndpoint(model: Model, { path, alsoServes, formOf = path }: InferenceEndpoint): void {
  const right = endpointsOf(model)
  if (right.includes(formOf) || (alsoServes && model.categories.includes(alsoServes))) return
  const addresses = right.map((it) => BASE + it).join(' or ')
  throw new ApiError('wrong_endpoint', `${model.id} cannot be called on ${path}. Use ${addresses}.`, { param: 'model' })
}

/** Caller-supplied names may contain any character; header values may not. */
function headerText(text: string): string {
  return text.slice(0, MAX_HEADER_CHARACTERS).replaceAll(/[^\x20-\x7e]/g, '?')
}
