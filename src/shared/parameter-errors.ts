import type { TSchema } from 'typebox'
import { ApiError, type ErrorCode } from './errors.ts'
import { findSchemaProblem, formatPath, type SchemaProblem } from './json/schema-check.ts'

/** Throws the first problem found, with the name of the parameter. */
export function requireValid(schema: TSchema, value: unknown): void {
  const problem = findSchemaProblem(schema, value)
  if (problem) throw toApiError(problem)
}

export function toApiError(problem: SchemaProblem): ApiError {
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
      return invalidParameter('invalid_type', param, problem.expected)
    case 'unknown':
      return new ApiError('invalid_value', `Unknown parameter: '${param}'. Allowed: ${problem.expected}.`, { param })
    case 'value':
      return invalidParameter(isContentPart(problem) ? 'unsupported_content' : 'invalid_value', param, problem.expected)
  }
}

export function invalidParameter(code: ErrorCode, param: string, expected: string): ApiError {
  return new ApiError(code, `Invalid '${param}': it must be ${expected}.`, { param })
}

function isContentPart({ path }: SchemaProblem): boolean {
  return path[0] === 'messages' && path[2] === 'content' && path.at(-1) === 'type'
}
