import type { ByteSource } from '../../ports/uploads.ts'

const WINDOW_BYTES = 65_536

/**
 * A file looked at through one buffer that moves along it, so that its size never becomes memory. Bytes are
 * good until the window moves. Promises cost more than reading a header does, so loops over many of them say
 * `file.peek(…) ?? (await file.at(…))`.
 */
export interface Window {
  readonly length: number
  /** Up to `count` bytes (at most 64 KiB), fewer at the end of the file. */
  at(position: number, count: number): Promise<Buffer>
  /** The same, where the window is there already. */
  peek(position: number, count: number): Buffer | undefined
  /**
   * The next place from `position` on with this byte where `matches` says yes, with `ahead` bytes in sight
   * unless the file ends before; the length where there is none.
   */
  find(byte: number, position: number, ahead: number, matches: Matcher): Promise<number>
}

export type Matcher = (bytes: Buffer, at: number) => boolean

export function windowOver(source: ByteSource): Window {
  const buffer = Buffer.allocUnsafe(WINDOW_BYTES)
  let start = 0
  let end = 0

  async function move(position: number): Promise<void> {
    start = position
    end = position + (await source.read(buffer, position))
  }

  function peek(position: number, count: number): Buffer | undefined {
    const wanted = Math.min(position + count, source.length)
    if (position < start || wanted > end) return undefined
    return buffer.subarray(position - start, Math.max(position, wanted) - start)
  }

  return {
    length: source.length,
    peek,
    async at(position, count) {
      const here = position < source.length ? peek(position, count) : buffer.subarray(0, 0)
      if (here) return here
      await move(position)
      return buffer.subarray(0, Math.min(count, end - start))
    },
    async find(byte, position, ahead, matches) {
      let from = position
      while (from < source.length) {
        if (from < start || Math.min(from + ahead, source.length) > end) await move(from)
        if (end <= from) break
        const bytes = buffer.subarray(0, end - start)
        // Beyond this, too little is in sight to tell.
        const last = end === source.length ? bytes.length : bytes.length - ahead + 1
        let found = bytes.indexOf(byte, from - start)
        while (found >= 0 && found < last) {
          if (matches(bytes, found)) return start + found
          found = bytes.indexOf(byte, found + 1)
        }
        from = start + (found < 0 ? bytes.length : Math.max(found, last))
      }
      return source.length
    },
  }
}
