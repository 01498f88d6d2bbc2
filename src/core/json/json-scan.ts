/**
 * Finds the fields of a JSON object in its bytes without parsing it. A body that would stall JSON.parse, or a
 * walk over the result, is refused first; any other can be forwarded unchanged except for single fields.
 *
 * Malformed input gives a harmless result. JSON.parse, which runs next, reports the error.
 */
export interface ScannedField {
  readonly name: string
  /** Offset of the opening quote of the name. */
  readonly start: number
  readonly valueStart: number
  /** Offset just past the value. */
  readonly end: number
}

export interface Scan {
  readonly fields: readonly ScannedField[]
  readonly depth: number
  /** Commas and opening brackets: about how many values the parsed tree has. */
  readonly values: number
  /** How many names all objects have, at every depth, repeated ones included. */
  readonly names: number
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

export function scanObject(bytes: Buffer, start = 0): Scan {
  const fields: ScannedField[] = []
  let depth = 0
  let deepest = 0
  let values = 0
  let names = 0
  let nameStart = -1
  let nameEnd = -1
  let valueStart = -1
  const closeField = (end: number): void => {
    if (valueStart >= 0) fields.push({ name: decodeName(bytes, nameStart, nameEnd), start: nameStart, valueStart, end })
    nameStart = valueStart = -1
  }
  for (let index = start; index < bytes.length; index++) {
    switch (bytes[index]) {
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
        if (depth === 1 && nameStart >= 0 && valueStart < 0) valueStart = index + 1
        break
      case COMMA:
        values++
        if (depth === 1) closeField(index)
        break
      case OPEN_BRACE:
      case OPEN_BRACKET:
        values++
        depth++
        if (depth > deepest) deepest = depth
        break
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        if (depth === 1) closeField(index)
        depth--
        break
      default:
    }
  }
  return { fields, depth: deepest, values, names }
}

/**
 * Whether an object in the text has the same name twice, however it is escaped: the text has a colon for each
 * name, while the parsed tree keeps only one. The walk stops once all names are found, so anything after the
 * last name (thousands of token ids to embed) costs nothing.
 */
export function hasRepeatedName(tree: unknown, names: number): boolean {
  let missing = names
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    if (Array.isArray(value)) {
      for (const item of value) {
        if (missing === 0) return
        visit(item)
      }
      return
    }
    const object = value as Readonly<Record<string, unknown>>
    for (const _ in object) missing--
    if (missing > 0) for (const name in object) visit(object[name])
  }
  visit(tree)
  return missing > 0
}

/** Offset just past the closing quote. Long strings (images) use the native search. */
export function endOfString(bytes: Buffer, open: number): number {
  const near = Math.min(bytes.length, open + 64)
  for (let index = open + 1; index < near; index++) {
    if (bytes[index] === BACKSLASH) index++
    else if (bytes[index] === QUOTE) return index + 1
  }
  // The native search may start inside an escape, so the backslashes before each quote are counted.
  for (let quote = bytes.indexOf(QUOTE, open + 1); quote >= 0; quote = bytes.indexOf(QUOTE, quote + 1)) {
    let slash = quote
    while (bytes[slash - 1] === BACKSLASH) slash--
    if ((quote - slash) % 2 === 0) return quote + 1
  }
  return bytes.length
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

/**
 * Overwrites fields, each with one comma next to it, with spaces, which JSON allows between tokens. The rest
 * of the object is not moved or copied. Returns how many fields are left.
 */
export function blankFields(bytes: Buffer, fields: readonly ScannedField[], drop: (name: string) => boolean): number {
  let kept = 0
  for (const field of fields) {
    if (!drop(field.name)) {
      kept++
      continue
    }
    // Drop the comma before the field if any field was kept so far, else the one after it.
    let from = field.start
    let to = field.end
    if (kept > 0) from = bytes.lastIndexOf(COMMA, field.start)
    else if (bytes[to] === COMMA) to++
    bytes.fill(0x20, from, to)
  }
  return kept
}
