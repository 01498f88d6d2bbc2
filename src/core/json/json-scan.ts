import { finish, type SlicedWork } from '../sliced-work.ts'
import { findStringEnd } from './json-strings.ts'

/**
 * Finds the fields of a JSON object in its bytes without parsing it. A body that would stall JSON.parse, or a
 * walk over the result, is refused first; any other can be forwarded unchanged except for single fields.
 *
 * It also finds where a large body can be cut into pieces, each of which JSON.parse reads in a moment (json-tree.ts).
 *
 * Malformed input gives a harmless result. Parsing, which comes next, reports the error.
 */
export interface Scan {
  readonly fields: readonly ScannedField[]
  readonly depth: number
  /** Commas and opening brackets: about how many values the parsed tree has. */
  readonly values: number
  /** Objects and arrays. */
  readonly containers: number
  /** How many names all objects have, at every depth, repeated ones included. */
  readonly names: number
  /** The limit that the body exceeds, if any. The scan ends there. */
  readonly exceeded: keyof ScanLimits | undefined
  /** Where brackets do not match, or a string does not end. The scan ends there. */
  readonly malformedAt: number | undefined
  /** The whole text, cut into pieces, as if it were the only item of an array. */
  readonly pieces: readonly Piece[]
}

export interface ScannedField {
  readonly name: string
  /** Offset of the opening quote of the name. */
  readonly start: number
  readonly valueStart: number
  /** Offset just past the value. */
  readonly end: number
}

/** What a body may have at most. */
export interface ScanLimits {
  readonly depth: number
  readonly values: number
  readonly containers: number
  /** Names in one object. */
  readonly names: number
  /** Bytes of one name. */
  readonly nameBytes: number
  /** Bytes of white space, digits and the like between two structural characters or strings. */
  readonly gapBytes: number
}

/** A value too large to be parsed at once. */
export interface LargeValue {
  readonly kind: 'string' | 'array' | 'object'
  /** Offset of the opening quote or bracket. */
  readonly start: number
  /** Offset just past the closing one. */
  readonly end: number
  /** What is between the brackets, in order; empty for a string. */
  readonly pieces: readonly Piece[]
}

/**
 * A part of an array or object. It ends at the large value that comes next; or before a comma of the array or object,
 * or before its closing bracket.
 */
export interface Piece {
  readonly start: number
  readonly end: number
  /** How many names the piece has, at every depth. */
  readonly names: number
  readonly next: LargeValue | undefined
  /** Offsets of the name of `next`, in an object. */
  readonly nameStart: number
  readonly nameEnd: number
}

/** JSON.parse takes less than a millisecond for this many bytes of ordinary JSON. */
export const PIECE_BYTES = 131_072
/** Only the depth is limited, because the scan remembers what is open. */
const HARDLY_LIMITED: ScanLimits = {
  depth: 10_000,
  values: Infinity,
  containers: Infinity,
  names: Infinity,
  nameBytes: Infinity,
  gapBytes: Infinity,
}

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/** 1 for the bytes that the scan looks at. */
const structural = new Uint8Array(256)
for (const byte of [QUOTE, COMMA, COLON, OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE]) structural[byte] = 1

/** An array or object whose end has not been found yet. */
interface OpenContainer {
  isObject: boolean
  start: number
  /** All names in the text before it. */
  namesBefore: number
  /** Names of the object itself. */
  names: number
  /** A colon has come since the last comma: what follows is a value. */
  hasColon: boolean
  /** The latest name; -1 before there is one. */
  nameStart: number
  nameEnd: number
  /** Where the next piece begins, and how many names the text has before that. */
  pieceStart: number
  pieceNames: number
  pieces: Piece[] | undefined
}

/** Scans everything at once. */
export function scanObject(bytes: Buffer, start = 0, pieceBytes = PIECE_BYTES): Scan {
  return finish(scanInSlices(bytes, start, HARDLY_LIMITED, pieceBytes))
}

export function* scanInSlices(
  bytes: Buffer,
  start: number,
  limits: ScanLimits,
  pieceBytes = PIECE_BYTES,
): SlicedWork<Scan> {
  const scanner = openScanner(bytes, start, limits, pieceBytes)
  for (let until = start + pieceBytes; !scanner.scanTo(Math.min(until, bytes.length)); until += pieceBytes) yield
  return scanner.result()
}

function openScanner(bytes: Buffer, start: number, limits: ScanLimits, pieceBytes: number) {
  const fields: ScannedField[] = []
  /** By depth. Kept when a container closes, for the next one at that depth. */
  const open: OpenContainer[] = [emptyContainer()]
  open[0]!.pieceStart = start
  let index = start
  let depth = 0
  let deepest = 0
  let values = 0
  let containers = 0
  let names = 0
  /** The opening quote of a string whose end has not been found, and where to look on; -1 outside a string. */
  let stringStart = -1
  let searchFrom = 0
  let lastStructural = start
  let valueStart = -1
  let exceeded: keyof ScanLimits | undefined
  let malformedAt: number | undefined

  /** Returns true when the scan is over. It may go a little beyond `until`. */
  function scanTo(until: number): boolean {
    let container = open[depth]!
    while (index < until) {
      if (stringStart < 0) {
        index = skipPlain(bytes, index, until)
        if (index - lastStructural > limits.gapBytes) return stop('gapBytes')
        if (index >= until) break
        lastStructural = index
      }
      switch (bytes[index]) {
        case QUOTE: {
          if (stringStart < 0) {
            stringStart = index
            searchFrom = index + 1
          }
          const end = findStringEnd(bytes, searchFrom, until)
          if (end < 0) {
            searchFrom = -end
            return false
          }
          if (end > bytes.length) return malformed(stringStart)
          if (container.isObject && !container.hasColon) {
            if (end - stringStart > limits.nameBytes) return stop('nameBytes')
            container.nameStart = stringStart
            container.nameEnd = end
          } else if (end - stringStart > pieceBytes) {
            const large: LargeValue = { kind: 'string', start: stringStart, end, pieces: [] }
            cutBefore(container, large, names)
          }
          stringStart = -1
          index = end
          lastStructural = end
          continue
        }
        case COLON:
          names++
          if (++container.names > limits.names) return stop('names')
          container.hasColon = true
          if (depth === 1 && container.nameStart >= 0 && valueStart < 0) valueStart = index + 1
          break
        case COMMA:
          if (++values > limits.values) return stop('values')
          if (depth === 1) closeField(index)
          if (index - container.pieceStart > pieceBytes) {
            cut(container, index, undefined, names)
            container.pieceStart = index + 1
          }
          container.hasColon = false
          container.nameStart = -1
          break
        case OPEN_BRACE:
        case OPEN_BRACKET:
          if (++values > limits.values) return stop('values')
          if (++containers > limits.containers) return stop('containers')
          container = enter(bytes[index] === OPEN_BRACE)
          if (depth > deepest) deepest = depth
          if (depth > limits.depth) return stop('depth')
          break
        default:
          // A closing bracket.
          if (depth === 0 || container.isObject !== (bytes[index] === CLOSE_BRACE)) return malformed(index)
          if (depth === 1) closeField(index)
          container = leave(container)
      }
      index++
    }
    if (index < bytes.length) return false
    if (depth > 0) malformedAt = index
    else cut(container, index, undefined, names)
    return true
  }

  function stop(limit: keyof ScanLimits): true {
    exceeded = limit
    return true
  }

  function malformed(at: number): true {
    malformedAt = at
    return true
  }

  function closeField(end: number): void {
    const { nameStart, nameEnd } = open[1]!
    if (valueStart >= 0) fields.push({ name: decodeName(bytes, nameStart, nameEnd), start: nameStart, valueStart, end })
    valueStart = -1
  }

  function enter(isObject: boolean): OpenContainer {
    depth++
    const container = (open[depth] ??= emptyContainer())
    container.isObject = isObject
    container.start = index
    container.namesBefore = names
    container.names = 0
    container.hasColon = false
    container.nameStart = -1
    container.pieceStart = index + 1
    container.pieceNames = names
    container.pieces = undefined
    return container
  }

  function leave(container: OpenContainer): OpenContainer {
    depth--
    const parent = open[depth]!
    if (container.pieces || index + 1 - container.start > pieceBytes) {
      cut(container, index, undefined, names)
      const { isObject, start: from, pieces = [] } = container
      const large: LargeValue = { kind: isObject ? 'object' : 'array', start: from, end: index + 1, pieces }
      cutBefore(parent, large, container.namesBefore)
    }
    return parent
  }

  /** Ends a piece of the container. */
  function cut(container: OpenContainer, end: number, next: LargeValue | undefined, namesSoFar: number): void {
    const { pieceStart, pieceNames, nameStart, nameEnd } = container
    container.pieces ??= []
    container.pieces.push({ start: pieceStart, end, names: namesSoFar - pieceNames, next, nameStart, nameEnd })
    container.pieceNames = namesSoFar
  }

  function cutBefore(container: OpenContainer, large: LargeValue, namesBefore: number): void {
    cut(container, large.start, large, namesBefore)
    container.pieceStart = large.end
    container.pieceNames = names
  }

  return {
    scanTo,
    result: (): Scan => ({
      fields,
      depth: deepest,
      values,
      containers,
      names,
      exceeded,
      malformedAt,
      pieces: open[0]?.pieces ?? [],
    }),
  }
}

function skipPlain(bytes: Buffer, from: number, until: number): number {
  let index = from
  while (index < until && structural[bytes[index]!] === 0) index++
  return index
}

function emptyContainer(): OpenContainer {
  return {
    isObject: false,
    start: 0,
    namesBefore: 0,
    names: 0,
    hasColon: false,
    nameStart: -1,
    nameEnd: -1,
    pieceStart: 0,
    pieceNames: 0,
    pieces: undefined,
  }
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
