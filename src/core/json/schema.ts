import type TypeBox from 'typebox'

export type { Static, TInteger, TNull, TObject, TSchema, TString, TUnion } from 'typebox'

/** The builders that our schemas use. */
type Builders = Pick<
  typeof TypeBox,
  | 'Array'
  | 'Boolean'
  | 'Enum'
  | 'Integer'
  | 'Literal'
  | 'Null'
  | 'Number'
  | 'Object'
  | 'Optional'
  | 'Partial'
  | 'String'
  | 'Union'
  | 'Unsafe'
>

type Schema = Readonly<Record<string, unknown>>
type Properties = Readonly<Record<string, Schema>>

const optional = new WeakSet<Schema>()

function asOptional(schema: Schema): Schema {
  const copy = { ...schema }
  optional.add(copy)
  return copy
}

function objectOf(properties: Properties, options?: Schema): Schema {
  const required = Object.keys(properties).filter((name) => !optional.has(properties[name]!))
  return { type: 'object', ...(required.length > 0 ? { required } : {}), properties, ...options }
}

/** Without the options of the object, as TypeBox has it. */
function partial({ properties }: Schema): Schema {
  const all = Object.entries(properties as Properties).map(([name, it]) => [name, asOptional(it)] as const)
  return objectOf(Object.fromEntries(all))
}

const builders = {
  Array: (items: Schema, options?: Schema) => ({ type: 'array', items, ...options }),
  Boolean: (options?: Schema) => ({ type: 'boolean', ...options }),
  Enum: (values: readonly unknown[], options?: Schema) => ({ enum: values, ...options }),
  Integer: (options?: Schema) => ({ type: 'integer', ...options }),
  Literal: (value: unknown, options?: Schema) => ({ type: typeof value, const: value, ...options }),
  Null: (options?: Schema) => ({ type: 'null', ...options }),
  Number: (options?: Schema) => ({ type: 'number', ...options }),
  Object: objectOf,
  Optional: asOptional,
  Partial: partial,
  String: (options?: Schema) => ({ type: 'string', ...options }),
  Union: (schemas: readonly Schema[], options?: Schema) => ({ anyOf: schemas, ...options }),
  Unsafe: (schema: Schema) => schema,
}

/**
 * Builds JSON Schemas whose TypeScript types are TypeBox's. Only its types are used: loading all of it would make every
 * start a tenth of a second longer.
 */
export const Type = builders as unknown as Builders
