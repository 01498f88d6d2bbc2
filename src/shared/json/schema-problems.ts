import type { TSchema } from 'typebox'
import { findSchemaProblem, type Path, type SchemaProblem } from './schema-check.ts'

/** The part of a schema that holds other schemas. */
interface Container {
  readonly type?: string
  readonly properties?: Readonly<Record<string, TSchema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | object
  readonly items?: TSchema
}

/**
 * Every problem in the data, while `findSchemaProblem` stops at the first. It looks into objects and arrays one by one,
 * so that a mistake in one of them does not hide a mistake in another.
 */
export function findSchemaProblems(schema: TSchema, value: unknown): readonly SchemaProblem[] {
  const { type, properties, items } = schema as Container
  if (type === 'object' && properties && isObject(value)) {
    const shallow = shallowProblems(schema, properties, value)
    const inside = Object.entries(properties).flatMap(([name, property]) =>
      value[name] === undefined || value[name] === null ? [] : within(name, findSchemaProblems(property, value[name])),
    )
    return [...shallow, ...inside]
  }
  if (type === 'array' && items && Array.isArray(value)) {
    const own = findSchemaProblem({ ...schema, items: {} }, value)
    if (own) return [own]
    return value.flatMap((item, index) => within(index, findSchemaProblems(items, item)))
  }
  const problem = findSchemaProblem(schema, value)
  return problem ? [problem] : []
}

/** Names that are missing or unknown in one object. */
function shallowProblems(
  schema: TSchema,
  properties: Readonly<Record<string, TSchema>>,
  value: Readonly<Record<string, unknown>>,
): readonly SchemaProblem[] {
  const anything = Object.fromEntries(Object.keys(properties).map((name) => [name, {}]))
  const { required = [] } = schema as Container
  const missing = required.flatMap((name) => {
    const problem = findSchemaProblem({ ...schema, required: [name], additionalProperties: true }, pick(value, name))
    return problem?.kind === 'missing' ? [problem] : []
  })
  const unknown = Object.keys(value).flatMap((name) => {
    const problem = findSchemaProblem({ ...schema, properties: anything, required: [] }, pick(value, name))
    return problem?.kind === 'unknown' ? [problem] : []
  })
  return [...missing, ...unknown]
}

function pick(value: Readonly<Record<string, unknown>>, name: string): object {
  return { [name]: value[name] }
}

function within(step: string | number, problems: readonly SchemaProblem[]): readonly SchemaProblem[] {
  return problems.map((problem) => ({ ...problem, path: [step, ...problem.path] satisfies Path }))
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
