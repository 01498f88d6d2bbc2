import type { TObject, TSchema } from 'typebox'
import { findSchemaProblem, formatPath } from '../core/json/schema-check.ts'
import { invalidParameter, toApiError } from '../core/parameter-errors.ts'

/** Reads the parameters that the schema names. The first of several values counts, and unknown names are ignored. */
export function readQuery(schema: TObject | undefined, text: string): Readonly<Record<string, unknown>> {
  if (!schema) return {}
  const given = new URLSearchParams(text)
  const values: Record<string, unknown> = {}
  for (const [name, property] of Object.entries(schema.properties)) {
    const value = given.get(name)
    if (value !== null) values[name] = isNumeric(property) ? Number(value) : value
  }
  const problem = findSchemaProblem(schema, values)
  if (!problem) return values
  // Everything in a query is text, so there is no such thing as a wrong type.
  throw problem.kind === 'missing'
    ? toApiError(problem)
    : invalidParameter('invalid_value', formatPath(problem.path), problem.expected)
}

function isNumeric(schema: TSchema): boolean {
  return 'type' in schema && schema.type === 'integer'
}
