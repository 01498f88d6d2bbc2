import type { FileWindow } from './file-window.ts'

/**
 * The length of MP4 (and M4A, MOV) is the sum of the sample durations in the index of the sound track or in its
 * fragments, minus what the edit list cuts off. Boxes are read in one flat pass that enters containers.
 */
export async function mp4Seconds(file: FileWindow): Promise<number | undefined> {
  const state: State = { movieTicksPerSecond: 0, tracks: new Map(), defaults: new Map() }
  let position = 0
  let boxes = 0
  while (position + 8 <= file.length) {
    const box = readBox(file.peek(position, 16) ?? (await file.at(position, 16)), position, file.length)
    if (!box) break
    if (++boxes > MAX_BOXES) return undefined
    if (containers.has(box.type)) {
      if (box.type === 'trak') state.track = { id: 0, isSound: false, ticksPerSecond: 0, ticks: 0, editedTicks: 0 }
      position = box.content
      continue
    }
    const reader = readers[box.type]
    if (reader) await reader(state, file, box)
    position = box.end
  }
  const sound = [...state.tracks.values()].find((track) => track.isSound && track.ticksPerSecond > 0)
  if (!sound) return undefined
  const seconds = sound.ticks / sound.ticksPerSecond
  const edited = state.movieTicksPerSecond > 0 ? sound.editedTicks / state.movieTicksPerSecond : 0
  return edited > 0 ? Math.min(seconds, edited) : seconds
}

interface Track {
  id: number
  isSound: boolean
  ticksPerSecond: number
  ticks: number
  /** What the edit list keeps, in movie ticks; 0 without an edit list. */
  editedTicks: number
}

interface State {
  movieTicksPerSecond: number
  track?: Track
  readonly tracks: Map<number, Track>
  /** The default sample duration by track, for fragments without one. */
  readonly defaults: Map<number, number>
  fragment?: { readonly track: Track | undefined; readonly sampleTicks: number }
}

interface Box {
  readonly type: string
  readonly content: number
  readonly end: number
}

type Reader = (state: State, file: FileWindow, box: Box) => void | Promise<void>

const MAX_BOXES = 200_000
const containers: ReadonlySet<string> = new Set([
  'moov',
  'trak',
  'mdia',
  'minf',
  'stbl',
  'edts',
  'mvex',
  'moof',
  'traf',
])

const readers: Readonly<Record<string, Reader>> = {
  async mvhd(state, file, box) {
    state.movieTicksPerSecond = await readTimescale(file, box)
  },
  async tkhd(state, file, box) {
    const bytes = await file.at(box.content, 24)
    if (!state.track || bytes.length < 24) return
    state.track.id = bytes.readUInt32BE(bytes[0] === 1 ? 20 : 12)
    state.tracks.set(state.track.id, state.track)
  },
  async mdhd(state, file, box) {
    if (state.track) state.track.ticksPerSecond = await readTimescale(file, box)
  },
  async hdlr(state, file, box) {
    const bytes = await file.at(box.content, 12)
    if (state.track && bytes.toString('latin1', 8, 12) === 'soun') state.track.isSound = true
  },
  async elst(state, file, box) {
    const isLong = (await file.at(box.content, 1))[0] === 1
    const [durationBytes, entryBytes] = isLong ? [8, 20] : [4, 12]
    await eachEntry(file, box, 4, entryBytes, (bytes) => {
      // An entry without media is a pause before the sound. It cuts nothing off.
      const isPause = isLong ? bytes.readBigInt64BE(8) === -1n : bytes.readInt32BE(4) === -1
      if (state.track && !isPause) state.track.editedTicks += readTicks(bytes, durationBytes)
    })
  },
  async stts(state, file, box) {
    const { track } = state
    if (!track?.isSound) return
    await eachEntry(file, box, 4, 8, (bytes) => {
      track.ticks += bytes.readUInt32BE(0) * bytes.readUInt32BE(4)
    })
  },
  async trex(state, file, box) {
    const bytes = await file.at(box.content, 16)
    if (bytes.length === 16) state.defaults.set(bytes.readUInt32BE(4), bytes.readUInt32BE(12))
  },
  async tfhd(state, file, box) {
    const bytes = await file.at(box.content, Math.min(28, box.end - box.content))
    if (bytes.length < 8) return
    const flags = bytes.readUInt32BE(0)
    const id = bytes.readUInt32BE(4)
    const at = 8 + (flags & 1 ? 8 : 0) + (flags & 2 ? 4 : 0)
    const own = flags & 8 && bytes.length >= at + 4 ? bytes.readUInt32BE(at) : undefined
    state.fragment = { track: state.tracks.get(id), sampleTicks: own ?? state.defaults.get(id) ?? 0 }
  },
  async trun(state, file, box) {
    const { track, sampleTicks } = state.fragment ?? {}
    const bytes = await file.at(box.content, 8)
    if (!track?.isSound || bytes.length < 8) return
    const flags = bytes.readUInt32BE(0)
    const fields = [0x100, 0x200, 0x400, 0x800].filter((flag) => flags & flag).length
    if (!(flags & 0x100)) {
      track.ticks += bytes.readUInt32BE(4) * (sampleTicks ?? 0)
      return
    }
    const extra = (flags & 1 ? 4 : 0) + (flags & 4 ? 4 : 0)
    await eachEntry(file, box, 4, fields * 4, (entry) => (track.ticks += entry.readUInt32BE(0)), extra)
  },
}

/** Reads a count and that many entries, as far as the box has them. */
async function eachEntry(
  file: FileWindow,
  box: Box,
  countAt: number,
  entryBytes: number,
  read: (bytes: Buffer) => void,
  extra = 0,
): Promise<void> {
  const head = await file.at(box.content + countAt, 4)
  if (head.length < 4) return
  const count = head.readUInt32BE(0)
  let position = box.content + countAt + 4 + extra
  for (let index = 0; index < count && position + entryBytes <= box.end; index++, position += entryBytes) {
    const bytes = file.peek(position, entryBytes) ?? (await file.at(position, entryBytes))
    if (bytes.length < entryBytes) return
    read(bytes)
  }
}

async function readTimescale(file: FileWindow, box: Box): Promise<number> {
  const bytes = await file.at(box.content, 24)
  return bytes.length < 24 ? 0 : bytes.readUInt32BE(bytes[0] === 1 ? 20 : 12)
}

function readTicks(bytes: Buffer, count: number): number {
  return count === 8 ? Number(bytes.readBigUInt64BE(0)) : bytes.readUInt32BE(0)
}

function readBox(bytes: Buffer, position: number, length: number): Box | undefined {
  if (bytes.length < 8) return undefined
  const short = bytes.readUInt32BE(0)
  const type = bytes.toString('latin1', 4, 8)
  if (short === 0) return { type, content: position + 8, end: length }
  if (short !== 1) return short < 8 ? undefined : { type, content: position + 8, end: position + short }
  if (bytes.length < 16) return undefined
  const long = Number(bytes.readBigUInt64BE(8))
  return long < 16 ? undefined : { type, content: position + 16, end: position + long }
}
