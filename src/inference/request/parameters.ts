import type { Model } from '../../catalog/model.ts'
import type { Job } from '../../engines/job.ts'
import { ApiError } from '../../shared/errors.ts'
import type { SupportByName } from '../../engines/dialects/parameter-support.ts'
import type { JsonBody } from '../../shared/json/json-body.ts'
import { invalidParameter } from '../../shared/json/schema-check.ts'
import { jsonTokens, sumOf, type TokenEstimate } from '../../shared/tokens/token-estimate.ts'

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

/** Engines put these into the prompt. Whether they read any other parameter as text depends on the chat template. */
const PROMPT_PARAMETERS: ReadonlySet<string> = new Set(['tools', 'response_format'])
/** A parameter up to this size is a setting, such as a temperature, and not text. */
const SETTING_BYTES = 24

/** More than any tools need, and quick to count. */
const MAX_BYTES = 4_194_304

/** Refuses parameters that are too large together. Some engines turn schemas into grammars that are much larger. */
export function requireSmallParameters({ scan }: JsonBody, forwarded: ReadonlySet<string>): void {
  let left = MAX_BYTES
  for (const { name, valueStart, end } of scan.fields) {
    if (!forwarded.has(name)) continue
    left -= end - valueStart
    if (left < 0)
      throw invalidParameter('invalid_value', name, `shorter: parameters may have ${MAX_BYTES} bytes in total`)
  }
}

/**
 * Estimates the parameters that are forwarded besides the messages or the prompt. All of them count for the charge;
 * those that a chat template may leave out do not count for the context check, which must not refuse a request that
 * fits.
 */
export function parameterTokens(
  { bytes, scan }: JsonBody,
  forwarded: ReadonlySet<string>,
  tokenizer: string | undefined,
): TokenEstimate {
  const estimates: TokenEstimate[] = []
  for (const { name, valueStart, end } of scan.fields) {
    const isInPrompt = PROMPT_PARAMETERS.has(name)
    if (!forwarded.has(name) || (!isInPrompt && end - valueStart <= SETTING_BYTES)) continue
    const estimate = jsonTokens(bytes, valueStart, end, tokenizer)
    estimates.push(isInPrompt ? estimate : { ...estimate, likely: 0 })
  }
  return sumOf(estimates)
}

/** The output tokens a request may use: the requested number, or the default as far as the context has room. */
export function allowedOutputTokens(
  model: Model,
  request: {
    /** The parameter that limits the output. */
    readonly name: string
    readonly requested: number | undefined
    readonly fallback: number
    /** The input that has to fit into the context with the output, and the parameter that contains it. */
    readonly input: TokenEstimate
    readonly inputName: string
  },
): number {
  const { name, requested, fallback, inputName } = request
  const { likely: input, charged } = request.input
  if (requested !== undefined && requested > model.maxCompletionTokens) {
    throw invalidParameter(
      'invalid_value',
      name,
      `at most ${model.maxCompletionTokens}, the output limit of ${model.id}`,
    )
  }
  // The default has to fit even if the input is as long as possible. A caller can request more.
  const allowed = requested ?? Math.max(1, Math.min(fallback, model.contextLength - charged))
  if (input + allowed <= model.contextLength) return allowed
  throw new ApiError(
    'context_length_exceeded',
    `This model's maximum context length is ${model.contextLength} tokens, but the request needs about ${input + allowed} (${input} in the ${inputName}, ${allowed} in the completion). Shorten the ${inputName} or lower ${name}.`,
    { param: inputName, tokens: { input, output: allowed, limit: model.contextLength } },
  )
}

/** The tier that a request asks for. Only a model with a batch price sells its idle capacity. */
export function tierOf(requested: 'auto' | 'default' | 'flex' | undefined, model: Model): Job['tier'] {
  if (requested !== 'flex') return 'default'
  if (model.batchPrices !== undefined) return 'flex'
  throw new ApiError(
    'unsupported_value',
    `${model.id} sells no idle capacity. Leave 'service_tier' out, or send "auto" or "default".`,
    { param: 'service_tier' },
  )
}

/** The name of a model in a body. */
export function modelName(body: Readonly<Record<string, unknown>>): string {
  const { model } = body
  if (model === undefined || model === null) {
    throw new ApiError('missing_required_parameter', "Missing required parameter: 'model', the slug of a model.", {
      param: 'model',
    })
  }
  if (typeof model !== 'string') throw invalidParameter('invalid_type', 'model', 'a string, the slug of a model')
  return model
}
