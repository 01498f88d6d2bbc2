import { isUtf8 } from 'node:buffer'
import { ApiError } from '../errors.ts'
import { scanObject, type Scan, type ScanLimits } from './json-scan.ts'

/** Free bytes before a body, so that forward.ts can put fields there without copying the body. */
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
