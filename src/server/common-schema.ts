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
