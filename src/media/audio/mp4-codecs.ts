import { aacCounter } from './aac.ts'
import { alacCounter } from './alac.ts'
import { amrCounter } from './amr.ts'
import { flacCounter, flacRate } from './flac-frames.ts'
import { mpegCounter } from './mpeg-frames.ts'
import { opusCounter } from './opus.ts'
import { byteCounter, type PacketCounter } from './packet-counter.ts'

export interface Mp4Codec {
  readonly counter: PacketCounter
  /** PCM: the bytes of one sample for all channels, which some decoders take for every sample in the index. */
  readonly frameBytes?: number
}

/** Descriptions of sound are small. */
export const MAX_ENTRY_BYTES = 4096

/** How to count a track, from its sample description (the content of `stsd`). undefined: it cannot be counted. */
export function mp4Codec(description: Buffer): Mp4Codec | undefined {
  // Of two descriptions, which one a sample uses is up to the decoder.
  if (description.length < 8 + 36 || description.readUInt32BE(4) !== 1) return undefined
  const entry = description.subarray(8)
  const type = entry.toString('latin1', 4, 8)
  const pcm = pcmCodec(entry, type)
  if (pcm) return pcm
  const counter = packetCounter(entry, type)
  return counter && { counter }
}

function packetCounter(entry: Buffer, type: string): PacketCounter | undefined {
  switch (type) {
    case 'mp4a':
      return elementaryCounter(configuration(entry, 'esds'))
    case 'Opus':
      return opusCounter()
    case 'fLaC': {
      // Version and flags, then the head of the first metadata block.
      const rate = flacRate(configuration(entry, 'dfLa')?.subarray(8) ?? NO_BYTES)
      return rate > 0 ? flacCounter(rate) : undefined
    }
    case 'alac':
      return alacCounter(configuration(entry, 'alac')?.subarray(4) ?? NO_BYTES)
    case '.mp3':
    case 'ms\0U':
      return mpegCounter()
    case 'samr':
      return amrCounter(false)
    case 'sawb':
      return amrCounter(true)
    default:
      return undefined
  }
}

const NO_BYTES = Buffer.alloc(0)

/** The box of this type inside a description, at any depth. undefined if there are several: decoders may differ. */
function configuration(entry: Buffer, type: string): Buffer | undefined {
  const found: number[] = []
  for (let at = entry.indexOf(type, 36, 'latin1'); at >= 0; at = entry.indexOf(type, at + 4, 'latin1')) {
    // QuickTime repeats the type of the codec in a box of its own.
    if (entry.toString('latin1', at - 4, at) !== 'frma') found.push(at)
  }
  const [at = 0] = found
  if (found.length !== 1) return undefined
  return entry.subarray(at + 4, at - 4 + entry.readUInt32BE(at - 4))
}

const aacTypes: ReadonlySet<number | undefined> = new Set([0x40, 0x66, 0x67, 0x68])
const mpegTypes: ReadonlySet<number | undefined> = new Set([0x69, 0x6b])

/** Reads the descriptors of an elementary stream: the type of its codec, and the codec's own header. */
function elementaryCounter(descriptors: Buffer | undefined): PacketCounter | undefined {
  if (!descriptors) return undefined
  let type: number | undefined
  for (let at = 4; at < descriptors.length;) {
    const tag = descriptors[at++]
    let length = 0
    for (let index = 0; index < 4; index++) {
      const byte = descriptors[at++] ?? 0
      length = length * 128 + (byte & 0x7f)
      if (byte < 0x80) break
    }
    if (tag === 3) {
      if (descriptors[at + 2] !== undefined && ((descriptors[at + 2] ?? 0) & 0xe0) !== 0) return undefined
      at += 3
    } else if (tag === 4) {
      type = descriptors[at]
      if (mpegTypes.has(type)) return mpegCounter()
      at += 13
    } else if (tag === 5) {
      return aacTypes.has(type) ? aacCounter(descriptors.subarray(at, at + length)) : undefined
    } else at += length
  }
  return undefined
}

/** The bits that a sample of each type of PCM may have. Of other sizes, decoders make what they like. */
const pcmBits: Readonly<Record<string, readonly number[]>> = {
  sowt: [8, 16, 24, 32],
  twos: [8, 16, 24, 32],
  'raw ': [8, 16],
  NONE: [8, 16],
  lpcm: [8, 16, 24, 32, 64],
  ipcm: [16, 24, 32],
  fpcm: [32, 64],
}
const fixedPcmBits: Readonly<Record<string, number>> = { in24: 24, in32: 32, fl32: 32, fl64: 64, ulaw: 8, alaw: 8 }

function pcmCodec(entry: Buffer, type: string): Mp4Codec | undefined {
  const isLong = entry.readUInt16BE(16) === 2
  if (isLong && entry.length < 72) return undefined
  const channels = isLong ? entry.readUInt32BE(48) : entry.readUInt16BE(24)
  const sampleRate = isLong ? entry.readDoubleBE(40) : entry.readUInt16BE(32)
  const declaredBits = isLong ? entry.readUInt32BE(56) : entry.readUInt16BE(26)
  const bits = fixedPcmBits[type] ?? configuration(entry, 'pcmC')?.[5] ?? declaredBits
  if (fixedPcmBits[type] === undefined && !pcmBits[type]?.includes(bits)) return undefined
  const frameBytes = channels * (bits / 8)
  if (!(frameBytes > 0) || !(sampleRate > 0)) return undefined
  return { counter: byteCounter(frameBytes * sampleRate), frameBytes }
}

/** Spatial sound, which phones record beside AAC. No decoder of an engine plays it. */
export function isSpatial(description: Buffer): boolean {
  return description.toString('latin1', 12, 16) === 'apac'
}
