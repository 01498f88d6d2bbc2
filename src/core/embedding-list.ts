import { isAscii } from 'node:buffer'
import { decodedLength, isBase64, type Base64 } from './base64.ts'
import { byteChain, type ByteChain } from './byte-chain.ts'
import { scanObject } from './json-scan.ts'

/**
 * An engine's embeddings in the bytes they came in. A full batch is megabytes, and most servers word it as
 * Weir does: so it is looked at without being parsed, and passed on.
 */
export interface EmbeddingList {
  /** `[{"object":"embedding","index":0,"embedding":…},…]`, in order. */
  readonly data: readonly Buffer[]
  /** The answer with an empty list in its place. */
  readonly rest: unknown
}

const DATA = '"data":['
const EMBEDDING = '"embedding":"'
const FIRST_INDEX = '"index":0'
/** What comes before the list, and around a vector, is never longer. */
const FRAME_BYTES = 1024
const QUOTE = 0x22
const BACKSLASH = 0x5c

/**
 * `count` vectors in base64, all of one length and in one wording, as programs write them; undefined where
 * anything is otherwise, which is not to say that it is wrong. Each string is known to end where it should,
 * and the first to be base64; what the numbers are is the engine's affair.
 */
export function base64List(pieces: readonly Buffer[], count: number): EmbeddingList | undefined {
  const bytes = byteChain(pieces)
  // A quote inside a string is escaped, so this can only be a field.
  const start = bytes.text(0, FRAME_BYTES).indexOf(DATA) + DATA.length - 1
  const frame = start < DATA.length - 1 ? undefined : frameOf(bytes, start + 1)
  if (!frame) return undefined
  const { head, tail, length } = frame
  let at = start + 1
  let between = head.join(`"index":0`)
  for (let index = 0; index < count; index++) {
    if (bytes.text(at, at + between.length) !== between) return undefined
    at += between.length + length
    if (bytes.indexOf(QUOTE, at - length) !== at || !isPlain(bytes.slices(at - length, at))) return undefined
    between = tail.join(`"index":${index}`) + (index + 1 < count ? `,${head.join(`"index":${index + 1}`)}` : ']')
  }
  if (bytes.text(at, at + between.length) !== between) return undefined
  const end = at + between.length
  const data = bytes.slices(start, end)
  const rest = parsed(`${utf8(bytes.slices(0, start))}[]${utf8(bytes.slices(end, Infinity))}`)
  const place: unknown = (rest as { data?: unknown } | undefined)?.data
  return Array.isArray(place) && place.length === 0 ? { data, rest } : undefined
}

/** What stands around the first vector, cut where the index is, and the vector's length. */
function frameOf(
  bytes: ByteChain,
  start: number,
): { head: readonly string[]; tail: readonly string[]; length: number } | undefined {
  const before = bytes.text(start, start + FRAME_BYTES)
  const open = before.indexOf(EMBEDDING) + EMBEDDING.length
  if (open < EMBEDDING.length) return undefined
  const close = bytes.indexOf(QUOTE, start + open)
  if (close < 0 || !isBase64Vector(bytes.text(start + open, close))) return undefined
  const head = before.slice(0, open)
  const tail = `${bytes.text(close, close + FRAME_BYTES).split('}', 1)[0]}}`
  const item = parsed(head + tail)
  if (!isItem(item, 0) || item.embedding !== '') return undefined
  return { head: head.split(FIRST_INDEX), tail: tail.split(FIRST_INDEX), length: close - start - open }
}

/** What a JSON string says as it stands. Looked at vector by vector, while its bytes are at hand. */
function isPlain(slices: readonly Buffer[]): boolean {
  return slices.every((slice) => isAscii(slice) && !slice.includes(BACKSLASH))
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

function utf8(slices: readonly Buffer[]): string {
  return Buffer.concat(slices).toString('utf8')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
