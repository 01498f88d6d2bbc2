import { isAscii } from 'node:buffer'
import { decodedLength, isBase64, type Base64 } from './base64.ts'
import { scanObject } from './json-scan.ts'

/**
 * An engine's embeddings in the bytes they come in. A full batch is megabytes, and most servers word it as
 * Weir does: so it is looked at on its way through, neither parsed nor kept.
 */
export interface EmbeddingList {
  /**
   * What of the list a chunk brings, from its opening bracket to its closing one; with the first of it all that
   * came before. undefined: not yet, or never, since it is worded otherwise. It throws where the wording changes
   * on the way.
   */
  push(chunk: Buffer): Buffer | undefined
  /** The answer with an empty list in the place of this one; undefined where it is not whole. */
  rest(): unknown
}

const DATA = '"data":['
const EMBEDDING = '"embedding":"'
const FIRST_INDEX = '"index":0'
/** What comes before the list, and around a vector, is never longer. */
const FRAME_BYTES = 1024
/** What comes behind the list is never longer. */
const REST_BYTES = 65_536
/** Fewer are not worth it: they are read whole. */
const WORTH_PASSING_BYTES = 65_536
/** Two show how they are set apart. */
const ITEMS_TO_TRUST = 2
const QUOTE = 0x22
const BACKSLASH = 0x5c

/**
 * `count` vectors in base64, all of one length and in one wording, as programs write them. Each string is known
 * to end where it should, and the first to be base64; what the numbers are is the engine's affair.
 */
export function base64List(count: number): EmbeddingList {
  let held: Buffer[] | undefined = []
  let heldBytes = 0
  let before = ''
  let items: Items | undefined
  let after: Buffer[] = []
  let afterBytes = 0

  function takeUp(bytes: Buffer): Buffer | undefined {
    const start = startOfList(bytes)
    const found = itemsAt(bytes, start + 1, count)
    const end = found?.follow(bytes, start + 1)
    if (end === undefined || (found?.seen() ?? 0) < Math.min(ITEMS_TO_TRUST, count)) return undefined
    before = bytes.toString('utf8', 0, start)
    if (!hasEmptyList(parsed(`${before}[]}`))) return undefined
    items = found
    keepAfter(bytes.subarray(end))
    return bytes.subarray(start, end)
  }

  function keepAfter(bytes: Buffer): void {
    if (bytes.length === 0) return
    after.push(bytes)
    afterBytes += bytes.length
    if (afterBytes > REST_BYTES) throw new RangeError('the engine sent too much behind its embeddings')
  }

  return {
    push(chunk) {
      if (items) {
        const end = items.follow(chunk, 0)
        if (end === undefined) throw new RangeError('the engine changed the wording of its embeddings')
        keepAfter(chunk.subarray(end))
        return chunk.subarray(0, end)
      }
      if (!held) return undefined
      held.push(chunk)
      heldBytes += chunk.length
      if (heldBytes < WORTH_PASSING_BYTES) return undefined
      const bytes = Buffer.concat(held)
      held = undefined
      return takeUp(bytes)
    },
    rest() {
      if (!items?.isComplete()) return undefined
      const rest = parsed(`${before}[]${Buffer.concat(after).toString('utf8')}`)
      return hasEmptyList(rest) ? rest : undefined
    },
  }
}

/** Where the list opens, if anything is one. A quote inside a string is escaped, so this can only be a field. */
function startOfList(bytes: Buffer): number {
  return bytes.toString('latin1', 0, FRAME_BYTES).indexOf(DATA) + DATA.length - 1
}

function hasEmptyList(answer: unknown): boolean {
  const data: unknown = (answer as { data?: unknown } | null | undefined)?.data
  return Array.isArray(data) && data.length === 0
}

/** The items of a list, followed byte by byte in whatever chunks they come. */
interface Items {
  /** From a place in a chunk to the end of the list or of the chunk; undefined where something else comes. */
  follow(chunk: Buffer, from: number): number | undefined
  seen(): number
  isComplete(): boolean
}

/** As the first item says, which must be there whole. */
function itemsAt(bytes: Buffer, start: number, count: number): Items | undefined {
  const frame = frameOf(bytes, start)
  if (!frame) return undefined
  const { head, tail, length } = frame
  let index = 0
  /** What must come before the next vector, and behind the last; and how much of it has come. */
  let between = head(0)
  let matched = 0
  let vectorLeft = 0

  function beginVector(): void {
    between = tail(index) + (index + 1 < count ? `,${head(index + 1)}` : ']')
    index++
    vectorLeft = length
    matched = 0
  }

  /** Where it ends, in the chunk or with it; undefined where there is an end within it. */
  function endOfVector(chunk: Buffer, from: number): number | undefined {
    const end = from + vectorLeft
    const quote = chunk.indexOf(QUOTE, from)
    if (quote === end || (end >= chunk.length && quote < 0)) return Math.min(end, chunk.length)
    return undefined
  }

  const isComplete = (): boolean => index === count && vectorLeft === 0 && matched === between.length

  return {
    follow(chunk, from) {
      let at = from
      while (at < chunk.length && !isComplete()) {
        if (vectorLeft > 0) {
          const end = endOfVector(chunk, at)
          if (end === undefined) return undefined
          vectorLeft -= end - at
          at = end
        } else {
          const length = Math.min(chunk.length - at, between.length - matched)
          if (!standsAt(chunk, at, between, matched, length)) return undefined
          at += length
          matched += length
          if (matched === between.length && index < count) beginVector()
        }
      }
      return isPlain(chunk.subarray(from, at)) ? at : undefined
    },
    seen: () => index,
    isComplete,
  }
}

/** What stands around a vector, and its length. */
interface Frame {
  head(index: number): string
  tail(index: number): string
  readonly length: number
}

/** As it is around the first one. */
function frameOf(bytes: Buffer, start: number): Frame | undefined {
  const before = bytes.toString('latin1', start, start + FRAME_BYTES)
  const open = before.indexOf(EMBEDDING) + EMBEDDING.length
  if (open < EMBEDDING.length) return undefined
  const close = bytes.indexOf(QUOTE, start + open)
  if (close < 0 || !isBase64Vector(bytes.subarray(start + open, close))) return undefined
  const head = before.slice(0, open)
  const tail = `${bytes.toString('latin1', close, close + FRAME_BYTES).split('}', 1)[0]}}`
  const item = parsed(head + tail)
  if (!isItem(item, 0) || item.embedding !== '') return undefined
  return { head: withIndex(head), tail: withIndex(tail), length: close - start - open }
}

/** The same text for another item than the first. */
function withIndex(text: string): (index: number) => string {
  const place = text.indexOf(FIRST_INDEX)
  if (place < 0) return () => text
  const [before, after] = [text.slice(0, place + FIRST_INDEX.length - 1), text.slice(place + FIRST_INDEX.length)]
  return (index) => before + index + after
}

/** So many characters of a text, from one of its places, at a place of the chunk. A string made to compare costs more. */
function standsAt(chunk: Buffer, at: number, text: string, from: number, length: number): boolean {
  for (let index = 0; index < length; index++) {
    if (chunk[at + index] !== text.charCodeAt(from + index)) return false
  }
  return true
}

/** What strings say as they stand. */
function isPlain(bytes: Buffer): boolean {
  return isAscii(bytes) && !bytes.includes(BACKSLASH)
}

/** Base64 of whole float32 numbers. */
export function isBase64Vector(text: Base64): boolean {
  return isBase64(text) && (decodedLength(text) ?? 1) % 4 === 0
}

/** The list of an answer that has been parsed and found good, in its bytes; undefined where Weir words it otherwise. */
export function listInBytes(bytes: Buffer, answer: unknown): Buffer | undefined {
  const data: unknown = (answer as { data?: unknown } | null)?.data
  if (!Array.isArray(data) || !data.every(isItem)) return undefined
  const field = scanObject(bytes).fields.findLast(({ name }) => name === 'data')
  return field && bytes.subarray(field.valueStart, field.end)
}

/** Nothing missing, nothing else, and in its place. */
function isItem(item: unknown, index: number): item is { embedding: unknown } {
  if (typeof item !== 'object' || item === null || Object.keys(item).length !== 3) return false
  const { object, index: given, embedding } = item as Record<string, unknown>
  return object === 'embedding' && given === index && embedding !== undefined
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
