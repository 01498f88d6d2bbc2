import { aacCounter } from './aac.ts'
import { flacCounter, flacRate } from './flac-frames.ts'
import { alacCounter } from './alac.ts'
import { mpegCounter } from './mpeg-frames.ts'
import { opusCounter } from './opus.ts'
import { byteCounter, type PacketCounter } from './packet-counter.ts'
import { readVorbisIdentity, vorbisCounter } from './vorbis.ts'

/** What a WebM file says about a track. */
export interface WebmTrack {
  isSound: boolean
  /** Compressed or encrypted once more, so that packets do not begin with the codec's own bytes. */
  isEncoded: boolean
  codec: string
  codecPrivate: Buffer
  sampleRate: number
  channels: number
  bitDepth: number
  /** What a decoder discards at the start, and at the end of packets. */
  discardedSeconds: number
  /** Made with the first packet. */
  counter?: PacketCounter | undefined
}

export function newTrack(): WebmTrack {
  return {
    isSound: false,
    isEncoded: false,
    codec: '',
    codecPrivate: Buffer.alloc(0),
    sampleRate: 8000,
    channels: 1,
    bitDepth: 16,
    discardedSeconds: 0,
  }
}

/** undefined: the track cannot be counted. */
export function trackCounter(track: WebmTrack): PacketCounter | undefined {
  const { codec, codecPrivate, sampleRate, channels, bitDepth, isEncoded } = track
  if (isEncoded) return undefined
  if (codec === 'A_OPUS') return opusCounter()
  if (codec === 'A_VORBIS') return xiphVorbisCounter(codecPrivate)
  if (codec.startsWith('A_AAC')) return aacCounter(codecPrivate)
  if (codec === 'A_FLAC') return nativeFlacCounter(codecPrivate)
  if (codec === 'A_ALAC') return alacCounter(codecPrivate)
  if (codec.startsWith('A_MPEG/L')) return mpegCounter()
  const bytesPerSecond = sampleRate * channels * (bitDepth / 8)
  return pcmBits[codec]?.has(bitDepth) && bytesPerSecond > 0 ? byteCounter(bytesPerSecond) : undefined
}

/** Of other sizes, decoders make what they like. */
const pcmBits: Readonly<Record<string, ReadonlySet<number>>> = {
  'A_PCM/INT/LIT': new Set([8, 16, 24, 32]),
  'A_PCM/INT/BIG': new Set([8, 16, 24, 32]),
  'A_PCM/FLOAT/IEEE': new Set([32, 64]),
}

/** The letters "fLaC" and the head of a metadata block come first. */
function nativeFlacCounter(bytes: Buffer): PacketCounter | undefined {
  const rate = flacRate(bytes.subarray(8))
  return rate > 0 ? flacCounter(rate) : undefined
}

/** The three headers of Vorbis follow each other: their number less one, the sizes of the first two, the headers. */
function xiphVorbisCounter(bytes: Buffer): PacketCounter | undefined {
  if (bytes[0] !== 2) return undefined
  let at = 1
  const readSize = (): number => {
    let size = 0
    while (bytes[at] === 255) size += bytes[at++] ?? 0
    return size + (bytes[at++] ?? 0)
  }
  const identityBytes = readSize()
  const commentBytes = readSize()
  const identity = readVorbisIdentity(bytes.subarray(at, at + identityBytes))
  return identity && vorbisCounter(identity, bytes.subarray(at + identityBytes + commentBytes))
}
