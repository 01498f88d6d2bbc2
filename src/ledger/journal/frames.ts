import { crc32 } from 'node:zlib'

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
