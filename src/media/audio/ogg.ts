import { opusPacketMs, opusRate } from './opus.ts'
import type { FileWindow } from './file-window.ts'

/**
 * The length of Ogg comes from its pages, each of which has its position in samples. All pages are read, so
 * that chained streams all count, and a truncated file counts only as far as it goes.
 */
export async function oggSeconds(file: FileWindow): Promise<number | undefined> {
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
    } else advance(streams.get(page.serial), page, file.peek(page.content, 2) ?? (await file.at(page.content, 2)))
    position = page.content + page.contentBytes
  }
  for (const stream of streams.values()) if (stream) seconds = (seconds ?? 0) + secondsOf(stream)
  return seconds
}

interface Page {
  readonly isFirst: boolean
  readonly serial: number
  /** Samples up to the end of the page; 0 on header pages, -1 when no packet ends on it. */
  readonly granule: number
  /** How many packets end on this page. */
  readonly packets: number
  readonly content: number
  readonly contentBytes: number
}

interface Stream {
  readonly samplesPerSecond: number
  /** Samples at the start that are decoded and discarded. */
  readonly skipped: number
  readonly isOpus: boolean
  /** The first page with sound: where it ends, its packets, and how long a packet is, if known. */
  first: { readonly granule: number; readonly packets: number; readonly packetSamples: number | undefined } | undefined
  last: number
  packets: number
}

const HEADER_BYTES = 27
/** Including the sizes of its segments. */
const MAX_HEADER_BYTES = HEADER_BYTES + 255
const LETTER_O = 0x4f
/** Used when there is no other packet to measure. */
const USUAL_PACKET_SAMPLES = 512

/** Checks the letters "ggS" and the version, which is always 0. */
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
    packets: sizes.reduce((sum, size) => sum + (size < 255 ? 1 : 0), 0),
    content: position + HEADER_BYTES + segments,
    contentBytes: sizes.reduce((sum, size) => sum + size, 0),
  }
}

/** Recognizes a sound stream by its first packet; undefined for anything else. */
function identify(packet: Buffer): Stream | undefined {
  const stream = (samplesPerSecond: number, skipped = 0, isOpus = false): Stream | undefined =>
    samplesPerSecond > 0 ? { samplesPerSecond, skipped, isOpus, first: undefined, last: 0, packets: 0 } : undefined
  const text = packet.toString('latin1')
  if (text.startsWith('OpusHead') && packet.length >= 12) return stream(opusRate, packet.readUInt16LE(10), true)
  if (text.startsWith('\x01vorbis') && packet.length >= 16) return stream(packet.readUInt32LE(12))
  // Nine bytes of mapping header, then the start of a FLAC file.
  if (text.startsWith('\x7fFLAC') && packet.length >= 31) return stream(packet.readUIntBE(27, 3) >>> 4)
  if (text.startsWith('Speex   ') && packet.length >= 40) return stream(packet.readUInt32LE(36))
  return undefined
}

function advance(stream: Stream | undefined, { granule, packets }: Page, content: Buffer): void {
  if (!stream || granule <= 0) return
  if (stream.first) stream.packets += packets
  else {
    const packetMs = stream.isOpus ? opusPacketMs(content[0] ?? 0, content[1] ?? 0) : 0
    stream.first = { granule, packets, packetSamples: packetMs > 0 ? (packetMs * opusRate) / 1000 : undefined }
  }
  stream.last = Math.max(stream.last, granule)
}

/** A part cut from a longer recording keeps its positions, so it starts where its first page starts. */
function secondsOf({ samplesPerSecond, skipped, first, last, packets }: Stream): number {
  if (!first) return 0
  const average = packets > 0 ? (last - first.granule) / packets : USUAL_PACKET_SAMPLES
  const start = first.granule - first.packets * (first.packetSamples ?? average)
  // The start is an average, because packets differ in length. Less than a second is not a cut.
  return Math.max(0, last - (start > samplesPerSecond ? start : skipped)) / samplesPerSecond
}
