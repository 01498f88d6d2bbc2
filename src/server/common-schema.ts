import { Type, type TNull, type TSchema, type TUnion } from 'typebox'
import { errorTable } from '../shared/errors.ts'

/** Schemas that both APIs use. */

/** For content that is text, but not JSON. */
export const textSchema = Type.String()

/** In the body of a request. */
export const workspaceName = Type.String({
  minLength: 1,
  maxLength: 200,
  description: 'The name or id of a workspace.',
})

/** For content that is bytes. */
export const binarySchema = Type.Unsafe<unknown>({ type: 'string', format: 'binary' })

export function nullable<Schema extends TSchema>(schema: Schema, description?: string): TUnion<[Schema, TNull]> {
  return Type.Union([schema, Type.Null()], description === undefined ? {} : { description })
}

export function listSchema<Item extends TSchema>(item: Item) {
  return Type.Object({ object: Type.Literal('list'), data: Type.Array(item) })
}

/** The slug of a model, and a time, in examples. */
export const EXAMPLE_MODEL = 'qwen/qwen2.5-coder-0.5b-instruct'
export const EXAMPLE_TIME = '2026-11-15T22:04:05.000Z'

/** The parts of a schema that its description and its example are made from. `expected` and `example` are our own. */
export interface SchemaParts {
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly properties?: Readonly<Record<string, TSchema>>
  readonly required?: readonly string[]
  readonly items?: TSchema
  readonly anyOf?: readonly TSchema[]
  readonly expected?: string
  readonly example?: unknown
}

const plainest: Readonly<Record<string, unknown>> = { string: '', integer: 0, number: 0, boolean: false }

/**
 * An example of what a schema describes: the `example` of each field, or the plainest value of its type, which is null
 * where it may be null. A field that may be left out is in it only if it has an example.
 */
export function exampleOf(schema: TSchema): unknown {
  const { type = '', enum: values, properties, required = [], items, anyOf, ...rest } = schema as SchemaParts
  if (rest.example !== undefined) return rest.example
  if (rest.const !== undefined) return rest.const
  if (items) return [exampleOf(items)]
  if (anyOf) return anyOf.map((it) => (it as SchemaParts).example).find((it) => it !== undefined) ?? null
  if (!properties) return values?.[0] ?? plainest[type] ?? null
  const shown = Object.entries(properties).filter(
    ([name, it]) => required.includes(name) || (it as SchemaParts).example !== undefined,
  )
  return Object.fromEntries(shown.map(([name, it]) => [name, exampleOf(it)]))
}

/** A list that is sent in pages. */
export function pageSchema<Item extends TSchema>(item: Item) {
  return Type.Object({
    object: Type.Literal('list'),
    data: Type.Array(item),
    next: nullable(Type.String(), "Send it as 'before' to go on; null at the end."),
  })
}

/** After a change: the replicas that did not confirm it in time. */
export const unreachedSchema = Type.Array(Type.String(), {
  description: 'Replicas that have not confirmed the change yet. They apply it as soon as they can.',
  example: [],
})

/** The body of every error. */
export const errorSchema = Type.Object({
  error: Type.Object({
    message: Type.String(),
    type: Type.Enum([...new Set(Object.values(errorTable).map(({ type }) => type))]),
    param: nullable(Type.String()),
    code: Type.Enum(Object.keys(errorTable)),
  }),
})
