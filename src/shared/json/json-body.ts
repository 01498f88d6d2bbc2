import { isUtf8 } from 'node:buffer'
import { ApiError } from '../errors.ts'

/** Free bytes before a body, so that `forwardBody` can put fields there without copying the body. */
export const HEADROOM = 256

const limits: ScanLimits = { depth: 100, values: 250_000, containers: 50_000, names: 10_000 }

const refusals: Readonly<Record<keyof ScanLimits, string>> = {
  depth: `The body is nested deeper than ${limits.depth} levels.`,
  values: `The body has more than ${limits.values} values.`,
  containers: `The body has more than ${limits.containers} objects and arrays.`,
  names: `An object in the body has more than ${limits.names} fields.`,
}

/**
 * The memory charged for a body while it arrives and is parsed, in bytes per byte of the body: the body, the buffer it
 * is copied from when it grows, and its strings, which may take two bytes a character.
 */
const BYTES_PER_BODY_BYTE = 4
/** The memory charged for each value of the parsed tree. */
const BYTES_PER_VALUE = 64

/** The maximum memory needed to read and parse a body. */
export function memoryToParse(bodyBytes: number, values = limits.values): number {
  return (HEADROOM + bodyBytes) * BYTES_PER_BODY_BYTE + values * BYTES_PER_VALUE
}

export interface JsonBody {
  /** The body, after `HEADROOM` free bytes. */
  readonly bytes: Buffer
  readonly scan: Pick<Scan, 'fields'>
  readonly value: Readonly<Record<string, unknown>>
}

/** Refuses a body, which starts after `HEADROOM` free bytes, that would take long to parse or to walk over. */
export function scanJson(bytes: Buffer): Scan {
  if (!isUtf8(bytes.subarray(HEADROOM))) throw new ApiError('invalid_json', 'The body is not valid UTF-8.')
  const scan = scanObject(bytes, HEADROOM, limits)
  if (scan.exceeded) throw new ApiError('invalid_json', refusals[scan.exceeded])
  return scan
}

/** Parses a body that was scanned. */
export function parseJsonObject(bytes: Buffer, scan: Scan): JsonBody {
  const value = parse(bytes.toString('utf8', HEADROOM))
  if (hasRepeatedName(value, scan.names)) throw repeatedName(scan)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ApiError('invalid_json', 'The body must be a JSON object.')
  }
  return { bytes, scan, value: value as Record<string, unknown> }
}

/** Reports the position of the mistake, but not V8's message: it quotes the text, which may be a prompt. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const position = /position (\d+)/.exec((error as Error).message)?.[1] ?? text.length
    throw new ApiError('invalid_json', `The body is not valid JSON (at position ${position}).`)
  }
}

/**
 * Whether an object in the text has the same name twice, however it is escaped: the text has a colon for each
 * name, while the parsed tree keeps only one. The walk stops once all names are found, so anything after the
 * last name (thousands of token ids to embed) costs nothing.
 */
function hasRepeatedName(tree: unknown, names: number): boolean {
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

/** Parsers disagree on which of two equal names wins, and the engine must read what was checked here. */
function repeatedName({ fields }: Scan): ApiError {
  const names = new Set<string>()
  for (const { name } of fields) {
    if (names.has(name)) return new ApiError('invalid_json', `The field "${name.slice(0, 64)}" appears more than once.`)
    names.add(name)
  }
  return new ApiError('invalid_json', 'An object in the body has the same field more than once.')
}

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
interface ScanLimits {
  readonly depth: number
  readonly values: number
  /** Objects and arrays. */
  readonly containers: number
  /** Names in one object. */
  readonly names: number
}

const UNLIMITED: ScanLimits = { depth: Infinity, values: Infinity, containers: Infinity, names: Infinity }

const QUOTE = 0x22
const BACKSLASH = 0x5c
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
        if (depth === 1) valueStart = index + 1
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

/** Up to here, a loop is faster than a call of the native search. */
const NEAR_BYTES = 64

/** The offset just past the closing quote of the string that opens at `open`; the end of the bytes if there is none. */
export function endOfString(bytes: Buffer, open: number): number {
  for (let next = open + 1; ;) {
    const near = Math.min(bytes.length, next + NEAR_BYTES)
    while (next < near) {
      const byte = bytes[next]
      if (byte === QUOTE) return next + 1
      next += byte === BACKSLASH ? 2 : 1
    }
    // In long plain strings (images), the native search is much faster. The loop continues if it finds an escaped
    // quote.
    const quote = bytes.indexOf(QUOTE, next)
    if (quote < 0) return bytes.length
    let slash = quote
    while (slash > next && bytes[slash - 1] === BACKSLASH) slash--
    if ((quote - slash) % 2 === 0) return quote + 1
    next = quote + 1
  }
}

/**
 * The body to send to the engine: the caller's bytes without the fields that `keep` rejects, and with
 * `fields` in front. Nothing is copied: dropped fields become spaces, and the new ones are written into the
 * headroom before the body.
 */
export function forwardBody(
  bytes: Buffer,
  headroom: number,
  scanned: readonly ScannedField[],
  keep: (name: string) => boolean,
  fields: Readonly<Record<string, unknown>>,
): Buffer {
  const kept = blankFields(bytes, scanned, (name) => !keep(name))
  const open = bytes.indexOf(OPEN_BRACE, headroom)
  const added = Buffer.from(JSON.stringify(fields))
  // The closing brace of the new fields becomes the comma before the others.
  const front = kept > 0 && added.length > 2 ? added : added.subarray(0, -1)
  if (front === added) front[front.length - 1] = COMMA
  // The new fields may not fit into the headroom (rewritten messages do not). Only then is the body copied.
  if (front.length > open + 1) return Buffer.concat([front, bytes.subarray(open + 1)])
  const start = open + 1 - front.length
  front.copy(bytes, start)
  return bytes.subarray(start)
}

/**
 * Overwrites fields, each with one comma next to it, with spaces, which JSON allows between tokens. The rest
 * of the object is not moved or copied. Returns how many fields are left.
 */
function blankFields(bytes: Buffer, fields: readonly ScannedField[], drop: (name: string) => boolean): number {
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

const OPEN = Buffer.from('{')
const SEPARATOR = Buffer.from(',')
const CLOSE = Buffer.from('}')

/** A body built here, as if a caller had sent it: its fields are known, so it is neither scanned nor parsed. */
export function madeBody(value: Readonly<Record<string, unknown>>): JsonBody {
  const pieces: Buffer[] = [Buffer.alloc(HEADROOM, 0x20)]
  const fields: ScannedField[] = []
  let end = HEADROOM
  const add = (piece: Buffer): number => {
    pieces.push(piece)
    return (end += piece.length)
  }
  for (const name of Object.keys(value)) {
    if (value[name] === undefined) continue
    const start = add(fields.length === 0 ? OPEN : SEPARATOR)
    const valueStart = add(Buffer.from(`${JSON.stringify(name)}:`))
    fields.push({ name, start, valueStart, end: add(Buffer.from(JSON.stringify(value[name]))) })
  }
  if (fields.length === 0) add(OPEN)
  add(CLOSE)
  return { bytes: Buffer.concat(pieces), scan: { fields }, value }
}
