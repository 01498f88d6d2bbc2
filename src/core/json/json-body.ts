import { isUtf8 } from 'node:buffer'
import { ApiError } from '../errors.ts'
import type { SlicedWork } from '../sliced-work.ts'
import { scanInSlices, type Scan, type ScanLimits } from './json-scan.ts'
import { JsonSyntaxError, parseInPieces, RepeatedNameError } from './json-tree.ts'

/** Free bytes before a body, so that forward.ts can put fields there without copying the body. */
export const HEADROOM = 256

const limits: ScanLimits = {
  depth: 100,
  values: 250_000,
  containers: 50_000,
  names: 10_000,
  nameBytes: 4_194_304,
  gapBytes: 131_072,
}

const refusals: Readonly<Record<keyof ScanLimits, string>> = {
  depth: `The body is nested deeper than ${limits.depth} levels.`,
  values: `The body has more than ${limits.values} values.`,
  containers: `The body has more than ${limits.containers} objects and arrays.`,
  names: `An object in the body has more than ${limits.names} fields.`,
  nameBytes: `The body has a field whose name is longer than ${limits.nameBytes} bytes.`,
  gapBytes: `The body has more than ${limits.gapBytes} bytes of white space or digits in a row.`,
}

/**
 * What a body counts for while it arrives and is parsed, in bytes for each of its own: the body, the buffer it is copied
 * from when it grows, and its strings, which may take two bytes a character.
 */
const BYTES_PER_BODY_BYTE = 4
/** What each value of the parsed tree counts for. */
const BYTES_PER_VALUE = 64

/** The memory that it takes to read and parse a body, at most. */
export function memoryToParse(bodyBytes: number, values = limits.values): number {
  return (HEADROOM + bodyBytes) * BYTES_PER_BODY_BYTE + values * BYTES_PER_VALUE
}

export interface JsonBody {
  /** The body, after `HEADROOM` free bytes. */
  readonly bytes: Buffer
  readonly scan: Pick<Scan, 'fields'>
  readonly value: Readonly<Record<string, unknown>>
}

/** Checks a body that starts after `HEADROOM` free bytes, so that it can be parsed safely. */
export function* scanJson(bytes: Buffer): SlicedWork<Scan> {
  if (!isUtf8(bytes.subarray(HEADROOM))) throw new ApiError('invalid_json', 'The body is not valid UTF-8.')
  const scan = yield* scanInSlices(bytes, HEADROOM, limits)
  if (scan.exceeded) throw new ApiError('invalid_json', refusals[scan.exceeded])
  return scan
}

/** Parses a body that was scanned. */
export function* parseJsonObject(bytes: Buffer, scan: Scan): SlicedWork<JsonBody> {
  const value = yield* parse(bytes, scan)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ApiError('invalid_json', 'The body must be a JSON object.')
  }
  return { bytes, scan, value: value as Record<string, unknown> }
}

function* parse(bytes: Buffer, scan: Scan): SlicedWork<unknown> {
  try {
    return yield* parseInPieces(bytes, scan)
  } catch (error) {
    if (error instanceof RepeatedNameError) throw repeatedName(scan)
    if (!(error instanceof JsonSyntaxError)) throw error
    throw new ApiError('invalid_json', `The body is not valid JSON (at position ${error.at - HEADROOM}).`)
  }
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
