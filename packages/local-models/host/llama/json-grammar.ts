import { HostError } from '../runtime/host-error.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../runtime/json-value.ts'
import { integerRange } from './integer-range-grammar.ts'

/**
 * Turns a JSON Schema into a GBNF grammar, so that a model can only write what validates. A keyword that a grammar cannot
 * enforce is refused rather than silently dropped. Annotations (title, description, default, unknown formats) are ignored.
 */
export function jsonSchemaGrammar(schema: JsonValue): string {
  const rules = new Map<string, string>()
  const root = schemaRules(schema, rules)
  return grammarText(root, rules)
}

/** Any JSON object, for `response_format: json_object`. */
export function jsonObjectGrammar(): string {
  return grammarText('object', new Map())
}

const sharedRules = String.raw`
ws ::= | " " | "\n" ( " "{0,12} | "\t"{0,6} )
value ::= object | array | string | number | boolean | null
object ::= "{" ws ( string ":" ws value ( ws "," ws string ":" ws value )* )? ws "}"
array ::= "[" ws ( value ( ws "," ws value )* )? ws "]"
char ::= [^"\\\x00-\x1F\x7F] | "\\" ( ["\\/bfnrt] | "u" [0-9a-fA-F]{4} )
string ::= "\"" char* "\""
integer ::= "-"? ( "0" | [1-9] [0-9]{0,14} )
fraction ::= ( "." [0-9]{1,15} )?
exponent ::= ( [eE] [-+]? [0-9]{1,3} )?
number ::= integer fraction exponent
boolean ::= "true" | "false"
null ::= "null"
date ::= [0-9]{4} "-" ( "0" [1-9] | "1" [0-2] ) "-" ( "0" [1-9] | [1-2] [0-9] | "3" [0-1] )
time ::= ( [01] [0-9] | "2" [0-3] ) ":" [0-5] [0-9] ":" [0-5] [0-9] ( "." [0-9]{3} )? ( "Z" | [-+] ( [01] [0-9] | "2" [0-3] ) ":" [0-5] [0-9] )
uuid ::= [0-9a-f]{8} "-" [0-9a-f]{4} "-" [0-9a-f]{4} "-" [0-9a-f]{4} "-" [0-9a-f]{12}`

function grammarText(root: string, rules: ReadonlyMap<string, string>): string {
  const own = [...rules].map(([name, body]) => `${name} ::= ${body}`)
  return [`root ::= ${root}`, ...own, sharedRules.trim()].join('\n')
}

const unsupported = [
  'pattern', 'multipleOf', 'not', 'if', 'then', 'else', 'patternProperties', 'propertyNames', 'uniqueItems', 'contains',
  'minProperties', 'maxProperties', 'dependentSchemas', 'dependentRequired', 'unevaluatedProperties',
] // prettier-ignore
const MAX_REPEATS = 1000
/** While a model writes an object, the engine follows every property that may come next. */
const MAX_OPTIONAL = 500
/** The size of a grammar in characters, where each repetition that it spells out counts as one. */
const MAX_SIZE = 1_000_000

/** Returns a rule name or an expression for the whole schema, and adds the rules it needs to `rules`. */
function schemaRules(document: JsonValue, rules: Map<string, string>): string {
  const references = new Map<string, string>()
  let size = 0

  function grow(by: number): void {
    size += by
    if (size > MAX_SIZE) throw refuse(`more rules and repetitions than ${MAX_SIZE} characters of grammar can express`)
  }

  function define(body: string): string {
    grow(body.length)
    const name = `r${rules.size}`
    rules.set(name, body)
    return name
  }

  function repeat(min: number, max: number): string {
    grow(max === Infinity ? min : max)
    return max === Infinity ? `{${min},}` : `{${min},${max}}`
  }

  function visit(schema: JsonValue): string {
    if (schema === true) return 'value'
    if (!isJsonObject(schema)) throw refuse('something other than an object or true as a schema')
    const refused = unsupported.find((keyword) => keyword in schema)
    if (refused) throw refuse(`'${refused}'`)
    if (typeof schema['$ref'] === 'string') return visitReference(schema['$ref'])
    if ('const' in schema) return define(literal(schema['const'] ?? null))
    if (Array.isArray(schema['enum'])) return define(schema['enum'].map(literal).join(' | '))
    const alternatives = schema['anyOf'] ?? schema['oneOf']
    if (Array.isArray(alternatives)) return define(alternatives.map(visit).join(' | '))
    if (Array.isArray(schema['allOf'])) return visit(merge(schema))
    return visitType(schema)
  }

  function visitReference(reference: string): string {
    const known = references.get(reference)
    if (known) return known
    // Defined before it is visited, so that a schema may refer to itself.
    const name = define('')
    references.set(reference, name)
    rules.set(name, visit(resolve(document, reference)))
    return name
  }

  function visitType(schema: JsonObject): string {
    const type = schema['type'] ?? impliedType(schema)
    if (Array.isArray(type)) return define(type.map((one) => visitType({ ...schema, type: one })).join(' | '))
    switch (typeof type === 'string' ? type : undefined) {
      case 'object':
        return visitObject(schema)
      case 'array':
        return visitArray(schema)
      case 'string':
        return visitString(schema)
      case 'integer':
        return visitNumber(schema, 'integer')
      case 'number':
        return visitNumber(schema, 'number')
      case 'boolean':
        return 'boolean'
      case 'null':
        return 'null'
      case undefined:
        return 'value'
      default:
        throw refuse(`the type ${JSON.stringify(type)}`)
    }
  }

  function visitObject(schema: JsonObject): string {
    const properties = isJsonObject(schema['properties']) ? Object.entries(schema['properties']) : []
    const requiredNames = new Set(Array.isArray(schema['required']) ? schema['required'] : [])
    const additional = schema['additionalProperties'] ?? true
    if (properties.length === 0) {
      if (additional === false) return define('"{" ws "}"')
      if (additional === true) return 'object'
      const member = `string ":" ws ${visit(additional)}`
      return define(`"{" ws ( ${member} ( ws "," ws ${member} )* )? ws "}"`)
    }
    const member = ([name, property]: [string, JsonValue]) => define(`${literal(name)} ":" ws ${visit(property)}`)
    const required = properties.filter(([name]) => requiredNames.has(name))
    const others = properties.filter(([name]) => !requiredNames.has(name))
    if (others.length > MAX_OPTIONAL) throw refuse(`more than ${MAX_OPTIONAL} optional properties in one object`)
    const needed = required.map(member)
    const optional = others.map(member)
    const content = needed.length > 0 ? needed.join(' ws "," ws ') + followedBy(optional) : optionalMembers(optional)
    return define(`"{" ws ${content} ws "}"`)
  }

  /** Any of the optional members, in order. Each may be the first; what may follow it is a rule of its own. */
  function optionalMembers(optional: readonly string[]): string {
    const starts: string[] = []
    let rest = ''
    for (const [index, name] of optional.toReversed().entries()) {
      starts.push(name + rest)
      // No member comes before the first.
      if (index < optional.length - 1) rest = ` ${define(followedBy([name]).trim() + rest)}`
    }
    return `( ${starts.toReversed().join(' | ')} )?`
  }

  function visitArray(schema: JsonObject): string {
    const first = Array.isArray(schema['prefixItems']) ? schema['prefixItems'].map(visit) : []
    const item = schema['items'] === false ? undefined : visit(schema['items'] ?? true)
    const { min, max } = bounds(schema, 'minItems', 'maxItems')
    if (first.length > 0) {
      const rest =
        item === undefined ? '' : ` ( ws "," ws ${item} )${repeat(Math.max(0, min - first.length), max - first.length)}`
      return define(`"[" ws ${first.join(' ws "," ws ')}${rest} ws "]"`)
    }
    if (max === 0 || item === undefined) return define('"[" ws "]"')
    const list = `${item} ( ws "," ws ${item} )${repeat(Math.max(0, min - 1), max - 1)}`
    return define(min === 0 ? `"[" ws ( ${list} )? ws "]"` : `"[" ws ${list} ws "]"`)
  }

  function visitString(schema: JsonObject): string {
    const format = typeof schema['format'] === 'string' ? schema['format'] : ''
    switch (format) {
      case 'date':
      case 'time':
      case 'uuid':
        return define(String.raw`"\"" ${format} "\""`)
      case 'date-time':
        return define(String.raw`"\"" date "T" time "\""`)
      default: {
        if (!('minLength' in schema) && !('maxLength' in schema)) return 'string'
        const { min, max } = bounds(schema, 'minLength', 'maxLength')
        return define(String.raw`"\"" char${repeat(min, max)} "\""`)
      }
    }
  }

  function visitNumber(schema: JsonObject, type: 'integer' | 'number'): string {
    const limit = (name: string) => (typeof schema[name] === 'number' ? schema[name] : undefined)
    const [lowExclusive, highExclusive] = [limit('exclusiveMinimum'), limit('exclusiveMaximum')]
    const [low, high] = [limit('minimum') ?? lowExclusive, limit('maximum') ?? highExclusive]
    if (low === undefined && high === undefined) return type
    if (type === 'integer') {
      const min = Math.ceil(low ?? -Infinity) + (low !== undefined && low === lowExclusive ? 1 : 0)
      const max = Math.floor(high ?? Infinity) - (high !== undefined && high === highExclusive ? 1 : 0)
      return define(integerRange(min, max))
    }
    return define(numberRange(low, high, lowExclusive !== undefined || highExclusive !== undefined))
  }

  return visit(document)
}

function followedBy(names: readonly string[]): string {
  return names.map((name) => ` ( ws "," ws ${name} )?`).join('')
}

/** Decimals between whole, non-negative bounds: any fraction above a whole part below the upper bound, or that bound. */
function numberRange(low: number | undefined, high: number | undefined, exclusive: boolean): string {
  if (
    exclusive ||
    !Number.isInteger(low) ||
    low === undefined ||
    low < 0 ||
    (high !== undefined && !Number.isInteger(high))
  ) {
    throw refuse('a range of numbers whose bounds are not whole, inclusive and non-negative')
  }
  const whole = `( ${integerRange(low, high === undefined ? Infinity : high - 1)} ) fraction`
  return high === undefined ? whole : high > low ? `${whole} | "${high}"` : `"${high}"`
}

function bounds(schema: JsonObject, minName: string, maxName: string): { min: number; max: number } {
  const min = typeof schema[minName] === 'number' ? schema[minName] : 0
  const max = typeof schema[maxName] === 'number' ? schema[maxName] : Infinity
  if (min > MAX_REPEATS) throw refuse(`'${minName}' above ${MAX_REPEATS}`)
  return { min, max: max > MAX_REPEATS ? Infinity : max }
}

function merge(schema: JsonObject): JsonObject {
  const { allOf, ...rest } = schema
  const parts = [...(Array.isArray(allOf) ? allOf : []), rest].filter(isJsonObject)
  const all = (name: string) => parts.map((part) => part[name])
  return {
    ...Object.assign({}, ...parts),
    properties: Object.assign({}, ...all('properties').filter(isJsonObject)) as JsonObject,
    required: all('required').flatMap((names) => (Array.isArray(names) ? names : [])),
  }
}

function impliedType(schema: JsonObject): string | undefined {
  if ('properties' in schema || 'additionalProperties' in schema) return 'object'
  return 'items' in schema || 'prefixItems' in schema ? 'array' : undefined
}

function resolve(document: JsonValue, reference: string): JsonValue {
  if (!reference.startsWith('#')) throw refuse(`'$ref' to another document`)
  let place: JsonValue | undefined = document
  for (const step of reference.slice(1).split('/').slice(1)) {
    const key = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')
    place = isJsonObject(place) ? place[key] : Array.isArray(place) ? place[Number(key)] : undefined
  }
  if (place === undefined) throw refuse(`'$ref' ${reference}, which does not exist`)
  return place
}

function literal(value: JsonValue): string {
  const text = JSON.stringify(value)
  return `"${text.replaceAll('\\', String.raw`\\`).replaceAll('"', String.raw`\"`)}"`
}

function refuse(what: string): HostError {
  return new HostError('invalid_value', `The JSON schema uses ${what}. This engine cannot enforce that.`, {
    param: 'response_format',
  })
}
