import type { SlicedWork } from '../sliced-work.ts'
import { PIECE_BYTES, type LargeValue, type Piece, type Scan } from './json-scan.ts'
import { cutInString } from './json-strings.ts'

/**
 * Parses JSON in pieces that the scan has found, each of them with JSON.parse, so that a large body never occupies the
 * event loop for long. It accepts what JSON.parse accepts, except that no object may have the same name twice.
 */
export function* parseInPieces(bytes: Buffer, scan: Scan, pieceBytes = PIECE_BYTES): SlicedWork<unknown> {
  if (scan.malformedAt !== undefined) throw new JsonSyntaxError(scan.malformedAt)
  const [only, ...others] = scan.pieces
  if (only && others.length === 0) return parsePiece(bytes, only.start, only)
  const items = yield* arrayOf(bytes, scan.pieces, pieceBytes)
  // One value, and no comma beside it.
  if (items.length !== 1) throw new JsonSyntaxError(bytes.length)
  return items[0]
}

/** Has no text: what V8 says about JSON that it cannot parse quotes the text, which may be a prompt. */
export class JsonSyntaxError extends Error {
  /** The offset in bytes. */
  readonly at: number
  constructor(at: number) {
    super('invalid JSON')
    this.at = at
  }
}

/** An object in the JSON has the same name twice. */
export class RepeatedNameError extends Error {}

const COMMA = 0x2c
/** Stands for the large value that a piece ends at. */
const PLACEHOLDER = '[]'

function* large(bytes: Buffer, value: LargeValue, pieceBytes: number): SlicedWork<unknown> {
  switch (value.kind) {
    case 'string':
      return yield* textOf(bytes, value, pieceBytes)
    case 'array':
      return yield* arrayOf(bytes, value.pieces, pieceBytes)
    case 'object':
      return yield* objectOf(bytes, value.pieces, pieceBytes)
  }
}

function* arrayOf(bytes: Buffer, pieces: readonly Piece[], pieceBytes: number): SlicedWork<unknown[]> {
  const items: unknown[] = []
  for (const [index, piece] of pieces.entries()) {
    const start = startOfMembers(bytes, pieces, index)
    if (start === undefined) continue
    const some = parsePiece(bytes, start, piece, '[]') as unknown[]
    if (some.length === 0 && hasComma(pieces, index)) throw new JsonSyntaxError(piece.end)
    if (piece.next) some.pop()
    for (const item of some) items.push(item)
    yield
    if (piece.next) items.push(yield* large(bytes, piece.next, pieceBytes))
  }
  return items
}

function* objectOf(bytes: Buffer, pieces: readonly Piece[], pieceBytes: number): SlicedWork<Record<string, unknown>> {
  const object: Record<string, unknown> = {}
  for (const [index, piece] of pieces.entries()) {
    const start = startOfMembers(bytes, pieces, index)
    if (start === undefined) continue
    const some = parsePiece(bytes, start, piece, '{}') as Record<string, unknown>
    const names = Object.keys(some)
    if (names.length === 0 && hasComma(pieces, index)) throw new JsonSyntaxError(piece.end)
    for (const name of names) {
      if (Object.hasOwn(object, name)) throw new RepeatedNameError()
      setOwn(object, name, some[name])
    }
    yield
    if (piece.next) {
      const name = String(JSON.parse(bytes.toString('utf8', piece.nameStart, piece.nameEnd)))
      setOwn(object, name, yield* large(bytes, piece.next, pieceBytes))
    }
  }
  return object
}

/** Where the members of a piece start: after the comma, if a large value comes before them. undefined if it has none. */
function startOfMembers(bytes: Buffer, pieces: readonly Piece[], index: number): number | undefined {
  const { start, end, next } = pieces[index]!
  if (!pieces[index - 1]?.next) return start
  const comma = skipSpace(bytes, start, end)
  if (comma === end && !next) return undefined
  if (comma === end || bytes[comma] !== COMMA) throw new JsonSyntaxError(comma)
  return comma + 1
}

/** Whether a comma comes before or after the members of a piece, so that there must be some. */
function hasComma(pieces: readonly Piece[], index: number): boolean {
  return index > 0 || index < pieces.length - 1
}

function skipSpace(bytes: Buffer, from: number, to: number): number {
  let index = from
  while (index < to && isSpace(bytes[index]!)) index++
  return index
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}

/** With a placeholder for the large value after the piece, JSON.parse sees whether all commas and colons are there. */
function parsePiece(
  bytes: Buffer,
  start: number,
  { end, names, next }: Piece,
  brackets: '[]' | '{}' | '' = '',
): unknown {
  const members = bytes.toString('utf8', start, end)
  const value =
    brackets === ''
      ? parseText(members, start)
      : parseText(brackets[0] + members + (next ? PLACEHOLDER : '') + brackets[1], start - 1)
  if (hasRepeatedName(value, names)) throw new RepeatedNameError()
  return value
}

/** `start` is the offset of the text in the body. */
function parseText(text: string, start: number): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const position = Number(/position (\d+)/.exec((error as Error).message)?.[1] ?? text.length)
    throw new JsonSyntaxError(start + position)
  }
}

/** A long string, decoded part by part. */
function* textOf(bytes: Buffer, { start, end }: LargeValue, pieceBytes: number): SlicedWork<string> {
  const parts: string[] = []
  const last = end - 1
  for (let from = start + 1; from < last;) {
    const to = from + pieceBytes < last ? cutInString(bytes, from, from + pieceBytes) : last
    parts.push(String(parseText(`"${bytes.toString('utf8', from, to)}"`, from - 1)))
    from = to
    yield
  }
  return parts.join('')
}

/** A plain assignment to `__proto__` would change the object's prototype. */
function setOwn(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__') {
    Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
  } else object[name] = value
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
