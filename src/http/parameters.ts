import type { TSchema } from 'typebox'
import type { Model } from '../core/catalog.ts'
import { ApiError, type ErrorCode } from '../core/errors.ts'
import { check, formatPath, type Problem } from '../core/schema-check.ts'

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

/** Throws the caller's first mistake, with the parameter's name. */
export function requireValid(schema: TSchema, value: unknown): void {
  const problem = check(schema, value)
  if (problem) throw toApiError(problem)
}

export function toApiError(problem: Problem): ApiError {
  const param = formatPath(problem.path)
  switch (problem.kind) {
    case 'missing':
      return new ApiError(
        'missing_required_parameter',
        `Missing required parameter: '${param}' (${problem.expected}).`,
        {
          param,
        },
      )
    case 'type':
      return mistake('invalid_type', param, problem.expected)
    case 'unknown':
      return new ApiError('invalid_value', `Unknown parameter: '${param}'. Allowed: ${problem.expected}.`, { param })
    case 'value':
      return mistake(isContentPart(problem) ? 'unsupported_content' : 'invalid_value', param, problem.expected)
  }
}

export function mistake(code: ErrorCode, param: string, expected: string): ApiError {
  return new ApiError(code, `Invalid '${param}': it must be ${expected}.`, { param })
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

function isContentPart({ path }: Problem): boolean {
  return path[0] === 'messages' && path[2] === 'content' && path.at(-1) === 'type'
}

function isEmptyArray(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0
}
