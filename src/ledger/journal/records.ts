import { crc32 } from 'node:zlib'
import type { ServiceTier } from '../../billing/rating/rating.ts'
import type { ErrorCode } from '../../shared/errors.ts'
import type { Intent, Outcome, RequestRow } from '../rows.ts'

/**
 * A segment of the journal is a sequence of frames. A frame is the result of one durable write: a mark, the length and
 * the checksum of its text, and the text. The checksum also covers the position of the frame, so a copy of it anywhere
 * else is invalid.
 *
 * A frame is written only once the one before it is durable. So everything up to the last valid frame is complete, and
 * what follows it was cut off by a crash, unless the disk lost data.
 */
export interface Frame {
  readonly text: string
  /** Where the next frame begins. */
  readonly end: number
}

/** A part of a segment that was written completely and can no longer be read. */
export interface Damage {
  readonly from: number
  readonly to: number
}

export interface ScannedFrames {
  readonly frames: readonly Frame[]
  /** Where the last frame ends. */
  readonly end: number
  readonly damage: readonly Damage[]
}

/** The first byte occurs in no UTF-8 text, so a mark is never part of a frame's text. */
const MARK = Buffer.from([0xf5, 0x57, 0x52, 0x31])
const HEAD_BYTES = 12

/** The bytes of a frame at this offset of this segment. */
export function frameOf(text: string, segment: number, offset: number): Buffer {
  const length = Buffer.byteLength(text)
  const frame = Buffer.allocUnsafe(HEAD_BYTES + length)
  MARK.copy(frame)
  frame.writeUInt32LE(length, 4)
  frame.write(text, HEAD_BYTES)
  frame.writeUInt32LE(checksum(frame.subarray(HEAD_BYTES), segment, offset), 8)
  return frame
}

/** Finds the frames in a part of a segment that begins at `offset`. */
export function scanFrames(bytes: Buffer, segment: number, offset = 0): ScannedFrames {
  const frames: Frame[] = []
  const damage: Damage[] = []
  let end = 0
  for (let at = 0; at !== -1; at = bytes.indexOf(MARK, at)) {
    const frame = frameAt(bytes, at, segment, offset)
    if (!frame) {
      at++
      continue
    }
    if (at > end) damage.push({ from: offset + end, to: offset + at })
    frames.push(frame)
    at = end = frame.end - offset
  }
  return { frames, end: offset + end, damage }
}

function frameAt(bytes: Buffer, at: number, segment: number, offset: number): Frame | undefined {
  const start = at + HEAD_BYTES
  if (start > bytes.length || !MARK.equals(bytes.subarray(at, at + MARK.length))) return undefined
  const end = start + bytes.readUInt32LE(at + 4)
  if (end > bytes.length) return undefined
  const text = bytes.subarray(start, end)
  if (bytes.readUInt32LE(at + 8) !== checksum(text, segment, offset + at)) return undefined
  return { text: text.toString(), end: offset + end }
}

/** Seeded with the position instead of 0, spread over all bits. */
function checksum(text: Buffer, segment: number, offset: number): number {
  return crc32(text, (Math.imul(segment, 0x9e3779b1) ^ Math.imul(offset + 1, 0x85ebca6b)) >>> 0)
}

/**
 * The text of a frame: one record per line. A record is an array that begins with its kind; the order of the rest never
 * changes, and later versions only append fields.
 */
export type JournalRecord =
  /** The first record of a segment. */
  | { readonly kind: 'head'; readonly head: SegmentHead }
  | { readonly kind: 'intent'; readonly intent: Intent }
  | { readonly kind: 'row'; readonly row: RequestRow }

export interface SegmentHead {
  readonly format: 1
  /**
   * Where the segment before this one ends. Anything written to it after that was never confirmed. null if nothing
   * before this segment counts.
   */
  readonly previous: { readonly segment: number; readonly end: number } | null
}

export function headText(head: SegmentHead): string {
  return JSON.stringify(['h', head.format, head.previous])
}

export function intentText(it: Intent): string {
  return JSON.stringify([
    'i',
    it.requestId,
    it.workspaceId,
    it.keyId,
    it.model,
    it.lane,
    it.endpoint,
    it.priceVersion,
    it.maxTokens,
    it.startedAt,
    it.tier,
  ])
}

export function rowText(it: RequestRow): string {
  return JSON.stringify([
    'r',
    it.requestId,
    it.workspaceId,
    it.keyId,
    it.model,
    it.lane,
    it.endpoint,
    it.priceVersion,
    it.maxTokens,
    it.startedAt,
    it.inputTokens,
    it.cachedInputTokens,
    it.outputTokens,
    it.images,
    it.audioMs,
    it.estimated,
    it.outcome,
    // JSON has no integers of this size.
    String(it.amount),
    it.queueWaitMs,
    it.firstTokenMs,
    it.durationMs,
    it.settledAt,
    it.httpStatus,
    it.errorCode,
    it.tier,
  ])
}

/** The records of a frame. Throws if it was written by a newer version. */
export function recordsIn(text: string): readonly JournalRecord[] {
  return text.split('\n').map(recordOf)
}

function recordOf(line: string): JournalRecord {
  const [kind, ...values] = JSON.parse(line) as readonly unknown[]
  if (kind === 'i') return { kind: 'intent', intent: readIntent(values, values[9]) }
  if (kind === 'r') return { kind: 'row', row: readRow(values) }
  const [format, previous] = values
  if (kind !== 'h' || format !== 1) {
    throw Object.assign(new Error('the journal was written by a newer version of Weir: update Weir first'), {
      code: 'ERR_DATA_DIR_NEWER',
    })
  }
  return { kind: 'head', head: { format, previous: previous as SegmentHead['previous'] } }
}

/** Records of older versions have no tier. */
function readIntent(values: readonly unknown[], tier: unknown = 'default'): Intent {
  const [requestId, workspaceId, keyId, model, lane, endpoint, priceVersion, maxTokens, startedAt] = values
  return {
    requestId: requestId as string,
    workspaceId: workspaceId as string,
    keyId: keyId as string,
    model: model as string,
    lane: lane as string,
    endpoint: endpoint as string,
    priceVersion: figure(priceVersion),
    maxTokens: figure(maxTokens),
    startedAt: figure(startedAt),
    tier: tier as ServiceTier,
  }
}

function readRow(values: readonly unknown[]): RequestRow {
  const [inputTokens, cachedInputTokens, outputTokens, images, audioMs, estimated, outcome, amount, ...rest] =
    values.slice(9)
  // Records of older versions do not have the last ones.
  const [queueWaitMs, firstTokenMs, durationMs, settledAt, httpStatus = null, errorCode = null, tier] = rest
  return {
    ...readIntent(values, tier),
    inputTokens: figure(inputTokens),
    cachedInputTokens: figure(cachedInputTokens),
    outputTokens: figure(outputTokens),
    images: figure(images),
    audioMs: figure(audioMs),
    estimated: estimated === true,
    outcome: outcome as Outcome,
    httpStatus: httpStatus as number | null,
    errorCode: errorCode as ErrorCode | null,
    amount: amountIn(String(amount)),
    queueWaitMs: figure(queueWaitMs),
    firstTokenMs: firstTokenMs === null ? null : figure(firstTokenMs),
    durationMs: figure(durationMs),
    settledAt: figure(settledAt),
  }
}

/** JSON turns NaN into null. It must not be read back as 0: no table accepts NaN, so the row is set aside. */
function figure(value: unknown): number {
  return typeof value === 'number' ? value : Number.NaN
}

/** An amount that is not a number is kept: no table accepts it, so the row is set aside. */
function amountIn(text: string): bigint {
  return /^-?\d+$/.test(text) ? BigInt(text) : (text as unknown as bigint)
}
