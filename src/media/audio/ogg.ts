import { opusRate } from './opus.ts'
import type { Window } from './window.ts'

/**
 * Seconds of Ogg: every page carries the position of its stream in samples. All pages are walked over, so
 * that streams put one behind the other all count, and only what is there.
 */
export async function oggSeconds(file: Window): Promise<number | undefined> {
  const streams = new Map<number, Stream | undefined>()
  let seconds: number | undefined
  let position = 0
  while (position + HEADER_BYTES <= file.length) {
    const page = readPage(
      file.peek(position, MAX_HEADER_BYTES) ?? (await file.at(position, MAX_HEADER_BYTES)),
      position,
    )
    if (!page) {
      position = await file.find(LETTER_O, position + 1, 5, isPage)
      continue
    }
    if (page.isFirst) {
      const ended = streams.get(page.serial)
      if (ended) seconds = (seconds ?? 0) + secondsOf(ended)
      streams.set(page.serial, identify(await file.at(page.content, 64)))
    } else advance(streams.get(page.serial), page.granule)
    position = page.content + page.contentBytes
  }
  for (const stream of streams.values()) if (stream) seconds = (seconds ?? 0) + secondsOf(stream)
  return seconds
}

interface Page {
  readonly isFirst: boolean
  readonly serial: number
  readonly granule: number
  readonly content: number
  readonly contentBytes: number
}

interface Stream {
  readonly samplesPerSecond: number
  /** Samples at the beginning that are decoded and thrown away. */
  readonly skipped: number
  start: number | undefined
  last: number
}

const HEADER_BYTES = 27
/** With the sizes of its segments. */
const MAX_HEADER_BYTES = HEADER_BYTES + 255
const LETTER_O = 0x4f
/** No page holds more; a stream whose first page ends later was cut out of a longer one. */
const MAX_PAGE_SECONDS = 30

/** The letters, and the only version there is. */
function isPage(bytes: Buffer, at: number): boolean {
  return bytes[at + 1] === 0x67 && bytes[at + 2] === 0x67 && bytes[at + 3] === 0x53 && bytes[at + 4] === 0
}

function readPage(head: Buffer, position: number): Page | undefined {
  if (head.length < HEADER_BYTES || head[0] !== LETTER_O || !isPage(head, 0)) return undefined
  const segments = head[26] ?? 0
  const sizes = head.subarray(HEADER_BYTES, HEADER_BYTES + segments)
  return {
    isFirst: ((head[5] ?? 0) & 2) !== 0,
    serial: head.readUInt32LE(14),
    granule: Number(head.readBigInt64LE(6)),
    content: position + HEADER_BYTES + segments,
    contentBytes: sizes.reduce((sum, size) => sum + size, 0),
  }
}

/** A stream of sound by its first packet; undefined for anything else. */
function identify(packet: Buffer): Stream | undefined {
  const stream = (samplesPerSecond: number, skipped = 0): Stream | undefined =>
    samplesPerSecond > 0 ? { samplesPerSecond, skipped, start: undefined, last: 0 } : undefined
  const text = packet.toString('latin1')
  if (text.startsWith('OpusHead') && packet.length >= 12) return stream(opusRate, packet.readUInt16LE(10))
  if (text.startsWith('\x01vorbis') && packet.length >= 16) return stream(packet.readUInt32LE(12))
  // Nine bytes of its own, then the beginning of a FLAC file.
  if (text.startsWith('\x7fFLAC') && packet.length >= 31) return stream(packet.readUIntBE(27, 3) >>> 4)
  if (text.startsWith('Speex   ') && packet.length >= 40) return stream(packet.readUInt32LE(36))
  return undefined
}

/** Pages of headers are at 0; pages on which no packet ends at -1. */
function advance(stream: Stream | undefined, granule: number): void {
  if (!stream || granule <= 0) return
  stream.start ??= granule > MAX_PAGE_SECONDS * stream.samplesPerSecond ? granule : stream.skipped
  stream.last = Math.max(stream.last, granule)
}

function secondsOf({ samplesPerSecond, start, last }: Stream): number {
  return Math.max(0, last - (start ?? last)) / samplesPerSecond
}
