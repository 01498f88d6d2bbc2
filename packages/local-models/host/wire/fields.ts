import { HostError, parameterError } from '../runtime/host-error.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../runtime/json-value.ts'

/** Typed access to the fields of a request: `null` counts as absent, and a wrong type is refused by name. */

export function optionalString(fields: JsonObject, name: string): string | undefined {
  return optional(fields, name, 'a string', (value) => typeof value === 'string')
}

export function optionalNumber(fields: JsonObject, name: string): number | undefined {
  return optional(fields, name, 'a number', (value): value is number => Number.isFinite(value))
}

export function optionalInteger(fields: JsonObject, name: string, min: number, max: number): number | undefined {
  const value = optional(fields, name, 'an integer', (value): value is number => Number.isSafeInteger(value))
  if (value !== undefined && (value < min || value > max)) {
    throw parameterError('invalid_value', name, `between ${min} and ${max}`)
  }
  return value
}

export function optionalBoolean(fields: JsonObject, name: string): boolean | undefined {
  return optional(fields, name, 'a boolean', (value) => typeof value === 'boolean')
}

export function optionalObject(fields: JsonObject, name: string): JsonObject | undefined {
  return optional(fields, name, 'an object', isJsonObject)
}

export function optionalArray(fields: JsonObject, name: string): readonly JsonValue[] | undefined {
  return optional(fields, name, 'an array', Array.isArray)
}

export function requiredString(fields: JsonObject, name: string): string {
  return required(optionalString(fields, name), name)
}

export function requiredArray(fields: JsonObject, name: string): readonly JsonValue[] {
  return required(optionalArray(fields, name), name)
}

export function required<T>(value: T | undefined, name: string): T {
  if (value !== undefined) return value
  throw new HostError('missing_required_parameter', `Missing required parameter: '${name}'.`, { param: name })
}

function optional<T extends JsonValue>(
  fields: JsonObject,
  name: string,
  expected: string,
  fits: (value: JsonValue) => value is T,
): T | undefined {
  const value = fields[name]
  if (value === undefined || value === null) return undefined
  if (!fits(value)) throw parameterError('invalid_type', name, expected)
  return value
}
