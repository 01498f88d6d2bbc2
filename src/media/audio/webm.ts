import { opusPacketMs } from './opus.ts'
import type { FileWindow } from './file-window.ts'

/**
 * The length of WebM (and Matroska) runs from the first block of sound to the end of the last. Browsers leave
 * out the duration in the header. Elements are read in one flat pass that enters masters, so an unknown size
 * does no harm.
 */
export async function webmSeconds(file: FileWindow): Promise<number | undefined> {
  const state: State = { nanosecondsPerTick: 1_000_000, tracks: new Map(), clusterTicks: 0 }
  let position = 0
  let elements = 0
  while (position < file.length) {
    const element = readElement(file.peek(position, 16) ?? (await file.at(position, 16)), position)
    if (++elements > MAX_ELEMENTS) return undefined
    if (!element) {
      // Damaged. Continue with the next cluster, as decoders do.
      position = await file.find(CLUSTER_START, position + 1, 4, isCluster)
      continue
    }
    if (masters.has(element.id)) {
      if (element.id === ID.trackEntry) state.track = newTrack()
      position = element.content
      continue
    }
    const reader = readers[element.id]
    if (reader) {
      const bytes = Math.min(element.size, 64)
      reader(state, file.peek(element.content, bytes) ?? (await file.at(element.content, bytes)))
    }
    position = element.content + element.size
  }
  const sound = [...state.tracks.values()].find((track) => track.isSound && track.firstTicks !== undefined)
  if (!sound) return undefined
  const ticks = (sound.lastTicks ?? 0) - (sound.firstTicks ?? 0) + sound.packetTicks
  return (ticks * state.nanosecondsPerTick - sound.delayNanoseconds - sound.paddingNanoseconds) / 1e9
}

interface Track {
  number: number
  isSound: boolean
  isOpus: boolean
  firstTicks?: number
  lastTicks?: number
  /** The length of the last packet, from Opus, from the track, or from the distance to the previous one. */
  packetTicks: number
  defaultNanoseconds?: number
  /** What a decoder discards at the start, and at the end of the last packet. */
  delayNanoseconds: number
  paddingNanoseconds: number
}

interface State {
  nanosecondsPerTick: number
  /** The track being described, and the track of the last block. */
  track?: Track
  block?: Track
  readonly tracks: Map<number, Track>
  clusterTicks: number
}

interface Element {
  readonly id: number
  readonly content: number
  readonly size: number
}

const MAX_ELEMENTS = 1_000_000
const CLUSTER_START = 0x1f
/** The longest Opus packet: 120 ms. */
const MAX_DISCARDED_NANOSECONDS = 120e6

const ID = {
  segment: 0x18538067,
  info: 0x1549a966,
  timestampScale: 0x2ad7b1,
  tracks: 0x1654ae6b,
  trackEntry: 0xae,
  trackNumber: 0xd7,
  trackType: 0x83,
  codec: 0x86,
  defaultDuration: 0x23e383,
  cluster: 0x1f43b675,
  timestamp: 0xe7,
  blockGroup: 0xa0,
  block: 0xa1,
  simpleBlock: 0xa3,
  codecDelay: 0x56aa,
  discardPadding: 0x75a2,
} as const

const masters: ReadonlySet<number> = new Set([ID.segment, ID.info, ID.tracks, ID.trackEntry, ID.cluster, ID.blockGroup])

const readers: Readonly<Record<number, (state: State, bytes: Buffer) => void>> = {
  [ID.timestampScale](state, bytes) {
    state.nanosecondsPerTick = unsigned(bytes) || 1_000_000
  },
  [ID.trackNumber](state, bytes) {
    if (!state.track) return
    state.track.number = unsigned(bytes)
    state.tracks.set(state.track.number, state.track)
  },
  [ID.trackType](state, bytes) {
    if (state.track) state.track.isSound = unsigned(bytes) === 2
  },
  [ID.codec](state, bytes) {
    if (state.track) state.track.isOpus = bytes.toString('latin1').startsWith('A_OPUS')
  },
  [ID.defaultDuration](state, bytes) {
    if (state.track) state.track.defaultNanoseconds = unsigned(bytes)
  },
  [ID.codecDelay](state, bytes) {
    if (state.track) state.track.delayNanoseconds = Math.min(unsigned(bytes), MAX_DISCARDED_NANOSECONDS)
  },
  [ID.discardPadding](state, bytes) {
    const { block } = state
    // A negative value means padding at the start, which Opus does not use.
    const isNegative = ((bytes[0] ?? 0) & 0x80) !== 0
    if (block && !isNegative) block.paddingNanoseconds = Math.min(unsigned(bytes), MAX_DISCARDED_NANOSECONDS)
  },
  [ID.timestamp](state, bytes) {
    state.clusterTicks = unsigned(bytes)
  },
  [ID.block]: readBlock,
  [ID.simpleBlock]: readBlock,
}

function newTrack(): Track {
  return { number: 0, isSound: false, isOpus: false, packetTicks: 0, delayNanoseconds: 0, paddingNanoseconds: 0 }
}

function readBlock(state: State, bytes: Buffer): void {
  const number = readVariable(bytes, 0, true)
  const track = number && state.tracks.get(number.value)
  if (!number || !track?.isSound || bytes.length < number.length + 4) return
  state.block = track
  track.paddingNanoseconds = 0
  const ticks = state.clusterTicks + bytes.readInt16BE(number.length)
  const previous = track.lastTicks
  track.firstTicks ??= ticks
  track.lastTicks = Math.max(previous ?? ticks, ticks)
  const packet = bytes.subarray(number.length + 3)
  if (track.isOpus) track.packetTicks = (opusPacketMs(packet[0] ?? 0, packet[1] ?? 0) * 1e6) / state.nanosecondsPerTick
  else if (track.defaultNanoseconds) track.packetTicks = track.defaultNanoseconds / state.nanosecondsPerTick
  else if (previous !== undefined) track.packetTicks = Math.max(0, ticks - previous)
}

function isCluster(bytes: Buffer, at: number): boolean {
  return bytes.length >= at + 4 && bytes.readUInt32BE(at) === ID.cluster
}

function readElement(bytes: Buffer, position: number): Element | undefined {
  const id = readVariable(bytes, 0, false)
  const size = id && readVariable(bytes, id.length, true)
  if (!size || id.length > 4) return undefined
  return { id: id.value, content: position + id.length + size.length, size: size.value }
}

/** Reads an EBML variable-length number. The length marker is part of an id, but not of a size. */
function readVariable(
  bytes: Buffer,
  offset: number,
  dropMarker: boolean,
): { value: number; length: number } | undefined {
  const lead = bytes[offset] ?? 0
  const length = Math.clz32(lead) - 23
  if (lead === 0 || offset + length > bytes.length) return undefined
  let value = dropMarker ? lead & (0xff >>> length) : lead
  for (let index = 1; index < length; index++) value = value * 256 + (bytes[offset + index] ?? 0)
  return { value, length }
}

function unsigned(bytes: Buffer): number {
  return bytes.subarray(0, 8).reduce((sum, byte) => sum * 256 + byte, 0)
}
