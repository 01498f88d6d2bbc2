import type { Model } from '../core/catalog.ts'
import { ApiError } from '../core/errors.ts'

/** Rules that the parameters of every inference endpoint share. */

/** Accepted for every model; they change nothing of the output, and no engine gets them as they are. */
const alwaysAccepted = new Set([
  'model',
  'stream',
  'stream_options',
  'max_tokens',
  'max_completion_tokens',
  'user',
  'metadata',
  'store',
  'service_tier',
  'safety_identifier',
  'prompt_cache_key',
])

/** Values that ask for what happens anyway, so that a model need not know the parameter. */
const noOperation: Readonly<Record<string, (value: unknown) => boolean>> = {
  n: (value) => value === 1,
  best_of: (value) => value === 1,
  top_p: (value) => value === 1,
  frequency_penalty: (value) => value === 0,
  presence_penalty: (value) => value === 0,
  repetition_penalty: (value) => value === 1,
  top_k: (value) => value === -1,
  min_p: (value) => value === 0,
  logprobs: (value) => value === false,
  top_logprobs: (value) => value === 0,
  stop: isEmptyArray,
  tools: isEmptyArray,
  tool_choice: (value) => value === 'auto' || value === 'none',
  parallel_tool_calls: (value) => value === true,
  logit_bias: (value) => Object.keys(value as object).length === 0,
  quality: (value) => value === 'auto',
  background: (value) => value === 'auto',
  response_format: (value) => (value as { type?: unknown }).type === 'text',
}

/**
 * The parameters a request asks a model for, and the model knows. One that would change the output and
 * that the model does not list is refused before any work is done.
 */
export function acceptedParameters(
  request: Readonly<Record<string, unknown>>,
  known: Readonly<Record<string, unknown>>,
  required: ReadonlySet<string>,
  model: Model,
): ReadonlySet<string> {
  const accepted = new Set<string>()
  for (const name in request) {
    const value = request[name]
    if (value === null || value === undefined || !Object.hasOwn(known, name)) continue
    if (alwaysAccepted.has(name) || required.has(name)) continue
    if (model.supportedParameters.includes(name)) accepted.add(name)
    else if (!noOperation[name]?.(value)) {
      throw new ApiError('unsupported_parameter', `${model.id} does not support the parameter '${name}'.`, {
        param: name,
      })
    }
  }
  return accepted
}

function isEmptyArray(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0
}
