import type { FileWindow } from './file-window.ts'

/**
 * The length of FLAC is where its last frame ends. Each frame has a number and a checksum, so frames are found
 * without decoding. The total in the header is missing when the encoder wrote to a pipe, and may be wrong.
 */
export async function flacSeconds(file: FileWindow, start: number): Promise<number | undefined> {
  const info = await readStreamInfo(file, start)
  if (!info) return undefined
  const position = await skipMetadata(file, start)
  let first: Frame | undefined
  let last: Frame | undefined
  await file.find(0xff, position, MAX_HEADER_BYTES, (bytes, at) => {
    const frame = readFrame(bytes, at)
    if (frame && (!first || isNext(frame, first, last ?? first))) {
      first ??= frame
      last = frame
    }
    return false
  })
  if (!first || !last) return undefined
  const before = first.isVariable ? last.number : last.number * first.blockSize
  return (before + last.blockSize) / info.sampleRate
}

interface Frame {
  readonly isVariable: boolean
  /** The number of the frame, or of its first sample when the block size varies. */
  readonly number: number
  readonly blockSize: number
  readonly rateCode: number
  readonly depthCode: number
}

const MAX_HEADER_BYTES = 16
/** The most frames that may be missing between two good ones, because of damage. */
const MAX_GAP = 4096
const MAX_METADATA_BLOCKS = 1000

async function readStreamInfo(file: FileWindow, start: number): Promise<{ sampleRate: number } | undefined> {
  const bytes = await file.at(start, 42)
  if (bytes.length < 42 || ((bytes[4] ?? 0) & 0x7f) !== 0) return undefined
  const sampleRate = bytes.readUIntBE(18, 3) >>> 4
  return sampleRate > 0 ? { sampleRate } : undefined
}

async function skipMetadata(file: FileWindow, start: number): Promise<number> {
  let position = start + 4
  for (let blocks = 0; blocks < MAX_METADATA_BLOCKS; blocks++) {
    const head = await file.at(position, 4)
    if (head.length < 4) break
    position += 4 + head.readUIntBE(1, 3)
    if ((head[0] ?? 0) & 0x80) break
  }
  return position
}

function isNext(frame: Frame, first: Frame, last: Frame): boolean {
  const gap = frame.number - last.number
  return (
    frame.isVariable === first.isVariable &&
    frame.rateCode === first.rateCode &&
    frame.depthCode === first.depthCode &&
    gap > 0 &&
    gap <= (first.isVariable ? MAX_GAP * last.blockSize : MAX_GAP)
  )
}

/** Reads a frame header. It has a sync code, no reserved values, and a correct checksum. */
function readFrame(bytes: Buffer, at: number): Frame | undefined {
  const second = bytes[at + 1] ?? 0
  if ((second & 0xfe) !== 0xf8 || bytes.length < at + 6) return undefined
  const third = bytes[at + 2] ?? 0
  const fourth = bytes[at + 3] ?? 0
  const fifth = bytes[at + 4] ?? 0
  const sizeCode = third >>> 4
  const rateCode = third & 15
  const depthCode = (fourth >>> 1) & 7
  if (sizeCode === 0 || rateCode === 15 || fourth >>> 4 > 10 || depthCode === 3 || (fourth & 1) !== 0) return undefined
  const numberBytes = fifth < 0x80 ? 1 : Math.clz32(~(fifth << 24))
  if (numberBytes > 7 || (fifth >= 0x80 && numberBytes === 1)) return undefined
  const sizeBytes = sizeCode === 6 ? 1 : sizeCode === 7 ? 2 : 0
  const rateBytes = rateCode === 12 ? 1 : rateCode >= 13 ? 2 : 0
  const sizeAt = at + 4 + numberBytes
  const end = sizeAt + sizeBytes + rateBytes
  if (end >= bytes.length || checksum(bytes, at, end) !== bytes[end]) return undefined
  return {
    isVariable: (second & 1) === 1,
    number: readNumber(bytes, at + 4, numberBytes),
    blockSize: sizeBytes > 0 ? bytes.readUIntBE(sizeAt, sizeBytes) + 1 : blockSize(sizeCode),
    rateCode,
    depthCode,
  }
}

function blockSize(code: number): number {
  if (code === 1) return 192
  return code < 6 ? 576 << (code - 2) : 256 << (code - 8)
}

/** Encoded like a UTF-8 character, with up to 36 bits. */
function readNumber(bytes: Buffer, at: number, count: number): number {
  const lead = bytes[at] ?? 0
  let value = count === 1 ? lead : lead & (0x7f >>> count)
  for (let index = 1; index < count; index++) value = value * 64 + ((bytes[at + index] ?? 0) & 0x3f)
  return value
}

/** CRC-8 with the polynomial 0x07. */
function checksum(bytes: Buffer, start: number, end: number): number {
  let sum = 0
  for (let index = start; index < end; index++) {
    sum ^= bytes[index] ?? 0
    for (let bit = 0; bit < 8; bit++) sum = sum & 0x80 ? ((sum << 1) ^ 0x07) & 0xff : (sum << 1) & 0xff
  }
  return sum
}
