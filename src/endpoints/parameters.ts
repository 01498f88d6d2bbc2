import type { Model } from '../core/catalog.ts'
import { ApiError } from '../core/errors.ts'

/** Accepted for every model. They do not change the output, and none is forwarded to an engine unchanged. */
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

/** Values that ask for the default behaviour, so the model does not have to support the parameter. */
const isDefault: Readonly<Record<string, (value: unknown) => boolean>> = {
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
 * The parameters of a request that the model supports. Throws for one that would change the output and that
 * the model does not list.
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
    else if (!isDefault[name]?.(value)) {
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
