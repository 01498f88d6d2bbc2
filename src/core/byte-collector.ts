/** Bytes that come in pieces. */
export interface ByteCollector {
  /** NaN where it is not known. */
  expect(length: number): void
  push(piece: Buffer): void
  whole(): Buffer
}

/** Below that a second copy costs less than a buffer of its own. */
const WORTH_A_BUFFER = 1_048_576

/**
 * Where their number is told before, and as soon as it turns out to be large, each piece is put in its place as it
 * comes, so that it is never in memory twice; a length above `most` is not believed.
 */
export function byteCollector(most: number): ByteCollector {
  let expected = 0
  let inPlace: Buffer | undefined
  let filled = 0
  let others: Buffer[] = []
  /** Bytes in the others. */
  let loose = 0

  function moveInPlace(): void {
    inPlace = Buffer.allocUnsafe(expected)
    const moved = others
    others = []
    loose = 0
    for (const piece of moved) put(piece)
  }

  function put(piece: Buffer): void {
    if (inPlace && others.length === 0 && filled + piece.length <= inPlace.length) filled += piece.copy(inPlace, filled)
    else {
      others.push(piece)
      loose += piece.length
    }
  }

  return {
    expect(length) {
      if (length > WORTH_A_BUFFER && length <= most) expected = length
    },
    push(piece) {
      if (!inPlace && expected > 0 && loose >= WORTH_A_BUFFER) moveInPlace()
      put(piece)
    },
    whole() {
      const all = inPlace ? [inPlace.subarray(0, filled), ...others] : others
      return all.length === 1 && all[0] ? all[0] : Buffer.concat(all)
    },
  }
}
