import { isUtf8 } from 'node:buffer'
import { ApiError } from '../errors.ts'
import { hasRepeatedName, scanObject, type Scan } from './json-scan.ts'

/** Free bytes before a body, so that forward.ts can put fields there without copying the body. */
export const HEADROOM = 256
const MAX_DEPTH = 100
const MAX_VALUES = 250_000

export interface JsonBody {
  /** The body, after `HEADROOM` free bytes. */
  readonly bytes: Buffer
  readonly scan: Scan
  readonly value: Readonly<Record<string, unknown>>
}

/** Checks and parses a body that starts after `HEADROOM` free bytes. It is scanned and parsed once. */
export function parseJsonObject(bytes: Buffer): JsonBody {
  if (!isUtf8(bytes.subarray(HEADROOM))) throw new ApiError('invalid_json', 'The body is not valid UTF-8.')
  const scan = scanObject(bytes, HEADROOM)
  if (scan.depth > MAX_DEPTH) throw new ApiError('invalid_json', `The body is nested deeper than ${MAX_DEPTH} levels.`)
  if (scan.values > MAX_VALUES) throw new ApiError('invalid_json', `The body has more than ${MAX_VALUES} values.`)
  const value = parse(bytes.toString('utf8', HEADROOM))
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ApiError('invalid_json', 'The body must be a JSON object.')
  }
  requireUniqueNames(scan, value)
  return { bytes, scan, value: value as Record<string, unknown> }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    // V8 quotes the text it could not parse. A prompt must not get into an error or a log.
    const position = /position \d+/.exec((cause as Error).message)?.[0]
    throw new ApiError('invalid_json', `The body is not valid JSON${position ? ` (at ${position})` : ''}.`)
  }
}

/** Parsers disagree on which of two equal names wins, and the engine must read what was checked here. */
function requireUniqueNames(scan: Scan, value: unknown): void {
  if (!hasRepeatedName(value, scan.names)) return
  const names = new Set<string>()
  for (const { name } of scan.fields) {
    if (names.has(name)) throw new ApiError('invalid_json', `The field "${name.slice(0, 64)}" appears more than once.`)
    names.add(name)
  }
  throw new ApiError('invalid_json', 'An object in the body has the same field more than once.')
}
