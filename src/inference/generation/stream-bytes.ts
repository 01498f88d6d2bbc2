/** Events are read as latin1: see shared/event-stream.ts. */

/** One character per byte. */
export function toBytes(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}

export function fromBytes(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8')
}

/** Offset just past the bracket that closes the one at `open`. The text must be valid JSON. */
export function endOfArray(text: string, open: number): number {
  let depth = 0
  for (let index = open; index < text.length; index++) {
    switch (text.charCodeAt(index)) {
      case 0x22: // "
        for (index++; index < text.length && text.charCodeAt(index) !== 0x22; index++)
          if (text.charCodeAt(index) === 0x5c /* \\ */) index++
        break
      case 0x5b: // [
        depth++
        break
      case 0x5d: // ]
        if (--depth === 0) return index + 1
        break
      default:
    }
  }
  return text.length
}
