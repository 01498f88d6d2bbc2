/**
 * Bytes that come in pieces. Where their number is told before, each piece is put in its place as it comes,
 * so that something large is never in memory twice.
 */
export interface CollectedBytes {
  /** NaN where it is not known. */
  expect(length: number): void
  push(piece: Buffer): void
  whole(): Buffer
}

/** Below that a second copy costs less than a buffer of its own. */
const WORTH_A_BUFFER = 65_536

/** A length above `most` is not believed. */
export function collectBytes(most: number): CollectedBytes {
  let inPlace: Buffer | undefined
  let filled = 0
  const others: Buffer[] = []
  return {
    expect(length) {
      if (length > WORTH_A_BUFFER && length <= most) inPlace = Buffer.allocUnsafe(length)
    },
    push(piece) {
      if (inPlace && filled + piece.length <= inPlace.length) filled += piece.copy(inPlace, filled)
      else others.push(piece)
    },
    whole() {
      const start = inPlace?.subarray(0, filled)
      if (start && others.length === 0) return start
      if (!start && others.length === 1 && others[0]) return others[0]
      return Buffer.concat(start ? [start, ...others] : others)
    },
  }
}
