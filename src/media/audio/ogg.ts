import type { FileWindow } from './file-window.ts'
import { flacCounter, flacRate } from './flac-frames.ts'
import { findOggPage, isIntact, readOggPage, type OggPage } from './ogg-pages.ts'
import { opusCounter, opusRate } from './opus.ts'
import { packetBudget, withoutPadding, type PacketCounter } from './packet-counter.ts'
import { MAX_SETUP_BYTES, readVorbisIdentity, vorbisCounter } from './vorbis.ts'

/**
 * The length of Ogg is the sum of its packets. The position that each page claims only says how much a decoder discards
 * at the ends. All pages are read, so that chained streams all count, and a truncated file counts only as far as it goes.
 */
export async function oggSeconds(file: FileWindow): Promise<number | undefined> {
  const streams = new Map<number, Stream | 'no sound'>()
  const ended: Stream[] = []
  const budget = packetBudget()
  let damaged = 0
  let position = 0
  while (position < file.length) {
    const page = await readOggPage(file, position)
    if (!page) {
      position = await findOggPage(file, position + 1)
      continue
    }
    let stream = streams.get(page.serial)
    if (page.isFirst || !stream) {
      if (stream && stream !== 'no sound') ended.push(stream)
      stream = identify(Buffer.from(await file.at(page.content, Math.min(64, page.segments[0] ?? 0))))
      // It might be sound, which could not be counted.
      if (!stream || streams.size + ended.length >= MAX_STREAMS) return undefined
      streams.set(page.serial, stream)
    }
    if (stream !== 'no sound') {
      await budget.spend(page.segments.length)
      if (budget.isSpent || !(await addPage(file, stream, page))) return undefined
    }
    if (await isIntact(file, position, page)) position = page.end
    else if (++damaged > MAX_DAMAGED_PAGES) return undefined
    else position = await findOggPage(file, position + 1)
  }
  const sounds = [...ended, ...streams.values()].filter((it) => it !== 'no sound')
  if (sounds.length === 0) return undefined
  const sum = (read: (stream: Stream) => number): number => sounds.reduce((total, it) => total + read(it), 0)
  return withoutPadding(
    sum((it) => it.counter?.seconds ?? 0),
    sum(discardedSeconds),
  )
}

interface Stream {
  readonly samplesPerSecond: number
  /** Samples at the start that are decoded and discarded. */
  readonly skipped: number
  /** What the packets count with; for Vorbis only once its third header is complete. */
  counter: PacketCounter | undefined
  readonly headers: number
  /** Makes the counter of the third header. */
  readonly setUp?: (setup: Buffer) => PacketCounter | undefined
  setup: Buffer
  packets: number
  /** Whether the last packet goes on in the next page. */
  isOpen: boolean
  /** Where the first page with sound starts, and the last one ends, in samples, as the pages claim. */
  start: number | undefined
  end: number
}

const MAX_STREAMS = 1000
/** What looks like a page but is damaged can hold pages, so its bytes are read more than once. */
const MAX_DAMAGED_PAGES = 1000
const silent: readonly string[] = ['\x80theora', 'fishead\0', 'OVP80', '\x80kate\0\0\0', 'BBCD']

/** Recognizes a stream by its first packet. undefined: it cannot be counted. */
function identify(packet: Buffer): Stream | 'no sound' | undefined {
  const text = packet.toString('latin1')
  if (silent.some((it) => text.startsWith(it))) return 'no sound'
  const blank = { skipped: 0, setup: Buffer.alloc(0), packets: 0, isOpen: false, start: undefined, end: 0 }
  if (text.startsWith('OpusHead') && packet.length >= 12) {
    const skipped = packet.readUInt16LE(10)
    return { ...blank, samplesPerSecond: opusRate, skipped, counter: opusCounter(), headers: 2 }
  }
  const vorbis = readVorbisIdentity(packet)
  if (vorbis) {
    const setUp = (setup: Buffer): PacketCounter | undefined => vorbisCounter(vorbis, setup)
    return { ...blank, samplesPerSecond: vorbis.sampleRate, counter: undefined, headers: 3, setUp }
  }
  // Nine bytes of mapping header, then the start of a FLAC file: four letters, the head of a block, STREAMINFO.
  const rate = text.startsWith('\x7fFLAC') ? flacRate(packet.subarray(17)) : 0
  if (rate > 0) return { ...blank, samplesPerSecond: rate, counter: flacCounter(rate), headers: 1 }
  return undefined
}

/** Counts the packets of a page. false: the stream is not what it says. */
async function addPage(file: FileWindow, stream: Stream, page: OggPage): Promise<boolean> {
  let position = page.content
  for (let index = 0; index < page.segments.length;) {
    let bytes = 0
    let isWhole = false
    while (index < page.segments.length && !isWhole) {
      const size = page.segments[index++] ?? 0
      bytes += size
      isWhole = size < 255
    }
    // A truncated page has packets that are not there.
    if (position + bytes > file.length) return true
    if (!stream.isOpen) stream.packets++
    const done = addPiece(file, stream, position, bytes, isWhole)
    if (!(done instanceof Promise ? await done : done)) return false
    stream.isOpen = !isWhole
    position += bytes
  }
  if (page.granule <= 0 || stream.packets <= stream.headers) return true
  const counted = Math.round((stream.counter?.seconds ?? 0) * stream.samplesPerSecond)
  // A part cut from a longer recording keeps its positions.
  stream.start ??= Math.max(0, page.granule - counted)
  stream.end = Math.max(stream.end, page.granule)
  return true
}

function addPiece(
  file: FileWindow,
  stream: Stream,
  position: number,
  bytes: number,
  isWhole: boolean,
): boolean | Promise<boolean> {
  if (stream.packets > stream.headers) {
    const reading = stream.counter?.add(file, position, bytes, stream.isOpen)
    return reading ? reading.then(() => true) : true
  }
  return stream.setUp && stream.packets === stream.headers ? addSetup(file, stream, position, bytes, isWhole) : true
}

async function addSetup(
  file: FileWindow,
  stream: Stream,
  position: number,
  bytes: number,
  isWhole: boolean,
): Promise<boolean> {
  if (stream.setup.length + bytes > MAX_SETUP_BYTES) return false
  stream.setup = Buffer.concat([stream.setup, await file.at(position, bytes)])
  if (!isWhole) return true
  stream.counter = stream.setUp?.(stream.setup)
  return stream.counter !== undefined
}

/** What the claimed positions leave out of the packets. */
function discardedSeconds({ counter, samplesPerSecond, skipped, start = 0, end }: Stream): number {
  const claimed = Math.max(0, end - start - skipped) / samplesPerSecond
  return Math.max(0, (counter?.seconds ?? 0) - claimed)
}
