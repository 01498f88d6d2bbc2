import { isAscii } from 'node:buffer'
import { decodedLength, isBase64, type Base64 } from '../../shared/base64.ts'
import { scanObject } from '../../shared/json/json-body.ts'

/**
 * An engine's list of embeddings, followed in its bytes while it arrives. A full batch is megabytes, and most
 * servers use the same format as Weir, so the list is checked on its way through, neither parsed nor kept.
 */
export interface EmbeddingList {
  /**
   * The bytes of the list to forward for a chunk, from the opening bracket to the closing one. The first result
   * includes the list bytes of all chunks before it. undefined: too early to tell, or the format is different.
   * Throws when the format changes after the first result.
   */
  push(chunk: Buffer): Buffer | undefined
  /** The parsed answer with an empty list in place of the vectors; undefined when it is incomplete. */
  rest(): unknown
}

/** How vectors are encoded. */
interface VectorFormat {
  /** The text before a vector, and the byte that ends it. */
  readonly open: string
  readonly close: number
  /** Whether all vectors have as many bytes as the first. */
  readonly hasFixedLength: boolean
  /** Fully checks the first vector. */
  isVector(text: Buffer): boolean
  /** Quickly checks a part of any other vector. */
  isPart(chunk: Buffer, from: number, to: number): boolean
}

const DATA = '"data":['
const FIRST_INDEX = '"index":0'
/** The most bytes before the list, and around a vector. */
const FRAME_BYTES = 1024
/** The most bytes after the list. */
const REST_BYTES = 65_536
/** A smaller answer is read whole. */
const WORTH_FORWARDING_BYTES = 65_536
/** Two items show what separates them. If they are incomplete, it tries again with twice as many bytes. */
const ITEMS_TO_TRUST = 2
const MAX_HELD_BYTES = 1_048_576
const BACKSLASH = 0x5c

const formats: Readonly<Record<'base64' | 'float', VectorFormat>> = {
  base64: {
    open: '"embedding":"',
    close: 0x22,
    hasFixedLength: true,
    isVector: isBase64Vector,
    isPart: () => true,
  },
  float: {
    open: '"embedding":[',
    close: 0x5d,
    hasFixedLength: false,
    isVector(text) {
      const numbers = parsed(`[${text.toString('latin1')}]`)
      return Array.isArray(numbers) && numbers.length > 0 && numbers.every((it) => Number.isFinite(it))
    },
    isPart: hasOnlyNumbers,
  },
}

/**
 * Follows a list of `count` vectors in one consistent format: base64, all of one length, or numbers. It checks
 * that the first is a vector and that every other one ends where it should, but not the values of the others.
 */
export function embeddingList(count: number, encoding: keyof typeof formats): EmbeddingList {
  let held: Buffer[] = []
  let heldBytes = 0
  let tryAtBytes = WORTH_FORWARDING_BYTES
  let before = ''
  let items: ItemFollower | undefined
  let after: Buffer[] = []
  let afterBytes = 0

  function startForwarding(bytes: Buffer): Buffer | undefined {
    const start = startOfList(bytes)
    const found = followItems(bytes, start + 1, count, formats[encoding])
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
    if (afterBytes > REST_BYTES) throw new RangeError('the engine sent too much after its embeddings')
  }

  return {
    push(chunk) {
      if (items) {
        const end = items.follow(chunk, 0)
        if (end === undefined) throw new RangeError('the engine changed the format of its embeddings')
        keepAfter(chunk.subarray(end))
        return chunk.subarray(0, end)
      }
      if (tryAtBytes > MAX_HELD_BYTES) return undefined
      held.push(chunk)
      heldBytes += chunk.length
      if (heldBytes < tryAtBytes) return undefined
      const bytes = Buffer.concat(held)
      held = [bytes]
      tryAtBytes = heldBytes * 2
      if (tryAtBytes > MAX_HELD_BYTES) held = []
      return startForwarding(bytes)
    },
    rest() {
      if (!items?.isComplete()) return undefined
      const rest = parsed(`${before}[]${Buffer.concat(after).toString('utf8')}`)
      return hasEmptyList(rest) ? rest : undefined
    },
  }
}

/** The offset of the list's opening bracket. A quote inside a string is escaped, so this can only be a field. */
function startOfList(bytes: Buffer): number {
  return bytes.toString('latin1', 0, FRAME_BYTES).indexOf(DATA) + DATA.length - 1
}

function hasEmptyList(answer: unknown): boolean {
  const data: unknown = (answer as { data?: unknown } | null | undefined)?.data
  return Array.isArray(data) && data.length === 0
}

/** Follows the items of a list byte by byte, however they are cut into chunks. */
interface ItemFollower {
  /** Returns the offset of the end of the list or of the chunk; undefined when the format does not match. */
  follow(chunk: Buffer, from: number): number | undefined
  /** How many vectors have started. */
  seen(): number
  isComplete(): boolean
}

/** Expects all items to look like the first one, which must be complete. */
function followItems(bytes: Buffer, start: number, count: number, format: VectorFormat): ItemFollower | undefined {
  const frame = frameOf(bytes, start, format)
  if (!frame) return undefined
  const { head, tail, length } = frame
  let index = 0
  /** The text that must come before the next vector or after the last one, and how much of it has matched. */
  let between = head(0)
  let matched = 0
  /** How many bytes of the current vector have arrived; undefined between vectors. */
  let vectorBytes: number | undefined

  function beginVector(): void {
    between = tail(index) + (index + 1 < count ? `,${head(index + 1)}` : ']')
    index++
    vectorBytes = 0
    matched = 0
  }

  /** Returns where the vector, or the chunk, ends; undefined when it cannot be a vector. */
  function followVector(chunk: Buffer, from: number, bytesBefore: number): number | undefined {
    const close = chunk.indexOf(format.close, from)
    const end = close < 0 ? chunk.length : close
    const bytesNow = bytesBefore + end - from
    const isRight = format.hasFixedLength
      ? bytesNow === length || (close < 0 && bytesNow < length)
      : bytesNow > 0 || close < 0
    if (!isRight || !format.isPart(chunk, from, end)) return undefined
    vectorBytes = close < 0 ? bytesNow : undefined
    return end
  }

  const isComplete = (): boolean => index === count && vectorBytes === undefined && matched === between.length

  return {
    follow(chunk, from) {
      let at = from
      while (at < chunk.length && !isComplete()) {
        if (vectorBytes !== undefined) {
          const end = followVector(chunk, at, vectorBytes)
          if (end === undefined) return undefined
          at = end
        } else {
          const expected = Math.min(chunk.length - at, between.length - matched)
          if (!matchesAt(chunk, at, between, matched, expected)) return undefined
          at += expected
          matched += expected
          if (matched === between.length && index < count) beginVector()
        }
      }
      return isPlain(chunk.subarray(from, at)) ? at : undefined
    },
    seen: () => index,
    isComplete,
  }
}

/** The text around a vector, and its length. */
interface VectorFrame {
  head(index: number): string
  tail(index: number): string
  readonly length: number
}

/** Reads the frame of the first vector. */
function frameOf(bytes: Buffer, start: number, format: VectorFormat): VectorFrame | undefined {
  const before = bytes.toString('latin1', start, start + FRAME_BYTES)
  const open = before.indexOf(format.open) + format.open.length
  if (open < format.open.length) return undefined
  const close = bytes.indexOf(format.close, start + open)
  if (close < 0 || !format.isVector(bytes.subarray(start + open, close))) return undefined
  const head = before.slice(0, open)
  const tail = `${bytes.toString('latin1', close, close + FRAME_BYTES).split('}', 1)[0]}}`
  const item = parsed(head + tail)
  if (!isItem(item, 0) || (item.embedding as { length?: unknown }).length !== 0) return undefined
  return { head: withIndex(head), tail: withIndex(tail), length: close - start - open }
}

/** The first item's text with the index of another item. */
function withIndex(text: string): (index: number) => string {
  const place = text.indexOf(FIRST_INDEX)
  if (place < 0) return () => text
  const [before, after] = [text.slice(0, place + FIRST_INDEX.length - 1), text.slice(place + FIRST_INDEX.length)]
  return (index) => before + index + after
}

/** Compares `length` characters of the text with the chunk. Making a string to compare would cost more. */
function matchesAt(chunk: Buffer, at: number, text: string, from: number, length: number): boolean {
  for (let index = 0; index < length; index++) {
    if (chunk[at + index] !== text.charCodeAt(from + index)) return false
  }
  return true
}

/** Without escapes or characters beyond ASCII, so that the bytes mean what they look like. */
function isPlain(bytes: Buffer): boolean {
  return isAscii(bytes) && !bytes.includes(BACKSLASH)
}

const numberBytes = new Uint8Array(256)
for (const character of '+-.0123456789Ee, \n\r\t') numberBytes[character.charCodeAt(0)] = 1

function hasOnlyNumbers(chunk: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (numberBytes[chunk[at]!] === 0) return false
  return true
}

/** Base64 of whole float32 numbers. */
export function isBase64Vector(text: Base64): boolean {
  const length = decodedLength(text)
  return length !== undefined && length % 4 === 0 && isBase64(text)
}

/** The bytes of the list in a valid, parsed answer; undefined when the format differs from Weir's. */
export function listInBytes(bytes: Buffer, answer: unknown): Buffer | undefined {
  const data: unknown = (answer as { data?: unknown } | null)?.data
  if (!Array.isArray(data) || !data.every(isItem)) return undefined
  const field = scanObject(bytes).fields.findLast(({ name }) => name === 'data')
  return field && bytes.subarray(field.valueStart, field.end)
}

/** Whether an item has exactly our fields, and the right index. */
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
