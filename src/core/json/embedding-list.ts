import { isAscii } from 'node:buffer'
import { decodedLength, isBase64, type Base64 } from '../base64.ts'
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

/** How vectors are written. */
interface VectorForm {
  /** What a vector begins with, and the byte that ends it. */
  readonly open: string
  readonly close: number
  /** Whether all of them have the length of the first. */
  readonly hasOneLength: boolean
  /** Whether the first one, from its beginning to its end, is a vector. */
  isVector(text: Buffer): boolean
  /** Whether some bytes of any other can belong to one, as far as that is looked at. */
  isPart(chunk: Buffer, from: number, to: number): boolean
}

const DATA = '"data":['
const FIRST_INDEX = '"index":0'
/** What comes before the list, and around a vector, is never longer. */
const FRAME_BYTES = 1024
/** What comes behind the list is never longer. */
const REST_BYTES = 65_536
/** Fewer are not worth it: they are read whole. */
const WORTH_PASSING_BYTES = 65_536
/** Two show how they are set apart. Where they are not whole by then, it is looked at again when twice as much has come. */
const ITEMS_TO_TRUST = 2
const MAX_HELD_BYTES = 1_048_576
const BACKSLASH = 0x5c

const forms: Readonly<Record<'base64' | 'float', VectorForm>> = {
  base64: {
    open: '"embedding":"',
    close: 0x22,
    hasOneLength: true,
    isVector: isBase64Vector,
    isPart: () => true,
  },
  float: {
    open: '"embedding":[',
    close: 0x5d,
    hasOneLength: false,
    isVector(text) {
      const numbers = parsed(`[${text.toString('latin1')}]`)
      return Array.isArray(numbers) && numbers.length > 0 && numbers.every((it) => Number.isFinite(it))
    },
    isPart: isOfNumbers,
  },
}

/**
 * `count` vectors in one wording, as programs write them: in base64, all of one length, or in numbers. Each is known
 * to end where it should, and the first to be a vector; what the numbers of the others are is the engine's affair.
 */
export function embeddingList(count: number, form: keyof typeof forms): EmbeddingList {
  let held: Buffer[] = []
  let heldBytes = 0
  let lookAt = WORTH_PASSING_BYTES
  let before = ''
  let items: Items | undefined
  let after: Buffer[] = []
  let afterBytes = 0

  function takeUp(bytes: Buffer): Buffer | undefined {
    const start = startOfList(bytes)
    const found = itemsAt(bytes, start + 1, count, forms[form])
    const end = found?.follow(bytes, start + 1)
    if (end === undefined || (found?.seen() ?? 0) < Math.min(ITEMS_TO_TRUST, count)) return undefined
    if (bytes.length - end > REST_BYTES) return undefined
    before = bytes.toString('utf8', 0, start)
    if (!hasEmptyList(parsed(`${before}[]}`))) return undefined
    items = found
    held = []
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
      if (lookAt > MAX_HELD_BYTES) return undefined
      held.push(chunk)
      heldBytes += chunk.length
      if (heldBytes < lookAt) return undefined
      const bytes = Buffer.concat(held)
      held = [bytes]
      lookAt = heldBytes * 2
      if (lookAt > MAX_HELD_BYTES) held = []
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
  /** How many vectors have begun. */
  seen(): number
  isComplete(): boolean
}

/** As the first item says, which must be there whole. */
function itemsAt(bytes: Buffer, start: number, count: number, form: VectorForm): Items | undefined {
  const frame = frameOf(bytes, start, form)
  if (!frame) return undefined
  const { head, tail, length } = frame
  let index = 0
  /** What must come before the next vector, and behind the last; and how much of it has come. */
  let between = head(0)
  let matched = 0
  /** Of the vector that comes now; undefined between them. */
  let vectorBytes: number | undefined

  function beginVector(): void {
    between = tail(index) + (index + 1 < count ? `,${head(index + 1)}` : ']')
    index++
    vectorBytes = 0
    matched = 0
  }

  /** Where the vector ends, in the chunk or with it; undefined where it is none. */
  function throughVector(chunk: Buffer, from: number, bytesBefore: number): number | undefined {
    const close = chunk.indexOf(form.close, from)
    const end = close < 0 ? chunk.length : close
    const bytesNow = bytesBefore + end - from
    const isRight = form.hasOneLength
      ? bytesNow === length || (close < 0 && bytesNow < length)
      : bytesNow > 0 || close < 0
    if (!isRight || !form.isPart(chunk, from, end)) return undefined
    vectorBytes = close < 0 ? bytesNow : undefined
    return end
  }

  const isComplete = (): boolean => index === count && vectorBytes === undefined && matched === between.length

  return {
    follow(chunk, from) {
      let at = from
      while (at < chunk.length && !isComplete()) {
        if (vectorBytes !== undefined) {
          const end = throughVector(chunk, at, vectorBytes)
          if (end === undefined) return undefined
          at = end
        } else {
          const some = Math.min(chunk.length - at, between.length - matched)
          if (!standsAt(chunk, at, between, matched, some)) return undefined
          at += some
          matched += some
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
function frameOf(bytes: Buffer, start: number, form: VectorForm): Frame | undefined {
  const before = bytes.toString('latin1', start, start + FRAME_BYTES)
  const open = before.indexOf(form.open) + form.open.length
  if (open < form.open.length) return undefined
  const close = bytes.indexOf(form.close, start + open)
  if (close < 0 || !form.isVector(bytes.subarray(start + open, close))) return undefined
  const head = before.slice(0, open)
  const tail = `${bytes.toString('latin1', close, close + FRAME_BYTES).split('}', 1)[0]}}`
  const item = parsed(head + tail)
  if (!isItem(item, 0) || (item.embedding as { length?: unknown }).length !== 0) return undefined
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

const inNumbers = new Uint8Array(256)
for (const character of '+-.0123456789Ee, \n\r\t') inNumbers[character.charCodeAt(0)] = 1

function isOfNumbers(chunk: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (inNumbers[chunk[at]!] === 0) return false
  return true
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
