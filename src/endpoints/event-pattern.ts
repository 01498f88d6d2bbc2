/**
 * Nearly all events of a stream differ from the one before in nothing but their text. An event that has the same bytes
 * around its text as one that was parsed means the same, so it needs no parsing itself.
 */
export interface EventPattern {
  /** The text of an event of this pattern, as JSON.parse would return it; undefined for any other event. */
  textIn(data: string): string | undefined
  /** Where the text starts. */
  readonly start: number
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const SPACE = 0x20

/**
 * The pattern of an event whose field `name` is `text`. undefined if there may be doubt about where that field is: the
 * event must have no escapes, so that the name in quotes can only be the field, and it must be there once.
 */
export function eventPattern(data: string, name: string, text: string): EventPattern | undefined {
  const field = `"${name}"`
  const place = data.indexOf(field)
  if (place < 0 || data.indexOf(field, place + 1) >= 0 || data.includes('\\')) return undefined
  const value = /^: *"/.exec(data.slice(place + field.length, place + field.length + 8))
  if (!value) return undefined
  const start = place + field.length + value[0].length
  const end = start + text.length
  if (data.charCodeAt(end) !== QUOTE || !isPlain(text) || !data.startsWith(text, start)) return undefined
  const prefix = data.slice(0, start)
  const suffix = data.slice(end)
  return {
    start,
    textIn(other) {
      const otherEnd = other.length - suffix.length
      if (otherEnd <= start || !other.startsWith(prefix) || !other.endsWith(suffix)) return undefined
      const otherText = other.slice(start, otherEnd)
      return isPlain(otherText) ? otherText : undefined
    },
  }
}

/** Whether a text stands for itself in a JSON string. */
function isPlain(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code < SPACE || code === QUOTE || code === BACKSLASH) return false
  }
  return true
}
