import { readFileSync } from 'node:fs'
import decode from 'audio-decode'
import { formatOf } from '../../src/inference/audio/measure/audio-format.ts'
import { decodedSeconds } from '../../src/inference/audio/measure/decoded-seconds.ts'
import {
  box,
  boxIn,
  mp4File,
  mp4Packets,
  oggPackets,
  oggPages,
  sealPages,
  webmFile,
  words,
  type PacketTrack,
} from './audio-containers.ts'

const folder = new URL('../fixtures/audio/', import.meta.url)

export function clip(name: string): Buffer {
  return readFileSync(new URL(name, folder))
}

/** As the thread measures it. undefined: it cannot be decoded, and the engine has to confirm its length. */
export async function billedMs(bytes: Buffer): Promise<number | undefined> {
  const source = { length: bytes.length, read: async (into: Buffer, position: number) => bytes.copy(into, 0, position) }
  const read = async (position: number, count: number) => Buffer.from(bytes.subarray(position, position + count))
  const format = await formatOf(source)
  const seconds = format && (await decodedSeconds(format, bytes.length, read).catch(() => undefined))
  return seconds === undefined ? undefined : Math.max(1, Math.round(seconds * 1000))
}

/** How long a decoder plays the file; undefined: it refuses it. */
export async function playedMs(bytes: Buffer): Promise<number | undefined> {
  try {
    const { channelData, sampleRate } = await decode(bytes)
    const samples = channelData[0]?.length ?? 0
    return samples > 0 && sampleRate > 0 ? (samples / sampleRate) * 1000 : undefined
  } catch {
    return undefined
  }
}

/** The most that headers can take off: encoder delay and padding. Rounding comes on top. */
export const TOLERANCE_MS = 201

/** A number in a file that a caller can change. */
export interface Field {
  readonly name: string
  readonly at: number
  readonly bytes: number
  readonly isLittle?: boolean
  /**
   * claim: the container only says so. Some decoders believe it and others do not, so the bill must cover both what the
   * decoder plays and the honest length. codec: the decoder needs it to play, so what it plays is the truth, and there
   * is nothing to compare if it refuses the file.
   */
  readonly kind: 'claim' | 'codec'
}

/** An honest recording, what can be forged in it, and what has to be recomputed afterwards. */
export interface Honest {
  readonly name: string
  readonly bytes: Buffer
  readonly fields: readonly Field[]
  readonly seal?: (bytes: Buffer) => void
}

export function forge({ bytes, seal }: Honest, changes: readonly (readonly [Field, bigint])[]): Buffer {
  const forged = Buffer.from(bytes)
  for (const [field, value] of changes) {
    for (let index = 0; index < field.bytes; index++) {
      const shift = BigInt(8 * (field.isLittle ? index : field.bytes - 1 - index))
      forged[field.at + index] = Number((value >> shift) & 0xffn)
    }
  }
  seal?.(forged)
  return forged
}

/** The packets of the clips, ready for any container. */
export function packetTracks(): Readonly<Record<'opus' | 'aac' | 'flac' | 'mpeg' | 'pcm' | 'vorbis', PacketTrack>> {
  const [head = Buffer.alloc(0), , ...opus] = oggPackets(clip('opus.ogg'))
  const opusBox = Buffer.alloc(11)
  opusBox[1] = 1
  opusBox.writeUInt16BE(head.readUInt16LE(10), 2)
  opusBox.writeUInt32BE(48_000, 4)
  const descriptors = boxIn(clip('late-index.m4a'), 'esds')
  const config = descriptors.indexOf(Buffer.from([5, 0x80, 0x80, 0x80, 5])) + 5
  const [mapping = Buffer.alloc(0), ...flac] = oggPackets(clip('flac.ogg'))
  const streamInfo = Buffer.from(mapping.subarray(13, 13 + 38))
  streamInfo[0] = 0x80
  const [identity = Buffer.alloc(0), comment = Buffer.alloc(0), setup = Buffer.alloc(0), ...vorbis] = oggPackets(
    clip('vorbis.ogg'),
  )
  const samples = clip('plain.wav').subarray(44)
  const nothing = Buffer.alloc(0)
  return {
    opus: {
      entryType: 'Opus',
      entryBoxes: box('dOps', opusBox),
      codec: 'A_OPUS',
      codecPrivate: head,
      sampleRate: 48_000,
      packets: opus,
      packetSamples: 960,
    },
    aac: {
      entryType: 'mp4a',
      entryBoxes: descriptors,
      codec: 'A_AAC',
      codecPrivate: descriptors.subarray(config, config + 5),
      sampleRate: 16_000,
      packets: mp4Packets(clip('late-index.m4a')),
      packetSamples: 1024,
    },
    flac: {
      entryType: 'fLaC',
      entryBoxes: box('dfLa', words(0), streamInfo),
      codec: 'A_FLAC',
      codecPrivate: Buffer.concat([Buffer.from('fLaC'), streamInfo]),
      sampleRate: 8000,
      packets: flac.filter((packet) => packet[0] === 0xff),
      packetSamples: 4608,
    },
    mpeg: {
      entryType: '.mp3',
      entryBoxes: nothing,
      codec: 'A_MPEG/L3',
      sampleRate: 22_050,
      packets: mpegFrames(clip('bare.mp3')),
      packetSamples: 576,
    },
    pcm: {
      entryType: 'sowt',
      entryBoxes: nothing,
      codec: 'A_PCM/INT/LIT',
      sampleRate: 8000,
      packets: Array.from({ length: 17 }, (_, index) => samples.subarray(index * 1600, (index + 1) * 1600)),
      packetSamples: 800,
    },
    vorbis: {
      entryType: 'none',
      entryBoxes: nothing,
      codec: 'A_VORBIS',
      codecPrivate: Buffer.concat([
        Buffer.from([
          2,
          identity.length,
          ...Array<number>(Math.floor(comment.length / 255)).fill(255),
          comment.length % 255,
        ]),
        identity,
        comment,
        setup,
      ]),
      sampleRate: 16_000,
      packets: vorbis,
      packetSamples: 512,
    },
  }
}

const MPEG_2_KILOBITS = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]

/** The frames of bare.mp3: MPEG 2, layer 3, 22,050 Hz. */
export function mpegFrames(file: Buffer): readonly Buffer[] {
  const frames: Buffer[] = []
  for (let at = 0; at < file.length;) {
    const third = file[at + 2] ?? 0
    const length = Math.floor((72_000 * (MPEG_2_KILOBITS[third >>> 4] ?? 0)) / 22_050) + ((third >>> 1) & 1)
    frames.push(file.subarray(at, at + length))
    at += length
  }
  return frames
}

/** Every kind of container and codec, with every field that says something about time. */
export function honestRecordings(): readonly Honest[] {
  const tracks = packetTracks()
  const fixture = (name: string, fields: (bytes: Buffer) => readonly Field[], seal?: Honest['seal']): Honest => {
    const bytes = clip(name)
    return { name, bytes, fields: fields(bytes), ...(seal && { seal }) }
  }
  const wavs = ['plain.wav', 'stereo.wav', 'extensible.wav', 'adpcm.wav', 'streamed.wav']
  const built = (['opus', 'aac', 'flac', 'mpeg', 'pcm'] as const).map((codec): Honest => {
    const edits = [{ movieTicks: 1700, start: 0 }]
    const bytes = mp4File([tracks[codec]], { edits })
    return { name: `${codec} in MP4`, bytes, fields: mp4Fields(bytes) }
  })
  const matroska = Object.entries(tracks).map(([codec, track]): Honest => {
    const bytes = webmFile(track)
    return { name: `${codec} in Matroska`, bytes, fields: webmFields(bytes) }
  })
  return [
    ...wavs.map((name) => fixture(name, wavFields)),
    ...['constant.mp3', 'variable.mp3'].map((name) => fixture(name, mp3Fields)),
    ...['plain.flac', 'streamed.flac'].map((name) => fixture(name, flacFields, sealFrames)),
    ...['opus.ogg', 'later-part.ogg', 'vorbis.ogg', 'flac.ogg'].map((name) => fixture(name, oggFields, sealPages)),
    ...['late-index.m4a', 'early-index.m4a', 'fragmented.mp4'].map((name) => fixture(name, mp4Fields)),
    ...['opus.webm', 'live.webm', 'vorbis.webm'].map((name) => fixture(name, webmFields)),
    ...built,
    ...matroska,
  ]
}

function wavFields(bytes: Buffer): readonly Field[] {
  const format = bytes.indexOf('fmt ', 0, 'latin1') + 8
  const data = bytes.indexOf('data', 0, 'latin1') + 4
  const isExtensible = bytes.readUInt16LE(format) === 0xfffe
  const field = (name: string, at: number, size: number, kind: Field['kind'] = 'claim'): Field => ({
    name,
    at,
    bytes: size,
    isLittle: true,
    kind,
  })
  return [
    field('RIFF size', 4, 4),
    field('sample rate', format + 4, 4, 'codec'),
    field('byte rate', format + 8, 4),
    field('block align', format + 12, 2, 'codec'),
    field('bits', format + 14, 2, 'codec'),
    ...(isExtensible ? [field('valid bits', format + 18, 2, 'codec')] : []),
    ...(bytes.readUInt16LE(format) === 0x11 ? [field('samples per block', format + 18, 2, 'codec')] : []),
    field('data size', data, 4, 'codec'),
  ]
}

function mp3Fields(bytes: Buffer): readonly Field[] {
  const tag = Math.max(bytes.indexOf('Xing', 0, 'latin1'), bytes.indexOf('Info', 0, 'latin1'))
  return [
    { name: 'frames', at: tag + 8, bytes: 4, kind: 'claim' },
    { name: 'bytes', at: tag + 12, bytes: 4, kind: 'claim' },
    { name: 'flags', at: tag + 4, bytes: 4, kind: 'claim' },
    { name: 'delay and padding', at: tag + 8 + 4 + 4 + 100 + 4 + 21, bytes: 3, kind: 'claim' },
  ]
}

function flacFields(bytes: Buffer): readonly Field[] {
  return [
    { name: 'smallest and largest block', at: 8, bytes: 4, kind: 'codec' },
    { name: 'smallest and largest frame', at: 12, bytes: 6, kind: 'codec' },
    { name: 'sample rate', at: 18, bytes: 2, kind: 'codec' },
    { name: 'total', at: 22, bytes: 4, kind: 'claim' },
    ...flacFrameHeads(bytes).map((at): Field => ({ name: 'frame number', at: at + 4, bytes: 1, kind: 'codec' })),
  ]
}

/** The frames of the FLAC clips, whose headers have six bytes unless the block is shorter at the end. */
export function flacFrameHeads(bytes: Buffer): readonly number[] {
  const heads: number[] = []
  for (let at = bytes.indexOf(0xff); at >= 0; at = bytes.indexOf(0xff, at + 1)) {
    const end = frameHeadEnd(bytes, at)
    if ((bytes[at + 1] ?? 0) === 0xf8 && checksum(bytes.subarray(at, end)) === bytes[end]) heads.push(at)
  }
  return heads
}

function frameHeadEnd(bytes: Buffer, at: number): number {
  const code = (bytes[at + 2] ?? 0) >>> 4
  return at + 5 + (code === 6 ? 1 : code === 7 ? 2 : 0)
}

/** A frame with a wrong checksum in its head is not a frame. */
function sealFrames(bytes: Buffer): void {
  for (const at of flacFrameHeads(clip('plain.flac'))) {
    // A number of one byte.
    bytes[at + 4] = (bytes[at + 4] ?? 0) & 0x7f
    const end = frameHeadEnd(bytes, at)
    bytes[end] = checksum(bytes.subarray(at, end))
  }
}

function checksum(bytes: Buffer): number {
  let sum = 0
  for (const byte of bytes) {
    sum ^= byte
    for (let bit = 0; bit < 8; bit++) sum = sum & 0x80 ? ((sum << 1) ^ 7) & 0xff : (sum << 1) & 0xff
  }
  return sum
}

function oggFields(bytes: Buffer): readonly Field[] {
  const fields: Field[] = oggPages(bytes).flatMap(({ start }, index) => [
    { name: `granule of page ${index}`, at: start + 6, bytes: 8, isLittle: true, kind: 'claim' as const },
    { name: `sequence of page ${index}`, at: start + 18, bytes: 4, isLittle: true, kind: 'claim' as const },
  ])
  const head = bytes.indexOf('OpusHead', 0, 'latin1')
  if (head > 0) {
    fields.push({ name: 'pre-skip', at: head + 10, bytes: 2, isLittle: true, kind: 'claim' })
    fields.push({ name: 'input sample rate', at: head + 12, bytes: 4, isLittle: true, kind: 'claim' })
  }
  const identity = bytes.indexOf('\x01vorbis', 0, 'latin1')
  if (identity > 0) {
    fields.push({ name: 'sample rate', at: identity + 12, bytes: 4, isLittle: true, kind: 'codec' })
    fields.push({ name: 'bit rates', at: identity + 16, bytes: 8, isLittle: true, kind: 'claim' })
  }
  const flac = bytes.indexOf('fLaC', 0, 'latin1')
  if (flac > 0) fields.push({ name: 'total', at: flac + 22, bytes: 4, kind: 'claim' })
  return fields
}

function mp4Fields(bytes: Buffer): readonly Field[] {
  const layouts: readonly [type: string, name: string, at: number, size: number][] = [
    ['mvhd', 'timescale', 12, 4],
    ['mvhd', 'duration', 16, 4],
    ['tkhd', 'duration', 20, 4],
    ['mdhd', 'timescale', 12, 4],
    ['mdhd', 'duration', 16, 4],
    ['elst', 'duration', 8, 4],
    ['elst', 'start', 12, 4],
    ['stts', 'samples', 8, 4],
    ['stts', 'ticks', 12, 4],
    ['trex', 'ticks', 12, 4],
    ['mp4a', 'sample rate', 28, 2],
    ['Opus', 'sample rate', 28, 2],
    ['dOps', 'pre-skip', 2, 2],
  ]
  return layouts.flatMap(([type, name, at, size]): readonly Field[] => {
    const found = bytes.indexOf(type, 0, 'latin1')
    return found < 0 ? [] : [{ name: `${type} ${name}`, at: found + 4 + at, bytes: size, kind: 'claim' }]
  })
}

function webmFields(bytes: Buffer): readonly Field[] {
  const layouts: readonly [name: string, id: string, kind: Field['kind']][] = [
    ['TimestampScale', '2ad7b1', 'claim'],
    ['Duration', '4489', 'claim'],
    ['DefaultDuration', '23e383', 'claim'],
    ['CodecDelay', '56aa', 'claim'],
    ['SeekPreRoll', '56bb', 'claim'],
    ['DiscardPadding', '75a2', 'claim'],
    ['cluster Timestamp', '1f43b675', 'claim'],
  ]
  const fields = layouts.flatMap(([name, id, kind]): readonly Field[] => {
    const found = bytes.indexOf(Buffer.from(id, 'hex'))
    if (found < 0) return []
    let at = found + id.length / 2
    if (id === '1f43b675') at += sizeLength(bytes, at) + 1
    const length = sizeLength(bytes, at)
    const size = (bytes[at + length - 1] ?? 0) & (length === 1 ? 0x7f : 0xff)
    return [{ name, at: at + length, bytes: Math.min(8, size), kind }]
  })
  return [...fields, ...blockTimes(bytes)]
}

function sizeLength(bytes: Buffer, at: number): number {
  return Math.clz32(bytes[at] ?? 0) - 23
}

/** The times of the first blocks: two bytes after the number of the track. */
function blockTimes(bytes: Buffer): readonly Field[] {
  const fields: Field[] = []
  for (let at = bytes.indexOf(0xa3); at >= 0 && fields.length < 8; at = bytes.indexOf(0xa3, at + 1)) {
    const block = at + 1 + sizeLength(bytes, at + 1)
    if (bytes[block] === 0x81 && bytes[block + 3] === 0x80) {
      fields.push({ name: 'block time', at: block + 1, bytes: 2, kind: 'claim' })
    }
  }
  return fields
}
