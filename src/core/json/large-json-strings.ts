import { endOfString } from './json-scan.ts'

/**
 * JSON whose long strings (images in base64) stay where they are: the parsed value has short names in their
 * places, and `bytesOf` gives what a name stands for. So megabytes that are only passed on are never
 * turned into strings.
 */
export interface LargeStringJson {
  readonly value: unknown
  /** The UTF-8 of a string of the value, long or short. */
  bytesOf(text: string): Buffer
}

const LONG_BYTES = 4096

/** undefined where it is no JSON. What is inside a long string is nobody's word yet: look at it before use. */
export function parseWithLargeStrings(bytes: Buffer): LargeStringJson | undefined {
  const lifted = new Map<string, Buffer>()
  let rest = ''
  let copied = 0
  for (let open = bytes.indexOf(0x22); open >= 0;) {
    const end = endOfString(bytes, open)
    // One with escapes means other bytes than those that stand there.
    if (end - open > LONG_BYTES && !bytes.subarray(open, end).includes(0x5c)) {
      // No server writes a zero into its texts.
      const name = `\0${lifted.size}`
      lifted.set(name, bytes.subarray(open + 1, end - 1))
      rest += bytes.toString('utf8', copied, open) + JSON.stringify(name)
      copied = end
    }
    open = bytes.indexOf(0x22, end)
  }
  rest += bytes.toString('utf8', copied)
  try {
    const value: unknown = JSON.parse(rest)
    return { value, bytesOf: (text) => lifted.get(text) ?? Buffer.from(text) }
  } catch {
    return undefined
  }
}
