import { headCounter, type PacketCounter } from './packet-counter.ts'

const SAMPLE_RATES = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8000, 7350,
]
/** A frame has at most 6144 bits for each channel. */
const MAX_FRAME_BYTES = 768

/** The object types: Main, LC, SSR and LTP, with and without error resilience, have frames of 1024 or 960 samples. */
const generalTypes: ReadonlySet<number> = new Set([1, 2, 3, 4, 17, 19])
const LOW_DELAY = 23
const ENHANCED_LOW_DELAY = 39
const SPECTRAL_BAND_REPLICATION = 5
const PARAMETRIC_STEREO = 29

/**
 * Counts AAC by its AudioSpecificConfig. Band replication doubles both the samples and their rate, so the time of a
 * frame is that of its core. undefined: a type of AAC whose frames have no known length.
 */
export function aacCounter(config: Buffer): PacketCounter | undefined {
  const bits = bitReader(config)
  const type = readType(bits)
  const sampleRate = readRate(bits)
  const channels = channelsOf(bits(4))
  const isReplicated = type === SPECTRAL_BAND_REPLICATION || type === PARAMETRIC_STEREO
  if (isReplicated) readRate(bits)
  const samples = frameSamples(isReplicated ? readType(bits) : type, bits(1) === 1)
  if (!samples || !sampleRate || !channels) return undefined
  // A larger packet holds several frames, and some decoders play them all.
  const most = MAX_FRAME_BYTES * channels
  return headCounter(0, (_head, bytes) => (Math.ceil(bytes / most) * samples) / sampleRate)
}

function frameSamples(type: number, isShort: boolean): number | undefined {
  if (generalTypes.has(type)) return isShort ? 960 : 1024
  if (type === LOW_DELAY || type === ENHANCED_LOW_DELAY) return isShort ? 480 : 512
  return undefined
}

/** 0: the channels are listed in the stream. As few as possible, so that frames are not taken for larger than they are. */
function channelsOf(configuration: number): number {
  if (configuration <= 6) return Math.max(1, configuration)
  return configuration === 7 ? 8 : 0
}

function readType(bits: (count: number) => number): number {
  const type = bits(5)
  return type === 31 ? 32 + bits(6) : type
}

function readRate(bits: (count: number) => number): number {
  const index = bits(4)
  return index === 15 ? bits(24) : (SAMPLE_RATES[index] ?? 0)
}

/** Reads from the most significant bit on. Zeros follow the end. */
function bitReader(bytes: Buffer): (count: number) => number {
  let position = 0
  return (count) => {
    let value = 0
    for (let index = 0; index < count; index++, position++) {
      value = value * 2 + (((bytes[position >>> 3] ?? 0) >>> (7 - (position & 7))) & 1)
    }
    return value
  }
}
