import { endOfString } from '../../shared/json/json-body.ts'

/**
 * Parsed JSON whose long strings (images in base64) stay in the original bytes. The parsed value has a short
 * placeholder for each, and `bytesOf` returns its bytes. So megabytes that are only forwarded never become
 * strings.
 */
interface LargeStringJson {
  readonly value: unknown
  /** The UTF-8 bytes of a string in the value, whether it is a placeholder or not. */
  bytesOf(text: string): Buffer
}

const LONG_BYTES = 4096

/** undefined when the bytes are not JSON. The content of long strings is unchecked: validate it before use. */
export function parseWithLargeStrings(bytes: Buffer): LargeStringJson | undefined {
  const longStrings = new Map<string, Buffer>()
  let rest = ''
  let copied = 0
  for (let open = bytes.indexOf(0x22); open >= 0;) {
    const end = endOfString(bytes, open)
    // A string with escapes is parsed normally, because its bytes are not its value.
    if (end - open > LONG_BYTES && !bytes.subarray(open, end).includes(0x5c)) {
      // No server sends a string that starts with NUL.
      const placeholder = `\0${longStrings.size}`
      longStrings.set(placeholder, bytes.subarray(open + 1, end - 1))
      rest += bytes.toString('utf8', copied, open) + JSON.stringify(placeholder)
      copied = end
    }
    open = bytes.indexOf(0x22, end)
  }
  rest += bytes.toString('utf8', copied)
  try {
    const value: unknown = JSON.parse(rest)
    return { value, bytesOf: (text) => longStrings.get(text) ?? Buffer.from(text) }
  } catch {
    return undefined
  }
}
