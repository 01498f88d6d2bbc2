import type { TSchema } from 'typebox'
import { ApiError, type ErrorCode } from '../errors.ts'

/**
 * Checks data against the subset of JSON Schema that our schemas use, and reports problems in words that a person can
 * act on. `null` counts as absent. One walk, no copies; it stops at the first problem.
 */
export interface SchemaProblem {
  readonly path: Path
  readonly kind: 'missing' | 'type' | 'value' | 'unknown'
  /** What would be right: "an integer from 1 to 128". For `unknown`: the allowed keys. */
  readonly expected: string
}

export type Path = readonly (string | number)[]

type JsonType = 'string' | 'number' | 'integer' | 'boolean' | 'array' | 'object' | 'null'

interface Node {
  readonly type?: JsonType
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Node[]
  readonly properties?: Readonly<Record<string, Node>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Node
  readonly maxProperties?: number
  readonly propertyNames?: { readonly maxLength: number }
  readonly items?: Node
  readonly minItems?: number
  readonly maxItems?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  /** Describes a pattern in words. */
  readonly expected?: string
}

export function findSchemaProblem(schema: TSchema, value: unknown): SchemaProblem | undefined {
  return visit(schema, value)
}

/** The names in a path are the caller's own and may have any length. */
const SHOWN_NAME_LENGTH = 100

export function formatPath(path: Path): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else
      text +=
        (text === '' ? '' : '.') + (step.length > SHOWN_NAME_LENGTH ? `${step.slice(0, SHOWN_NAME_LENGTH)}…` : step)
  }
  return text
}

/** The path of a problem is relative to the value. The caller prepends the name of the value. */
function visit(node: Node, value: unknown): SchemaProblem | undefined {
  if (node.anyOf) return visitAny(node.anyOf, value)
  if (node.const !== undefined || node.enum) return visitEnum(node, value)
  switch (node.type) {
    case 'string':
      return typeof value === 'string' ? visitString(node, value) : wrongType(node)
    case 'boolean':
      return typeof value === 'boolean' ? undefined : wrongType(node)
    case 'integer':
      if (typeof value !== 'number' || !Number.isInteger(value)) return wrongType(node)
      return inRange(node, value) ? undefined : wrongValue(node)
    case 'number':
      if (typeof value !== 'number' || !Number.isFinite(value)) return wrongType(node)
      return inRange(node, value) ? undefined : wrongValue(node)
    case 'array':
      return Array.isArray(value) ? visitArray(node, value) : wrongType(node)
    case 'object':
      return isObject(value) ? visitObject(node, value) : wrongType(node)
    default:
      return undefined
  }
}

function visitString(node: Node, value: string): SchemaProblem | undefined {
  if (value.length < (node.minLength ?? 0)) return wrongValue(node)
  if (node.maxLength !== undefined && value.length > node.maxLength) return wrongValue(node)
  if (node.pattern !== undefined && !pattern(node.pattern).test(value)) return wrongValue(node)
  return undefined
}

function visitArray(node: Node, value: readonly unknown[]): SchemaProblem | undefined {
  if (value.length < (node.minItems ?? 0)) return wrongValue(node)
  if (node.maxItems !== undefined && value.length > node.maxItems) return wrongValue(node)
  if (!node.items) return undefined
  for (let index = 0; index < value.length; index++) {
    const problem = visit(node.items, value[index])
    if (problem) return within(index, problem)
  }
  return undefined
}

function visitObject(node: Node, value: Readonly<Record<string, unknown>>): SchemaProblem | undefined {
  const properties = node.properties ?? {}
  for (const name of node.required ?? []) {
    if (value[name] === undefined || value[name] === null) {
      return { path: [name], kind: 'missing', expected: describeSchema(properties[name] ?? {}) }
    }
  }
  let count = 0
  for (const name in value) {
    const item = value[name]
    if (node.maxProperties !== undefined && ++count > node.maxProperties) return wrongValue(node)
    if (node.propertyNames && name.length > node.propertyNames.maxLength) return wrongValue(node)
    if (item === null || item === undefined) continue
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (property) {
      const problem = visit(property, item)
      if (problem) return within(name, problem)
    } else if (node.additionalProperties === false) {
      return { path: [name], kind: 'unknown', expected: Object.keys(properties).join(', ') }
    } else if (typeof node.additionalProperties === 'object') {
      const problem = visit(node.additionalProperties, item)
      if (problem) return within(name, problem)
    }
  }
  return undefined
}

function visitEnum(node: Node, value: unknown): SchemaProblem | undefined {
  const allowed = node.enum ?? [node.const]
  if (allowed.includes(value)) return undefined
  return typeof value === typeof allowed[0] ? wrongValue(node) : wrongType(node)
}

/** Picks the alternative that the caller most likely meant, so that the message is about that one. */
function visitAny(options: readonly Node[], value: unknown): SchemaProblem | undefined {
  const meant = withSameItems(
    options.filter((option) => sameType(option, value)),
    value,
  )
  if (meant.length === 0) return { path: [], kind: 'type', expected: describeAll(options) }
  if (isObject(value) && meant.length > 1) {
    const tag = tagOf(meant)
    const tagged = meant.find((option) => option.properties?.[tag]?.const === value[tag])
    if (tagged) return visit(tagged, value)
    const tags = meant.map((option) => String(option.properties?.[tag]?.const)).join(', ')
    const kind = value[tag] === undefined ? 'missing' : 'value'
    return { path: [tag], kind, expected: `one of ${tags}` }
  }
  let first: SchemaProblem | undefined
  for (const option of meant) {
    const problem = visit(option, value)
    if (!problem) return undefined
    first ??= problem
  }
  if (meant.length === 1 || Array.isArray(value)) return first
  return { path: [], kind: 'value', expected: describeAll(options) }
}

/** The array alternatives whose items have the type of the first item, or all if there are none or there is no item. */
function withSameItems(options: readonly Node[], value: unknown): readonly Node[] {
  if (!Array.isArray(value)) return options
  const meant = options.filter(({ items }) => items && sameType(items, value[0]))
  return meant.length > 0 ? meant : options
}

/** The property whose value distinguishes the alternatives. */
function tagOf(options: readonly Node[]): string {
  for (const name in options[0]?.properties) {
    if (options.every((option) => option.properties?.[name]?.const !== undefined)) return name
  }
  return 'type'
}

function sameType(node: Node, value: unknown): boolean {
  const sample = node.const ?? node.enum?.[0]
  if (sample !== undefined) return typeof sample === typeof value
  if (node.type === 'array') return Array.isArray(value)
  if (node.type === 'object') return isObject(value)
  if (node.type === 'integer') return typeof value === 'number'
  return node.type === undefined || node.type === typeof value
}

function inRange(node: Node, value: number): boolean {
  return (
    value >= (node.minimum ?? -Infinity) &&
    value <= (node.maximum ?? Infinity) &&
    value > (node.exclusiveMinimum ?? -Infinity)
  )
}

function wrongType(node: Node): SchemaProblem {
  return { path: [], kind: 'type', expected: describeSchema(node) }
}

function wrongValue(node: Node): SchemaProblem {
  return { path: [], kind: 'value', expected: describeSchema(node) }
}

function within(step: string | number, problem: SchemaProblem): SchemaProblem {
  return { ...problem, path: [step, ...problem.path] }
}

/** Describes a schema in words. */
export function describeSchema(node: TSchema | Node): string {
  const it = node as Node
  if (it.expected) return it.expected
  if (it.anyOf) return describeAll(it.anyOf)
  if (it.enum) return `one of ${it.enum.map(String).join(', ')}`
  if (it.const !== undefined) return JSON.stringify(it.const)
  switch (it.type) {
    case 'integer':
    case 'number': {
      const noun = it.type === 'integer' ? 'an integer' : 'a number'
      if (it.exclusiveMinimum !== undefined) return `${noun} above ${it.exclusiveMinimum}`
      if (it.minimum !== undefined && it.maximum !== undefined) return `${noun} from ${it.minimum} to ${it.maximum}`
      if (it.minimum !== undefined) return `${noun} of at least ${it.minimum}`
      return noun
    }
    case 'string':
      if (it.maxLength !== undefined) return `a string of ${it.minLength ?? 0} to ${it.maxLength} characters`
      return it.minLength ? 'a non-empty string' : 'a string'
    case 'array':
      if (it.maxItems !== undefined) return `an array of ${it.minItems ?? 0} to ${it.maxItems} items`
      return it.minItems ? 'a non-empty array' : 'an array'
    case 'object':
      return describeObject(it)
    case 'boolean':
      return 'true or false'
    case 'null':
      return 'null'
    default:
      return 'any value'
  }
}

function describeObject({ maxProperties, propertyNames }: Node): string {
  const limits = [
    ...(maxProperties === undefined ? [] : [`at most ${maxProperties} fields`]),
    ...(propertyNames ? [`names of at most ${propertyNames.maxLength} characters`] : []),
  ]
  return limits.length === 0 ? 'an object' : `an object with ${limits.join(' and ')}`
}

function describeAll(options: readonly Node[]): string {
  const constants = options.filter((option) => option.const !== undefined)
  const others = options.filter((option) => option.const === undefined).map(describeSchema)
  if (constants.length > 0) others.unshift(`one of ${constants.map((option) => String(option.const)).join(', ')}`)
  return [...new Set(others)].join(', or ')
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const patterns = new Map<string, RegExp>()

function pattern(source: string): RegExp {
  let compiled = patterns.get(source)
  if (!compiled) patterns.set(source, (compiled = new RegExp(source, 'u')))
  return compiled
}

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
