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

const UNDECIDED = -1
const OVER = -2

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
  const scanner = new Scanner(bytes, start, limits, pieceBytes)
  for (let until = start + pieceBytes; !scanner.scanTo(Math.min(until, bytes.length)); until += pieceBytes) yield
  return scanner.result()
}

/** A class, because one is made for every request, and that many closures would cost more than the scan. */
class Scanner {
  readonly #bytes: Buffer
  readonly #limits: ScanLimits
  readonly #pieceBytes: number
  readonly #fields: ScannedField[] = []
  /** By depth. Kept when a container closes, for the next one at that depth. */
  readonly #open: OpenContainer[]
  #index: number
  #depth = 0
  #deepest = 0
  #values = 0
  #containers = 0
  #names = 0
  /** The opening quote of a string whose end has not been found, and where to look on; -1 outside a string. */
  #stringStart = -1
  #searchFrom = 0
  #lastStructural: number
  /** Of a field of the outermost object; -1 before its colon. */
  #valueStart = -1
  #exceeded: keyof ScanLimits | undefined
  #malformedAt: number | undefined

  constructor(bytes: Buffer, start: number, limits: ScanLimits, pieceBytes: number) {
    this.#bytes = bytes
    this.#limits = limits
    this.#pieceBytes = pieceBytes
    this.#open = [openContainer(false, start - 1, 0)]
    this.#index = start
    this.#lastStructural = start
  }

  /** Returns true when the scan is over. It may go a little beyond `until`. */
  scanTo(until: number): boolean {
    const bytes = this.#bytes
    const limits = this.#limits
    let container = this.#open[this.#depth]!
    let index = this.#index
    while (index < until) {
      if (this.#stringStart < 0) {
        index = skipPlain(bytes, index, until)
        if (index - this.#lastStructural > limits.gapBytes) return this.#stop('gapBytes')
        if (index >= until) break
        this.#lastStructural = index
      }
      switch (bytes[index]) {
        case QUOTE: {
          const end = this.#endOfString(index, until, container)
          if (end < 0) {
            this.#index = index
            return end === OVER
          }
          index = end
          continue
        }
        case COLON:
          this.#names++
          if (++container.names > limits.names) return this.#stop('names')
          container.hasColon = true
          if (this.#depth === 1 && container.nameStart >= 0 && this.#valueStart < 0) this.#valueStart = index + 1
          break
        case COMMA:
          if (++this.#values > limits.values) return this.#stop('values')
          if (this.#depth === 1) this.#closeField(index)
          if (index - container.pieceStart > this.#pieceBytes) {
            cut(container, index, undefined, this.#names)
            container.pieceStart = index + 1
          }
          container.hasColon = false
          container.nameStart = -1
          break
        case OPEN_BRACE:
        case OPEN_BRACKET:
          if (++this.#values > limits.values) return this.#stop('values')
          if (++this.#containers > limits.containers) return this.#stop('containers')
          container = this.#enter(bytes[index] === OPEN_BRACE, index)
          if (this.#depth > limits.depth) return this.#stop('depth')
          break
        default:
          // A closing bracket.
          if (this.#depth === 0 || container.isObject !== (bytes[index] === CLOSE_BRACE)) return this.#malformed(index)
          if (this.#depth === 1) this.#closeField(index)
          container = this.#leave(container, index)
      }
      index++
    }
    this.#index = index
    if (index < bytes.length) return false
    if (this.#depth > 0) return this.#malformed(index)
    cut(container, index, undefined, this.#names)
    return true
  }

  result(): Scan {
    return {
      fields: this.#fields,
      depth: this.#deepest,
      values: this.#values,
      containers: this.#containers,
      names: this.#names,
      exceeded: this.#exceeded,
      malformedAt: this.#malformedAt,
      pieces: this.#open[0]?.pieces ?? [],
    }
  }

  #stop(limit: keyof ScanLimits): true {
    this.#exceeded = limit
    return true
  }

  #malformed(at: number): true {
    this.#malformedAt = at
    return true
  }

  /** The end of the string that opens at `start`; UNDECIDED if it is beyond `until`, OVER if the scan ends here. */
  #endOfString(start: number, until: number, container: OpenContainer): number {
    if (this.#stringStart < 0) this.#searchFrom = start + 1
    this.#stringStart = start
    const end = findStringEnd(this.#bytes, this.#searchFrom, until)
    if (end < 0) {
      this.#searchFrom = -end
      return UNDECIDED
    }
    if (end > this.#bytes.length) {
      this.#malformedAt = start
      return OVER
    }
    if (container.isObject && !container.hasColon) {
      if (end - start > this.#limits.nameBytes) {
        this.#exceeded = 'nameBytes'
        return OVER
      }
      container.nameStart = start
      container.nameEnd = end
    } else if (end - start > this.#pieceBytes) {
      this.#cutBefore(container, { kind: 'string', start, end, pieces: [] }, this.#names)
    }
    this.#stringStart = -1
    this.#lastStructural = end
    return end
  }

  #closeField(end: number): void {
    const { nameStart, nameEnd } = this.#open[1]!
    const valueStart = this.#valueStart
    if (valueStart < 0) return
    this.#fields.push({ name: decodeName(this.#bytes, nameStart, nameEnd), start: nameStart, valueStart, end })
    this.#valueStart = -1
  }

  #enter(isObject: boolean, start: number): OpenContainer {
    const depth = ++this.#depth
    if (depth > this.#deepest) {
      this.#deepest = depth
      return (this.#open[depth] = openContainer(isObject, start, this.#names))
    }
    const container = this.#open[depth]!
    container.isObject = isObject
    container.start = start
    container.namesBefore = this.#names
    container.names = 0
    container.hasColon = false
    container.nameStart = -1
    container.pieceStart = start + 1
    container.pieceNames = this.#names
    container.pieces = undefined
    return container
  }

  #leave(container: OpenContainer, index: number): OpenContainer {
    const parent = this.#open[--this.#depth]!
    if (container.pieces || index + 1 - container.start > this.#pieceBytes) {
      cut(container, index, undefined, this.#names)
      const { isObject, start, namesBefore, pieces = [] } = container
      this.#cutBefore(parent, { kind: isObject ? 'object' : 'array', start, end: index + 1, pieces }, namesBefore)
    }
    return parent
  }

  #cutBefore(container: OpenContainer, large: LargeValue, namesBefore: number): void {
    cut(container, large.start, large, namesBefore)
    container.pieceStart = large.end
    container.pieceNames = this.#names
  }
}

/** Ends a piece of the container. */
function cut(container: OpenContainer, end: number, next: LargeValue | undefined, names: number): void {
  const { pieceStart, pieceNames, nameStart, nameEnd } = container
  container.pieces ??= []
  container.pieces.push({ start: pieceStart, end, names: names - pieceNames, next, nameStart, nameEnd })
  container.pieceNames = names
}

function skipPlain(bytes: Buffer, from: number, until: number): number {
  let index = from
  while (index < until && structural[bytes[index]!] === 0) index++
  return index
}

function openContainer(isObject: boolean, start: number, namesBefore: number): OpenContainer {
  return {
    isObject,
    start,
    namesBefore,
    names: 0,
    hasColon: false,
    nameStart: -1,
    nameEnd: -1,
    pieceStart: start + 1,
    pieceNames: namesBefore,
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
