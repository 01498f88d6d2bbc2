import { headCounter, type PacketCounter } from './packet-counter.ts'

/** Opus always counts in 48 kHz. */
export const opusRate = 48_000

const SILK_MS = [10, 20, 40, 60]
const HYBRID_MS = [10, 20]
const CELT_MS = [2.5, 5, 10, 20]
const MAX_PACKET_MS = 120

/** The milliseconds in a packet, from its first two bytes (RFC 6716, section 3.1). */
export function opusPacketMs(first: number, second: number): number {
  const configuration = first >>> 3
  const frameMs =
    (configuration < 12
      ? SILK_MS[configuration & 3]
      : configuration < 16
        ? HYBRID_MS[configuration & 1]
        : CELT_MS[configuration & 3]) ?? 0
  const code = first & 3
  const frames = code === 0 ? 1 : code === 3 ? second & 0x3f : 2
  return Math.min(MAX_PACKET_MS, frameMs * frames)
}

/** An empty packet stands for a lost one, which decoders fill in. */
export function opusCounter(): PacketCounter {
  return headCounter(
    2,
    ([first, second = 0]) => (first === undefined ? MAX_PACKET_MS : opusPacketMs(first, second)) / 1000,
  )
}
