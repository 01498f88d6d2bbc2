/** Bytes that come in pieces. */
export interface CollectedBytes {
  /** NaN where it is not known. */
  expect(length: number): void
  push(piece: Buffer): void
  /** As they came, where they were not put together at once. */
  pieces(): readonly Buffer[]
  whole(): Buffer
}

/** Below that a second copy costs less than a buffer of its own. */
const WORTH_A_BUFFER = 65_536

/**
 * `whole`: where their number is told before, each piece is put in its place as it comes, so that something
 * large is never in memory twice; a length above `most` is not believed.
 */
export function collectBytes(most: number, wanted: 'whole' | 'pieces'): CollectedBytes {
  let inPlace: Buffer | undefined
  let filled = 0
  const others: Buffer[] = []

  function pieces(): readonly Buffer[] {
    return inPlace ? [inPlace.subarray(0, filled), ...others] : others
  }

  return {
    expect(length) {
      if (wanted === 'whole' && length > WORTH_A_BUFFER && length <= most) inPlace = Buffer.allocUnsafe(length)
    },
    push(piece) {
      if (inPlace && filled + piece.length <= inPlace.length) filled += piece.copy(inPlace, filled)
      else others.push(piece)
    },
    pieces,
    whole() {
      const all = pieces()
      return all.length === 1 && all[0] ? all[0] : Buffer.concat(all)
    },
  }
}
