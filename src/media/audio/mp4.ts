import type { FileWindow } from './file-window.ts'
import { eachBox, type Mp4Box } from './mp4-boxes.ts'
import { isSpatial, MAX_ENTRY_BYTES, mp4Codec, type Mp4Codec } from './mp4-codecs.ts'
import { editedSeconds, readEdits, type Mp4Edits } from './mp4-edits.ts'
import { countFragment, readFragment, type Fragment, type FragmentDefaults } from './mp4-fragments.ts'
import { countIndexed } from './mp4-samples.ts'
import { packetBudget, type PacketBudget } from './packet-counter.ts'

/**
 * The length of MP4 (and M4A, MOV, 3GP) is the sum of the samples in the index of its sound track and in its fragments,
 * each as long as its codec makes it. Which of several sound tracks is played is up to the decoder, so the longest
 * counts. The edit list may only cut off the padding of the encoder.
 */
export async function mp4Seconds(file: FileWindow): Promise<number | undefined> {
  const movie: Movie = { ticksPerSecond: 0, tracks: [], defaults: new Map(), moofStart: 0, budget: packetBudget() }
  const isWhole = await eachBox(file, (box) => readers[box.type]?.(movie, file, box) ?? true)
  if (!isWhole) return undefined
  let longest: number | undefined
  for (const track of movie.tracks) {
    if (track.isLeftOut || (!track.isSound && !track.codec)) continue
    const seconds = await trackSeconds(file, track, movie)
    // A track that cannot be counted might be the one that is played.
    if (seconds === undefined) return undefined
    longest = Math.max(longest ?? 0, seconds)
  }
  return longest
}

interface Track {
  id: number
  /** Also if only one of several handlers says so. */
  isSound: boolean
  isLeftOut: boolean
  ticksPerSecond: number
  /** What the description says; undefined: it cannot be counted. */
  codec: Mp4Codec | undefined
  edits: Mp4Edits
  /** The boxes that a track has once. */
  readonly boxes: Map<string, Mp4Box>
}

interface Movie {
  ticksPerSecond: number
  readonly tracks: Track[]
  readonly defaults: Map<number, FragmentDefaults>
  moofStart: number
  fragment?: Fragment | undefined
  readonly budget: PacketBudget
}

/** false: the file contradicts itself. */
type Reader = (movie: Movie, file: FileWindow, box: Mp4Box) => boolean | Promise<boolean>

const MAX_TRACKS = 100

async function trackSeconds(file: FileWindow, track: Track, movie: Movie): Promise<number | undefined> {
  const { codec, boxes, edits } = track
  if (!codec) return undefined
  const sizes = boxes.get('stsz')
  const runs = boxes.get('stsc')
  const chunks = boxes.get('stco')
  if (sizes || runs || chunks) {
    // Decoders differ about an index that is not complete.
    if (!sizes || !runs || !chunks) return undefined
    if (!(await countIndexed(file, codec, { sizes, runs, chunks }, movie.budget))) return undefined
  }
  return editedSeconds(codec.counter.seconds, edits, { movie: movie.ticksPerSecond, track: track.ticksPerSecond })
}

/** Reads a box that belongs to a track and must not occur twice in it: decoders differ about which one they take. */
function once(
  read: (track: Track, file: FileWindow, box: Mp4Box) => boolean | Promise<boolean>,
  name?: string,
): Reader {
  return (movie, file, box) => {
    const track = movie.tracks.at(-1)
    if (!track) return true
    const key = name ?? box.type
    if (track.boxes.has(key)) return false
    track.boxes.set(key, box)
    return read(track, file, box)
  }
}

const readers: Readonly<Record<string, Reader>> = {
  async mvhd(movie, file, box) {
    movie.ticksPerSecond = await readTimescale(file, box)
    return true
  },
  trak(movie) {
    const edits = { movieTicks: 0, parts: [] }
    movie.tracks.push({
      id: 0,
      isSound: false,
      isLeftOut: false,
      ticksPerSecond: 0,
      codec: undefined,
      edits,
      boxes: new Map(),
    })
    return movie.tracks.length <= MAX_TRACKS
  },
  tkhd: once(async (track, file, box) => {
    const bytes = await file.at(box.content, 24)
    if (bytes.length === 24) track.id = bytes.readUInt32BE(bytes[0] === 1 ? 20 : 12)
    return true
  }),
  mdhd: once(async (track, file, box) => {
    track.ticksPerSecond = await readTimescale(file, box)
    return true
  }),
  // QuickTime has two: for the media, and for its data.
  async hdlr(movie, file, box) {
    const track = movie.tracks.at(-1)
    if (track && (await file.at(box.content + 8, 4)).toString('latin1') === 'soun') track.isSound = true
    return true
  },
  elst: once(async (track, file, box) => {
    const edits = await readEdits(file, box)
    if (edits) track.edits = edits
    return edits !== undefined
  }),
  stsd: once(async (track, file, box) => {
    const description = Buffer.from(await file.at(box.content, Math.min(MAX_ENTRY_BYTES, box.end - box.content)))
    track.codec = mp4Codec(description)
    track.isLeftOut = isSpatial(description)
    return true
  }),
  stsz: once(() => true),
  stz2: once(() => true, 'stsz'),
  stsc: once(() => true),
  stco: once(() => true),
  co64: once(() => true, 'stco'),
  async trex(movie, file, box) {
    const bytes = await file.at(box.content, 20)
    if (bytes.length === 20) movie.defaults.set(bytes.readUInt32BE(4), { sampleBytes: bytes.readUInt32BE(16) })
    return movie.defaults.size <= MAX_TRACKS
  },
  moof(movie, _file, box) {
    movie.moofStart = box.start
    movie.fragment = undefined
    // Decoders that read the index first play these fragments, whose tracks are not known yet.
    return movie.tracks.length > 0
  },
  async tfhd(movie, file, box) {
    movie.fragment = await readFragment(file, box, movie)
    return true
  },
  async trun(movie, file, box) {
    const { fragment } = movie
    const codec = movie.tracks.find(({ id }) => id === fragment?.trackId)?.codec
    return !fragment || !codec || (await countFragment(file, box, fragment, codec, movie.budget))
  },
}

async function readTimescale(file: FileWindow, box: Mp4Box): Promise<number> {
  const bytes = await file.at(box.content, 24)
  return bytes.length < 24 ? 0 : bytes.readUInt32BE(bytes[0] === 1 ? 20 : 12)
}
