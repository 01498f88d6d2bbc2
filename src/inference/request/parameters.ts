import type { Model } from '../../catalog/model.ts'
import { ApiError } from '../../shared/errors.ts'
import type { SupportByName } from '../../engines/dialects/parameter-support.ts'

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

type Request = Readonly<Record<string, unknown>>

/** Values that ask for the default behaviour, so neither the model nor its engine has to support the parameter. */
const isDefault: Readonly<Record<string, (value: unknown, request: Request) => boolean>> = {
  n: (value) => value === 1,
  // If all candidates are returned, the best of them are all of them.
  best_of: (value, { n }) => value === (n ?? 1),
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
  // Without tools, there is nothing to choose from. With tools, the model would call them.
  tool_choice: (value, { tools }) => value === 'auto' || (value === 'none' && (!tools || isEmptyArray(tools))),
  parallel_tool_calls: (value) => value === true,
  logit_bias: (value) => Object.keys(value as object).length === 0,
  quality: (value) => value === 'auto',
  background: (value) => value === 'auto',
  response_format: (value) => (value as { type?: unknown }).type === 'text',
}

/**
 * The parameters of a request that the model supports. Throws for one that would change the output and that the model
 * does not list, or that its engine does not support.
 */
export function acceptedParameters(
  request: Request,
  known: Readonly<Record<string, unknown>>,
  required: ReadonlySet<string>,
  model: Model,
  support: SupportByName,
): ReadonlySet<string> {
  const accepted = new Set<string>()
  for (const name in request) {
    const value = request[name]
    if (value === null || value === undefined || !Object.hasOwn(known, name)) continue
    if (alwaysAccepted.has(name) || required.has(name)) continue
    if (model.supportedParameters.includes(name) && support[name] !== 'refused') accepted.add(name)
    else if (!isDefault[name]?.(value, request)) {
      throw new ApiError('unsupported_parameter', `${model.id} does not support the parameter '${name}'.`, {
        param: name,
      })
    }
  }
  return accepted
}

/** How the accepted parameters are sent to the engine. */
export interface ForwardedParameters {
  /** Whether the field is sent as the caller wrote it. */
  keeps(name: string): boolean
  /** The fields to send in place of others, by the engine's names. */
  readonly translated: Request
}

export function forwardedParameters(
  request: Request,
  accepted: ReadonlySet<string>,
  support: SupportByName,
): ForwardedParameters {
  const translated: Record<string, unknown> = {}
  for (const name of accepted) {
    const how = support[name]
    if (typeof how === 'object') translated[how.as] = how.value ? how.value(request[name], request) : request[name]
  }
  return {
    keeps: (name) => accepted.has(name) && (support[name] ?? 'taken') === 'taken' && !Object.hasOwn(translated, name),
    translated,
  }
}

function isEmptyArray(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0
}
