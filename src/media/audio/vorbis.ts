import { headCounter, type PacketCounter } from './packet-counter.ts'
import { bitLength, longModes } from './vorbis-setup.ts'

/** The largest setup header. Encoders write about 4 KiB. */
export const MAX_SETUP_BYTES = 65_536

export interface VorbisIdentity {
  readonly channels: number
  readonly sampleRate: number
  readonly blockSizes: readonly [short: number, long: number]
}

/** Reads the first header of a Vorbis stream. */
export function readVorbisIdentity(packet: Buffer): VorbisIdentity | undefined {
  if (packet.length < 30 || packet.toString('latin1', 0, 7) !== '\x01vorbis') return undefined
  const channels = packet[11] ?? 0
  const sampleRate = packet.readUInt32LE(12)
  const sizes = packet[28] ?? 0
  if (channels === 0 || sampleRate === 0) return undefined
  return { channels, sampleRate, blockSizes: [2 ** (sizes & 15), 2 ** (sizes >>> 4)] }
}

/** Neighbouring blocks overlap by half, so a packet completes a quarter of its block and a quarter of the one before. */
export function vorbisCounter(identity: VorbisIdentity, setup: Buffer): PacketCounter | undefined {
  const modes = longModes(setup, identity.channels)
  if (!modes) return undefined
  const { sampleRate, blockSizes } = identity
  const mask = 2 ** bitLength(modes.length - 1) - 1
  let before: number | undefined
  return headCounter(1, ([first]) => {
    // The lowest bit is set in headers. The number of the mode follows it.
    if (first === undefined || (first & 1) === 1) return 0
    const isLong = modes[(first >>> 1) & mask]
    if (isLong === undefined) return 0
    const block = blockSizes[isLong ? 1 : 0]
    const samples = before === undefined ? 0 : (before + block) / 4
    before = block
    return samples / sampleRate
  })
}
