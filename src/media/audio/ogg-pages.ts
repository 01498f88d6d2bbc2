import type { FileWindow } from './file-window.ts'

export interface OggPage {
  readonly serial: number
  readonly isFirst: boolean
  /** Samples up to the end of the page; 0 on header pages, -1 when no packet ends on it. */
  readonly granule: number
  readonly segments: Buffer
  readonly content: number
  readonly end: number
}

const HEADER_BYTES = 27
/** Including the sizes of its segments. */
const MAX_HEADER_BYTES = HEADER_BYTES + 255
const LETTER_O = 0x4f
const CHECKSUM_AT = 22

/** The page at `position`, or undefined. Its segments are a copy. */
export async function readOggPage(file: FileWindow, position: number): Promise<OggPage | undefined> {
  const head = file.peek(position, MAX_HEADER_BYTES) ?? (await file.at(position, MAX_HEADER_BYTES))
  if (head.length < HEADER_BYTES || head[0] !== LETTER_O || !isPage(head, 0)) return undefined
  const segments = Buffer.from(head.subarray(HEADER_BYTES, HEADER_BYTES + (head[26] ?? 0)))
  const content = position + HEADER_BYTES + segments.length
  return {
    serial: head.readUInt32LE(14),
    isFirst: ((head[5] ?? 0) & 2) !== 0,
    granule: Number(head.readBigInt64LE(6)),
    segments,
    content,
    end: content + segments.reduce((sum, size) => sum + size, 0),
  }
}

export function findOggPage(file: FileWindow, position: number): Promise<number> {
  return file.find(LETTER_O, position, 5, isPage)
}

/** Decoders drop a page with a wrong checksum and look for pages inside it. */
export async function isIntact(file: FileWindow, position: number, page: OggPage): Promise<boolean> {
  const length = page.end - position
  const bytes = file.peek(position, length) ?? (await file.at(position, length))
  if (bytes.length < length) return false
  let sum = 0
  for (let index = 0; index < length; index++) {
    const byte = index >= CHECKSUM_AT && index < CHECKSUM_AT + 4 ? 0 : (bytes[index] ?? 0)
    sum = (sum << 8) ^ (CHECKSUMS[(sum >>> 24) ^ byte] ?? 0)
  }
  return sum >>> 0 === bytes.readUInt32LE(CHECKSUM_AT)
}

/** CRC-32 with the polynomial 0x04c11db7, from the most significant bit on. */
const CHECKSUMS = Int32Array.from({ length: 256 }, (_, index) => {
  let sum = index << 24
  for (let bit = 0; bit < 8; bit++) sum = sum < 0 ? (sum << 1) ^ 0x04c11db7 : sum << 1
  return sum
})

/** Checks the letters "ggS" and the version, which is always 0. */
function isPage(bytes: Buffer, at: number): boolean {
  return bytes[at + 1] === 0x67 && bytes[at + 2] === 0x67 && bytes[at + 3] === 0x53 && bytes[at + 4] === 0
}
