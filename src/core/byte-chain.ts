/** Bytes in pieces, read as if they were one buffer, without being copied into one. */
export interface ByteChain {
  /** As latin1; shorter where the bytes end before. */
  text(from: number, to: number): string
  /** -1 where there is none. */
  indexOf(byte: number, from: number): number
  slices(from: number, to: number): readonly Buffer[]
}

export function byteChain(pieces: readonly Buffer[]): ByteChain {
  /** Where each piece starts, and where all of them end. */
  const starts = [0]
  for (const piece of pieces) starts.push((starts.at(-1) ?? 0) + piece.length)
  let current = 0

  /** The piece that holds a place; from the one that was asked for last, since readers go forward. */
  function locate(place: number): number {
    while (current > 0 && place < starts[current]!) current--
    while (current < pieces.length - 1 && place >= starts[current + 1]!) current++
    return current
  }

  function slices(from: number, to: number): readonly Buffer[] {
    const found: Buffer[] = []
    for (let index = locate(from); index < pieces.length && starts[index]! < to; index++) {
      found.push(pieces[index]!.subarray(Math.max(0, from - starts[index]!), to - starts[index]!))
    }
    return found
  }

  return {
    text(from, to) {
      const index = locate(from)
      const start = starts[index]!
      if (to <= starts[index + 1]!) return pieces[index]!.toString('latin1', from - start, to - start)
      return slices(from, to)
        .map((slice) => slice.toString('latin1'))
        .join('')
    },
    indexOf(byte, from) {
      for (let index = locate(from); index < pieces.length; index++) {
        const start = starts[index]!
        const found = pieces[index]!.indexOf(byte, Math.max(0, from - start))
        if (found >= 0) return start + found
      }
      return -1
    },
    slices,
  }
}
