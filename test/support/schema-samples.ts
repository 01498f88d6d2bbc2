import * as fc from 'fast-check'

/** The part of JSON Schema that our OpenAPI documents use for request bodies. */
export interface Schema {
  readonly type?: 'string' | 'number' | 'integer' | 'boolean' | 'array' | 'object'
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
  readonly items?: Schema
  readonly minItems?: number
  readonly maxItems?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly format?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
}

/** One field of a request, at any depth, and how to put a value there. */
export interface Field {
  /** As the API names it: messages[0].content */
  readonly path: string
  readonly schema: Schema
  readonly isRequired: boolean
  /** The top-level fields of a request that has this value. */
  around(value: unknown): Readonly<Record<string, unknown>>
}

/** Every field of an object, at any depth. */
export function fieldsOf(schema: Schema): readonly Field[] {
  return inside(schema, '', (value) => value as Record<string, unknown>, true)
}

function inside(schema: Schema, path: string, around: Field['around'], isTop = false): readonly Field[] {
  if (schema.anyOf) {
    const items = schema.anyOf.flatMap((option) => option.items ?? [])
    // With several kinds of lists, an item is only wrong if it fits none of them.
    const lists = items.length > 1 ? [{ items: { anyOf: items } }] : schema.anyOf.filter((option) => option.items)
    const others = schema.anyOf.filter((option) => !option.items)
    return [...lists, ...others].flatMap((option) => inside(option, path, around))
  }
  if (schema.items) return field(schema.items, `${path}[0]`, true, (value) => around([value]))
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const isRequired = schema.required?.includes(name) ?? false
    const place = path === '' ? name : `${path}.${name}`
    // At the top level, the other required fields are already in the request.
    const others = isTop ? {} : (sample(schema) as object)
    return field(property, place, isRequired, (value) => around({ ...others, [name]: value }))
  })
}

function field(schema: Schema, path: string, isRequired: boolean, around: Field['around']): readonly Field[] {
  return [{ path, schema, isRequired, around }, ...inside(schema, path, around)]
}

/** The smallest value that a schema accepts. */
export function sample(schema: Schema): unknown {
  if (schema.anyOf?.[0]) return sample(schema.anyOf[0])
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  switch (schema.type) {
    case 'string':
      return schema.pattern?.includes('auto') ? 'auto' : 'x'
    case 'integer':
    case 'number':
      return schema.minimum ?? 1
    case 'boolean':
      return false
    case 'array':
      return schema.minItems && schema.items ? [sample(schema.items)] : []
    default:
      return Object.fromEntries((schema.required ?? []).map((name) => [name, sample(schema.properties?.[name] ?? {})]))
  }
}

const byType: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  string: fc.string(),
  number: fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true })),
  boolean: fc.boolean(),
  array: fc.array(fc.jsonValue({ maxDepth: 2 }), { maxLength: 4 }),
  object: fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4 }),
}

/** Values of every type that the schema does not accept. */
export function wrongTypes(schema: Schema): fc.Arbitrary<unknown> {
  const taken = typesOf(schema)
  const wrong = Object.entries(byType).flatMap(([type, values]) => (taken.has(type) ? [] : [values]))
  return taken.has('number') && !isFraction(schema) ? fc.oneof(...wrong, fc.constant(1.5)) : fc.oneof(...wrong)
}

function typesOf(schema: Schema): ReadonlySet<string> {
  if (schema.anyOf) return new Set(schema.anyOf.flatMap((option) => [...typesOf(option)]))
  const literal = schema.const ?? schema.enum?.[0]
  if (literal !== undefined) return new Set([typeof literal])
  return new Set(schema.type ? [schema.type === 'integer' ? 'number' : schema.type] : Object.keys(byType))
}

function isFraction(schema: Schema): boolean {
  return schema.type === 'number' || (schema.anyOf?.some(isFraction) ?? false)
}

/** Values of the right type that are out of bounds, for each bound. */
export function outOfBounds(schema: Schema): readonly unknown[] {
  const { minimum, maximum, exclusiveMinimum, minLength, maxLength, minItems, maxItems, items } = schema
  const wrong: unknown[] = []
  if (minimum !== undefined) wrong.push(minimum > -(2 ** 53) ? minimum - 1 : minimum * 2, -1e300)
  if (maximum !== undefined) wrong.push(maximum < 2 ** 53 ? maximum + 1 : maximum * 2, 1e300)
  if (exclusiveMinimum !== undefined) wrong.push(exclusiveMinimum)
  if (minLength) wrong.push('')
  if (maxLength !== undefined) wrong.push('x'.repeat(maxLength + 1))
  if (minItems) wrong.push([])
  if (maxItems !== undefined && items) wrong.push(Array.from({ length: maxItems + 1 }, () => sample(items)))
  if (schema.pattern) wrong.push('', 'not / that', 'x'.repeat(5000))
  if (typeof (schema.const ?? schema.enum?.[0]) === 'string') wrong.push('', 'somethingElse')
  return wrong
}
