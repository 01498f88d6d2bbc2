/** Collects bytes that arrive in pieces. */
export interface ByteCollector {
  /** Announces the total length; NaN when it is unknown. */
  expect(length: number): void
  push(piece: Buffer): void
  whole(): Buffer
}

/** For less than this, joining the pieces at the end costs less than a buffer of the full length. */
const WORTH_A_BUFFER = 1_048_576

/**
 * When the length is announced and large, pieces are copied into their final buffer as they arrive, so that
 * they are never in memory twice. The buffer is only allocated once enough bytes have arrived, and a length
 * above `maxBytes` is ignored.
 */
export function byteCollector(maxBytes: number): ByteCollector {
  let expected = 0
  let inPlace: Buffer | undefined
  let filled = 0
  /** Pieces that are not in the final buffer, and how many bytes have come while there is none. */
  let loose: Buffer[] = []
  let looseBytes = 0

  function moveInPlace(): void {
    inPlace = Buffer.allocUnsafe(expected)
    const moved = loose
    loose = []
    for (const piece of moved) put(piece)
  }

  function put(piece: Buffer): void {
    if (inPlace && loose.length === 0 && filled + piece.length <= inPlace.length) filled += piece.copy(inPlace, filled)
    else {
      loose.push(piece)
      looseBytes += piece.length
    }
  }

  return {
    expect(length) {
      if (length > WORTH_A_BUFFER && length <= maxBytes) expected = length
    },
    push(piece) {
      if (!inPlace && expected > 0 && looseBytes >= WORTH_A_BUFFER) moveInPlace()
      put(piece)
    },
    whole() {
      const all = inPlace ? [inPlace.subarray(0, filled), ...loose] : loose
      return all.length === 1 && all[0] ? all[0] : Buffer.concat(all)
    },
  }
}
