import type { TObject, TSchema } from 'typebox'
import { describeSchema } from '../../shared/json/schema-check.ts'

/** A field of a body or a query as the docs page lists it. */
export interface Field {
  /** From the outermost object, such as `data[].id`. */
  readonly name: string
  readonly isRequired: boolean
  /** What values it takes, in words. */
  readonly type: string
  readonly description: string
}

/** How many levels of nested fields are listed. */
const MAX_DEPTH = 6

type Node = TSchema & {
  readonly description?: string
  readonly anyOf?: readonly TSchema[]
  readonly items?: TSchema
}

/** The fields of an object, each followed by those inside it. */
export function fieldsOf(schema: TSchema, prefix = '', depth = MAX_DEPTH): readonly Field[] {
  if (depth === 0) return []
  const listed = new Map<string, Field>()
  const objects = objectsIn(schema)
  for (const { step, object } of objects) {
    for (const [key, property] of Object.entries<Node>(object.properties)) {
      const name = prefix + (prefix === '' ? '' : `${step}.`) + key
      const field = {
        name,
        isRequired: objects.every((it) => it.object.required?.includes(key)),
        type: describeSchema(property),
        description: property.description ?? '',
      }
      for (const it of [field, ...fieldsOf(property, name, depth - 1)]) {
        const known = listed.get(it.name)
        listed.set(it.name, known ? eitherOf(known, it) : it)
      }
    }
  }
  return [...listed.values()]
}

/** A field that several alternatives of a union have. */
function eitherOf(one: Field, other: Field): Field {
  return {
    ...one,
    type: one.type.split(', or ').includes(other.type) ? one.type : `${one.type}, or ${other.type}`,
  }
}

interface NestedObject {
  /** `[]` for each array around the object. */
  readonly step: string
  readonly object: TObject
}

/** The objects that a schema describes: itself, the items of an array, the alternatives of a union. */
function objectsIn(schema: Node, step = ''): readonly NestedObject[] {
  if ('properties' in schema) return [{ step, object: schema as TObject }]
  if (schema.items) return objectsIn(schema.items, `${step}[]`)
  return schema.anyOf?.flatMap((option) => objectsIn(option, step)) ?? []
}
