import { endOfString } from './json-strings.ts'

/**
 * Finds the fields of a JSON object in its bytes without parsing it, so that a body can be forwarded unchanged except
 * for single fields. It also counts the contents, so that a body that would keep JSON.parse or a walk over the result
 * busy is refused first.
 *
 * Malformed input gives a harmless result. Parsing, which follows, reports the error.
 */
export interface Scan {
  readonly fields: readonly ScannedField[]
  /** Commas and opening brackets: about how many values the parsed tree has. */
  readonly values: number
  /** How many names all objects have, at every depth, repeated ones included. */
  readonly names: number
  /** The limit that the body exceeds, if any. The scan ends there. */
  readonly exceeded: keyof ScanLimits | undefined
}

export interface ScannedField {
  readonly name: string
  /** Offset of the opening quote of the name. */
  readonly start: number
  readonly valueStart: number
  /** Offset just past the value. */
  readonly end: number
}

/** The limits of a body. */
export interface ScanLimits {
  readonly depth: number
  readonly values: number
  /** Objects and arrays. */
  readonly containers: number
  /** Names in one object. */
  readonly names: number
}

const UNLIMITED: ScanLimits = { depth: Infinity, values: Infinity, containers: Infinity, names: Infinity }

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

export function scanObject(bytes: Buffer, start = 0, limits = UNLIMITED): Scan {
  const fields: ScannedField[] = []
  /** Of the objects that are open, from the outermost. */
  const namesAt = [0]
  let depth = 0
  let values = 0
  let containers = 0
  let names = 0
  let exceeded: keyof ScanLimits | undefined
  /** Of the current field of the outermost object; -1 before there is one. */
  let nameStart = -1
  let nameEnd = -1
  let valueStart = -1

  function closeField(end: number): void {
    if (depth !== 1) return
    if (valueStart >= 0) fields.push({ name: decodeName(bytes, nameStart, nameEnd), start: nameStart, valueStart, end })
    nameStart = -1
    valueStart = -1
  }

  for (let index = start; index < bytes.length && exceeded === undefined; index++) {
    switch (bytes[index]!) {
      case QUOTE: {
        const end = endOfString(bytes, index)
        if (depth === 1 && valueStart < 0) {
          nameStart = index
          nameEnd = end
        }
        index = end - 1
        break
      }
      case COLON:
        names++
        namesAt[depth]!++
        if (namesAt[depth]! > limits.names) exceeded = 'names'
        if (depth === 1 && nameStart >= 0 && valueStart < 0) valueStart = index + 1
        break
      case COMMA:
        if (++values > limits.values) exceeded = 'values'
        closeField(index)
        break
      case OPEN_BRACE:
      case OPEN_BRACKET:
        if (++values > limits.values) exceeded = 'values'
        if (++containers > limits.containers) exceeded = 'containers'
        if (++depth > limits.depth) exceeded = 'depth'
        namesAt[depth] = 0
        break
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        closeField(index)
        if (depth > 0) depth--
    }
  }
  return { fields, values, names, exceeded }
}

function decodeName(bytes: Buffer, start: number, end: number): string {
  const raw = bytes.toString('utf8', start + 1, end - 1)
  if (!raw.includes('\\')) return raw
  try {
    return String(JSON.parse(`"${raw}"`))
  } catch {
    return raw
  }
}
