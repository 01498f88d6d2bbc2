const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Up to here, a loop is faster than a call of the native search. */
const NEAR_BYTES = 64

/** The offset just past the closing quote of the string that opens at `open`; the end of the bytes if there is none. */
export function endOfString(bytes: Buffer, open: number): number {
  for (let next = open + 1; ;) {
    const near = Math.min(bytes.length, next + NEAR_BYTES)
    while (next < near) {
      const byte = bytes[next]
      if (byte === QUOTE) return next + 1
      next += byte === BACKSLASH ? 2 : 1
    }
    // In long plain strings (images), the native search is much faster. The loop continues if it finds an escaped
    // quote.
    const quote = bytes.indexOf(QUOTE, next)
    if (quote < 0) return bytes.length
    let slash = quote
    while (slash > next && bytes[slash - 1] === BACKSLASH) slash--
    if ((quote - slash) % 2 === 0) return quote + 1
    next = quote + 1
  }
}
