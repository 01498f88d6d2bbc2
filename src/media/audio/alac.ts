import { headCounter, type PacketCounter } from './packet-counter.ts'

const CONFIGURATION_BYTES = 24

/** Counts ALAC by its magic cookie. Only the last frame may be shorter than the others. */
export function alacCounter(cookie: Buffer): PacketCounter | undefined {
  if (cookie.length < CONFIGURATION_BYTES) return undefined
  const samples = cookie.readUInt32BE(0)
  const sampleRate = cookie.readUInt32BE(20)
  return samples > 0 && sampleRate > 0 ? headCounter(0, () => samples / sampleRate) : undefined
}
