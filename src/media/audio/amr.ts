import type { PacketCounter } from './packet-counter.ts'

/** Bytes of a frame by its type, with its first byte. */
const NARROW_BYTES = [13, 14, 16, 18, 20, 21, 27, 32, 6, 1, 1, 1, 1, 1, 1, 1]
const WIDE_BYTES = [18, 24, 33, 37, 41, 47, 51, 59, 61, 6, 1, 1, 1, 1, 1, 1]
const FRAME_SECONDS = 0.02

/** Counts AMR, the speech codec of phones. A packet holds one or more frames of 20 ms. */
export function amrCounter(isWide: boolean): PacketCounter {
  const frameBytes = isWide ? WIDE_BYTES : NARROW_BYTES
  let frames = 0
  return {
    get seconds() {
      return frames * FRAME_SECONDS
    },
    async add(file, position, bytes) {
      const end = Math.min(position + bytes, file.length)
      for (let at = position; at < end; frames++) {
        const [first = 0] = file.peek(at, 1) ?? (await file.at(at, 1))
        at += frameBytes[(first >>> 3) & 15] ?? 1
      }
    },
  }
}
