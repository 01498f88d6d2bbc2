import { EngineError, invalidValue } from '../runtime/engine-model.ts'
import type { JsonObject } from '../runtime/engine-model.ts'

/** Typed reading of request bodies: `null` means absent, a wrong type is a 400 that names the field. */
export type Fields = Record<string, unknown>

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function optionalString(fields: Fields, name: string): string | undefined {
  return optional(fields, name, 'a string', (value): value is string => typeof value === 'string')
}

export function optionalNumber(fields: Fields, name: string): number | undefined {
  return optional(fields, name, 'a number', (value): value is number => Number.isFinite(value))
}

export function optionalInteger(fields: Fields, name: string, min: number, max: number): number | undefined {
  const value = optional(fields, name, 'an integer', (value): value is number => Number.isSafeInteger(value))
  if (value !== undefined && (value < min || value > max)) {
    throw invalidValue(name, `'${name}' must be between ${min} and ${max}.`)
  }
  return value
}

export function optionalBoolean(fields: Fields, name: string): boolean | undefined {
  return optional(fields, name, 'a boolean', (value): value is boolean => typeof value === 'boolean')
}

export function optionalObject(fields: Fields, name: string): JsonObject | undefined {
  return optional(fields, name, 'an object', (value): value is JsonObject => isObject(value))
}

export function optionalArray(fields: Fields, name: string): unknown[] | undefined {
  return optional(fields, name, 'an array', (value): value is unknown[] => Array.isArray(value))
}

export function requiredString(fields: Fields, name: string): string {
  return required(optionalString(fields, name), name)
}

export function requiredArray(fields: Fields, name: string): unknown[] {
  return required(optionalArray(fields, name), name)
}

export function required<T>(value: T | undefined, name: string): T {
  if (value === undefined) {
    throw new EngineError(400, 'missing_required_parameter', `Missing required parameter: '${name}'.`, name)
  }
  return value
}

function optional<T>(fields: Fields, name: string, what: string, fits: (value: unknown) => value is T): T | undefined {
  const value = fields[name]
  if (value === undefined || value === null) return undefined
  if (!fits(value)) throw new EngineError(400, 'invalid_type', `'${name}' must be ${what}.`, name)
  return value
}
