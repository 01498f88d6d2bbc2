import { WINDOW_BYTES, type FileWindow } from './file-window.ts'
import type { PacketCounter } from './packet-counter.ts'

/**
 * Counts FLAC by its frames. A frame header has a sync code, no reserved values and a checksum, so it is found without
 * decoding. The number of the frame and the checksum at its end count for nothing, because decoders play a frame in
 * spite of them. Other bytes look like a header about once in 50 MB.
 */
export function flacCounter(streamRate: number): PacketCounter {
  let seconds = 0
  /** The end of the bytes so far, where a header can begin that goes on in the next ones. */
  let rest = Buffer.alloc(0)

  function secondsIn(bytes: Buffer, until: number): number {
    let sum = 0
    for (let at = bytes.indexOf(0xff); at >= 0 && at < until; at = bytes.indexOf(0xff, at + 1)) {
      const frame = readFrameHeader(bytes, at)
      // Some decoders take the rate of the stream, others that of the frame.
      if (frame) sum += frame.samples / Math.min(streamRate, frame.sampleRate ?? streamRate)
    }
    return sum
  }

  function addPiece(piece: Buffer): void {
    const bytes = rest.length > 0 ? Buffer.concat([rest, piece]) : piece
    const until = Math.max(0, bytes.length - MAX_HEADER_BYTES)
    seconds += secondsIn(bytes, until)
    rest = Buffer.from(bytes.subarray(until))
  }

  async function addPieces(file: FileWindow, position: number, bytes: number): Promise<void> {
    const end = Math.min(position + bytes, file.length)
    for (let at = position; at < end; at += WINDOW_BYTES) addPiece(await file.at(at, Math.min(WINDOW_BYTES, end - at)))
  }

  return {
    get seconds() {
      return seconds + secondsIn(rest, rest.length)
    },
    add(file, position, bytes) {
      const here = bytes <= WINDOW_BYTES ? file.peek(position, bytes) : undefined
      if (!here) return addPieces(file, position, bytes)
      addPiece(here)
      return undefined
    },
  }
}

/** The sample rate in STREAMINFO: the 34 bytes of the first metadata block. */
export function flacRate(streamInfo: Buffer): number {
  return streamInfo.length < 13 ? 0 : streamInfo.readUIntBE(10, 3) >>> 4
}

const MAX_HEADER_BYTES = 16
/** In the order of their codes. 0: as in STREAMINFO. */
const SAMPLE_RATES = [0, 88_200, 176_400, 192_000, 8000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000]

interface FrameHeader {
  readonly samples: number
  /** undefined: the rate of the stream. */
  readonly sampleRate: number | undefined
}

function readFrameHeader(bytes: Buffer, at: number): FrameHeader | undefined {
  const second = bytes[at + 1] ?? 0
  if ((second & 0xfe) !== 0xf8 || bytes.length < at + 6) return undefined
  const third = bytes[at + 2] ?? 0
  const fourth = bytes[at + 3] ?? 0
  const sizeCode = third >>> 4
  const rateCode = third & 15
  if (sizeCode === 0 || rateCode === 15 || fourth >>> 4 > 10 || (fourth & 0x0f) === 6 || (fourth & 1) !== 0) {
    return undefined
  }
  const numberBytes = numberLength(bytes, at + 4)
  if (numberBytes === 0) return undefined
  const sizeBytes = sizeCode === 6 ? 1 : sizeCode === 7 ? 2 : 0
  const rateBytes = rateCode === 12 ? 1 : rateCode >= 13 ? 2 : 0
  const sizeAt = at + 4 + numberBytes
  const end = sizeAt + sizeBytes + rateBytes
  if (end >= bytes.length || checksum(bytes, at, end) !== bytes[end]) return undefined
  return {
    samples: sizeBytes > 0 ? bytes.readUIntBE(sizeAt, sizeBytes) + 1 : blockSize(sizeCode),
    sampleRate:
      (rateBytes > 0 ? writtenRate(bytes, sizeAt + sizeBytes, rateCode) : SAMPLE_RATES[rateCode]) || undefined,
  }
}

function writtenRate(bytes: Buffer, at: number, code: number): number {
  if (code === 12) return (bytes[at] ?? 0) * 1000
  return bytes.readUInt16BE(at) * (code === 14 ? 10 : 1)
}

function blockSize(code: number): number {
  if (code === 1) return 192
  return code < 6 ? 576 << (code - 2) : 256 << (code - 8)
}

/** The number of the frame is encoded like a UTF-8 character, with up to 36 bits. 0: it is not. */
function numberLength(bytes: Buffer, at: number): number {
  const lead = bytes[at] ?? 0
  if (lead < 0x80) return 1
  const length = Math.clz32(~(lead << 24))
  if (length === 1 || length > 7) return 0
  for (let index = 1; index < length; index++) if (((bytes[at + index] ?? 0) & 0xc0) !== 0x80) return 0
  return length
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
