import type { Schema } from '../schema-samples.ts'
import type { Chance } from './chance.ts'

/** JSON text that no JavaScript value would be written as: numbers out of range, names given twice, deep nesting. */
class RawJson {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

const oddTexts = [
  '',
  ' ',
  '\0',
  'x\0y',
  '\ud800',
  'a\udfffb',
  '🙂',
  'e\u0301',
  '\u2028',
  '\u202e',
  '\ufeff',
  '\r\n\r\n',
  '"',
  '\\',
  '{}',
  'null',
  'NaN',
  '-1',
  '1e400',
  '__proto__',
  'constructor',
  'hasOwnProperty',
  '../../etc/passwd',
  '%00',
  'data:',
  'data:image/png;base64,',
  'data:image/png;base64,!!!!',
  'data: [DONE]\n\n',
  "'; DROP TABLE ledger; --",
  '2026-13',
  'x'.repeat(300),
  'ß'.repeat(2000),
] as const

const oddNumbers = [
  0,
  -0,
  -1,
  1,
  0.5,
  -1.5,
  1e-320,
  1e21,
  1e308,
  -1e308,
  2 ** 31,
  2 ** 32,
  2 ** 53,
  2 ** 63,
  -(2 ** 63),
]

const oddJson = [
  '1e999',
  '-1e999',
  '1E+2',
  '-0.0e-0',
  '123456789012345678901234567890',
  '{"__proto__":{"isAdmin":true}}',
  '{"constructor":{"prototype":{"x":1}}}',
  '{"a":1,"a":2}',
  '{"a":{"b":[{"c":1,"c":1}]}}',
  '{"":""}',
  '"\\u0000\\ud800\\uDFFF"',
  '"\\/\\b\\f"',
  '[[],[[]],{}]',
  '[1,"1",null,true,{}]',
  '['.repeat(60) + ']'.repeat(60),
  '{"a":'.repeat(99) + '1' + '}'.repeat(99),
  '['.repeat(101) + ']'.repeat(101),
] as const

export function oddText(chance: Chance): string {
  return chance.is(0.01) ? chance.pick(['y', 'é', '🙂']).repeat(10_000) : chance.pick(oddTexts)
}

export function oddValue(chance: Chance): unknown {
  switch (chance.below(6)) {
    case 0:
      return oddText(chance)
    case 1:
      return chance.pick(oddNumbers)
    case 2:
      return chance.pick([null, true, false])
    case 3:
      return new RawJson(chance.pick(oddJson))
    case 4:
      return chance.pick([[], {}, [null], [[]], [''], { x: null }])
    default:
      return Array.from({ length: chance.below(5) }, () => oddText(chance))
  }
}

/** JSON text, with raw pieces as they are. */
export function jsonText(value: unknown): string {
  if (value instanceof RawJson) return value.text
  if (Array.isArray(value)) return `[${value.map(jsonText).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const fields = Object.entries(value).filter(([, it]) => it !== undefined)
  return `{${fields.map(([name, it]) => `${JSON.stringify(name)}:${jsonText(it)}`).join(',')}}`
}

/** A value that the schema accepts, with some of the optional fields. */
export function valueFor(schema: Schema, chance: Chance): unknown {
  if (schema.anyOf) return valueFor(chance.pick(schema.anyOf), chance)
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return chance.pick(schema.enum)
  const { minimum = schema.exclusiveMinimum ?? 0, maximum = 4096 } = schema
  switch (schema.type) {
    case 'string':
      return schema.pattern
        ? chance.pick(['auto', '512x512', 'get_weather', 'en'])
        : chance.pick(['x', 'A weir', 'ü🙂'])
    case 'integer':
      return chance.pick([Math.max(minimum, 1), Math.min(maximum, Math.max(minimum, 0) + chance.below(4))])
    case 'number':
      return Math.min(maximum, Math.max(minimum, chance.pick([0, 0.5, 1])))
    case 'boolean':
      return chance.is(0.5)
    case 'array':
      return Array.from({ length: Math.max(schema.minItems ?? 0, chance.below(3)) }, () =>
        valueFor(schema.items ?? {}, chance),
      )
    default:
      return Object.fromEntries(
        Object.entries(schema.properties ?? {})
          .filter(([name]) => schema.required?.includes(name) || chance.is(0.15))
          .map(([name, property]) => [name, valueFor(property, chance)]),
      )
  }
}

/** A copy of the value with one part of it changed: replaced, removed, wrapped, repeated, or with more beside it. */
export function changed(value: unknown, chance: Chance): unknown {
  const isDeeper = typeof value === 'object' && value !== null && !(value instanceof RawJson) && chance.is(0.8)
  if (!isDeeper) return changedHere(value, chance)
  if (Array.isArray(value)) {
    if (value.length === 0) return [oddValue(chance)]
    const at = chance.below(value.length)
    if (chance.is(0.1)) return value.toSpliced(at, 1)
    if (chance.is(0.1)) return [...value, ...value]
    return value.with(at, changed(value[at], chance))
  }
  const fields = Object.entries(value)
  if (fields.length === 0 || chance.is(0.1)) return { ...value, [oddText(chance)]: oddValue(chance) }
  const [name, field] = chance.pick(fields)
  if (chance.is(0.1)) return Object.fromEntries(fields.filter(([other]) => other !== name))
  // Another field's value, of the right form for that one.
  if (chance.is(0.1)) return { ...value, [name]: chance.pick(fields)[1] }
  return Object.fromEntries(fields.map(([it, other]) => [it, it === name ? changed(field, chance) : other]))
}

function changedHere(value: unknown, chance: Chance): unknown {
  switch (chance.below(8)) {
    case 0:
      return [value]
    case 1:
      return { value }
    case 2:
      return typeof value === 'number' ? String(value) : oddValue(chance)
    case 3:
      return typeof value === 'number' ? -value : oddValue(chance)
    case 4:
      return typeof value === 'string' ? value + oddText(chance) : oddValue(chance)
    case 5:
      return typeof value === 'number' ? value * 1e9 : null
    default:
      return oddValue(chance)
  }
}

/** Bytes with some of them changed, doubled, left out or cut off. */
export function changedBytes(bytes: Buffer, chance: Chance): Buffer {
  let result = Buffer.from(bytes)
  for (let changes = 1 + chance.below(3); changes > 0; changes--) {
    const at = chance.below(result.length + 1)
    const length = Math.min(chance.pick([1, 1, 2, 8]), result.length - at)
    switch (chance.below(6)) {
      case 0:
        result = result.subarray(0, at)
        break
      case 1:
        result = Buffer.concat([result.subarray(0, at), result.subarray(at + length)])
        break
      case 2:
        result = Buffer.concat([result.subarray(0, at + length), result.subarray(at)])
        break
      case 3:
        result = Buffer.concat([result.subarray(0, at), Buffer.from([chance.below(256)]), result.subarray(at)])
        break
      case 4:
        result = Buffer.concat([
          result.subarray(0, at),
          Buffer.from(
            chance.pick(['{', '}', '[', ']', '"', ',', ':', '\\', '\0', '\r\n', '\xff', '--', 'null']),
            'latin1',
          ),
          result.subarray(at),
        ])
        break
      default:
        result = Buffer.from(result)
        if (at < result.length) result[at] = chance.below(256)
    }
  }
  return result
}
