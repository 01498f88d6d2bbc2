import type { FileWindow } from './file-window.ts'
import { WINDOW_BYTES } from './file-window.ts'
import { packetBudget, withoutPadding, type PacketBudget } from './packet-counter.ts'
import { eachElement, ID, readFloat, readUnsigned, readVariable, type WebmElement } from './webm-elements.ts'
import { newTrack, trackCounter, type WebmTrack } from './webm-tracks.ts'

/**
 * The length of WebM (and Matroska) is the sum of the packets of its sound track. The time of a block is whatever the
 * file says, so it does not count. Which of several sound tracks is played is up to the decoder, so the longest counts.
 */
export async function webmSeconds(file: FileWindow): Promise<number | undefined> {
  const state: State = { tracks: new Map(), budget: packetBudget() }
  const isWhole = await eachElement(file, (element) => readers[element.id]?.(state, file, element) ?? true)
  if (!isWhole) return undefined
  let longest: number | undefined
  for (const track of state.tracks.values()) {
    if (!isSound(track)) continue
    const counter = track.counter ?? trackCounter(track)
    // A track that cannot be counted might be the one that is played.
    if (!counter) return undefined
    longest = Math.max(longest ?? 0, withoutPadding(counter.seconds, track.discardedSeconds))
  }
  return longest
}

interface State {
  /** The track being described, up to where, and what was read about it. */
  entry?: { readonly track: WebmTrack; readonly end: number; readonly seen: Set<number> }
  /** The track of the last block. */
  block?: WebmTrack | undefined
  readonly tracks: Map<number, WebmTrack>
  readonly budget: PacketBudget
}

/** false: the file contradicts itself. */
type Reader = (state: State, file: FileWindow, element: WebmElement) => boolean | Promise<boolean>

const MAX_TRACKS = 100

function isSound({ isSound, codec }: WebmTrack): boolean {
  return isSound || codec.startsWith('A_')
}

/** Reads a value of the track that is being described. Of two, which one counts is up to the decoder. */
function ofTrack(read: (track: WebmTrack, bytes: Buffer, state: State) => boolean | void): Reader {
  return async (state, file, { id, content, end }) => {
    const { entry } = state
    if (!entry || content > entry.end) return true
    if (entry.seen.has(id) || end - content > WINDOW_BYTES) return false
    entry.seen.add(id)
    return read(entry.track, await file.at(content, end - content), state) ?? true
  }
}

const readers: Readonly<Record<number, Reader>> = {
  [ID.trackEntry](state, _file, { end }) {
    state.entry = { track: newTrack(), end, seen: new Set() }
    return state.tracks.size < MAX_TRACKS
  },
  [ID.trackNumber]: ofTrack((track, bytes, { tracks }) => {
    const number = readUnsigned(bytes)
    if (tracks.has(number)) return false
    tracks.set(number, track)
    return true
  }),
  [ID.trackType]: ofTrack((track, bytes) => {
    track.isSound = readUnsigned(bytes) === 2
  }),
  [ID.codec]: ofTrack((track, bytes) => {
    track.codec = bytes.toString('latin1').replace(/\0.*$/s, '')
  }),
  [ID.codecPrivate]: ofTrack((track, bytes) => {
    track.codecPrivate = Buffer.from(bytes)
  }),
  [ID.contentEncodings]: ofTrack((track) => {
    track.isEncoded = true
  }),
  [ID.samplingFrequency]: ofTrack((track, bytes) => {
    track.sampleRate = readFloat(bytes)
  }),
  [ID.channels]: ofTrack((track, bytes) => {
    track.channels = readUnsigned(bytes)
  }),
  [ID.bitDepth]: ofTrack((track, bytes) => {
    track.bitDepth = readUnsigned(bytes)
  }),
  [ID.codecDelay]: ofTrack((track, bytes) => {
    track.discardedSeconds += readUnsigned(bytes) / 1e9
  }),
  async [ID.discardPadding](state, file, { content, end }) {
    const bytes = await file.at(content, Math.min(8, end - content))
    // A negative value means padding at the start, which Opus does not use.
    const isNegative = ((bytes[0] ?? 0) & 0x80) !== 0
    if (state.block && !isNegative) state.block.discardedSeconds += readUnsigned(bytes) / 1e9
    return true
  },
  // Without its tracks, a cluster cannot be counted. Some decoders look for them behind it.
  [ID.cluster]: (state) => state.tracks.size > 0,
  [ID.block]: readBlock,
  [ID.simpleBlock]: readBlock,
}

async function readBlock(state: State, file: FileWindow, { content, end }: WebmElement): Promise<boolean> {
  const head = file.peek(content, 12) ?? (await file.at(content, 12))
  const number = readVariable(head, 0, true)
  const track = number && state.tracks.get(number.value)
  state.block = track
  if (!number || !track || !isSound(track)) return true
  track.counter ??= trackCounter(track)
  const { counter } = track
  if (!counter) return false
  const flags = head[number.length + 2] ?? 0
  const first = content + number.length + 3
  const packets = await packetsIn(file, (flags >>> 1) & 3, first, end)
  if (!packets) return false
  for (const [position, bytes] of packets) {
    const reading = counter.add(file, position, bytes)
    if (reading) await reading
    const turn = state.budget.spend()
    if (turn) await turn
  }
  return !state.budget.isSpent
}

type Packet = readonly [position: number, bytes: number]

const XIPH_LACING = 1
const FIXED_LACING = 2

/** Up to 256 packets can share a block. undefined: their sizes are not there. */
async function packetsIn(
  file: FileWindow,
  lacing: number,
  start: number,
  end: number,
): Promise<readonly Packet[] | undefined> {
  if (start >= end) return []
  if (lacing === 0) return [[start, end - start]]
  const bytes = Buffer.from(await file.at(start, Math.min(WINDOW_BYTES, end - start)))
  const laces = readLaces(bytes, lacing, end - start)
  if (!laces) return undefined
  const packets: Packet[] = []
  let position = start + laces.headBytes
  for (const size of laces.sizes) {
    if (size < 0 || position + size > end) return undefined
    packets.push([position, size])
    position += size
  }
  packets.push([position, end - position])
  return packets
}

interface Laces {
  /** All but the last, which has the rest. */
  readonly sizes: readonly number[]
  readonly headBytes: number
}

/** The sizes come first: each in bytes of up to 255, all equal, or the first and then differences. */
function readLaces(bytes: Buffer, lacing: number, blockBytes: number): Laces | undefined {
  const count = bytes[0] ?? 0
  if (lacing === FIXED_LACING) {
    const size = Math.floor((blockBytes - 1) / (count + 1))
    return { sizes: Array.from({ length: count }, () => size), headBytes: 1 }
  }
  const sizes: number[] = []
  let at = 1
  while (sizes.length < count) {
    if (lacing === XIPH_LACING) {
      let size = 0
      while (bytes[at] === 255) size += bytes[at++] ?? 0
      if (at >= bytes.length) return undefined
      sizes.push(size + (bytes[at++] ?? 0))
      continue
    }
    const read = readVariable(bytes, at, true)
    if (!read) return undefined
    at += read.length
    const before = sizes.at(-1)
    // Differences are stored with an offset, so that they are positive.
    sizes.push(before === undefined ? read.value : before + read.value - (2 ** (7 * read.length - 1) - 1))
  }
  return { sizes, headBytes: at }
}
