import type { TObject, TSchema } from 'typebox'
import { findSchemaProblem, formatPath } from '../shared/json/schema-check.ts'
import { invalidParameter, toApiError } from '../shared/parameter-errors.ts'

/** Reads the parameters in the schema. Only the first of several values counts, and unknown names are ignored. */
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
  // Every value in a query is text, so there is no such thing as a wrong type.
  throw problem.kind === 'missing'
    ? toApiError(problem)
    : invalidParameter('invalid_value', formatPath(problem.path), problem.expected)
}

function isNumeric(schema: TSchema): boolean {
  return 'type' in schema && schema.type === 'integer'
}
