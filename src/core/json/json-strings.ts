/** Finding the ends of JSON strings in bytes, without decoding them. */

const QUOTE = 0x22
const BACKSLASH = 0x5c
const LETTER_U = 0x75

/** Up to here, a loop is faster than a call of the native search. */
const NEAR_BYTES = 64

/**
 * Looks for the end of a string from `from`, which is inside the string and not inside an escape. Returns the offset
 * just past the closing quote, which is beyond the bytes if the string does not end. If it gets to `until` without
 * finding it, it returns `-next`: call it again from `next`.
 */
export function findStringEnd(bytes: Buffer, from: number, until: number): number {
  for (let next = from; ;) {
    const near = Math.min(bytes.length, next + NEAR_BYTES)
    while (next < near) {
      const byte = bytes[next]
      if (byte === QUOTE) return next + 1
      next += byte === BACKSLASH ? 2 : 1
    }
    // In long plain strings (images), the native search is much faster. The loop goes on if it finds an escaped quote.
    const quote = bytes.indexOf(QUOTE, next)
    if (quote < 0) return bytes.length + 1
    let slash = quote
    while (slash > next && bytes[slash - 1] === BACKSLASH) slash--
    if ((quote - slash) % 2 === 0) return quote + 1
    next = quote + 1
    if (next >= until) return -next
  }
}

/** The offset just past the closing quote of the string that opens at `open`; the end of the bytes if there is none. */
export function endOfString(bytes: Buffer, open: number): number {
  return Math.min(bytes.length, findStringEnd(bytes, open + 1, Infinity))
}

/** The last offset from `from` to `to` at which a string may be cut: not inside an escape or a UTF-8 character. */
export function cutInString(bytes: Buffer, from: number, to: number): number {
  let cut = to
  while (cut > from && (bytes[cut]! & 0xc0) === 0x80) cut--
  // The longest escape, \u0041, has six bytes.
  let slash = cut - 1
  while (slash > cut - 6 && slash >= from && bytes[slash] !== BACKSLASH) slash--
  if (slash < from || bytes[slash] !== BACKSLASH) return cut
  let first = slash
  while (first > from && bytes[first - 1] === BACKSLASH) first--
  const isEscaped = (slash - first) % 2 === 1
  const end = slash + (bytes[slash + 1] === LETTER_U ? 6 : 2)
  return isEscaped || end <= cut ? cut : slash
}
