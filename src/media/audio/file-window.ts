import type { ByteSource } from '../../ports/uploads.ts'

export const WINDOW_BYTES = 65_536
const SMALL_WINDOW_BYTES = 4096

/**
 * Reads a file through one buffer that moves along it, so that memory does not grow with its size. Bytes are
 * valid until the window moves. A promise costs more than reading a header, so loops over many headers use
 * `file.peek(…) ?? (await file.at(…))`.
 */
export interface FileWindow {
  readonly length: number
  /** Up to `count` bytes (at most 64 KiB), fewer at the end of the file. */
  at(position: number, count: number): Promise<Buffer>
  /** The same, if the window already covers it. */
  peek(position: number, count: number): Buffer | undefined
  /**
   * The next offset from `position` with this byte for which `matches` returns true, or the length of the file.
   * `matches` sees at least `ahead` bytes unless the file ends before.
   */
  find(byte: number, position: number, ahead: number, matches: Matcher): Promise<number>
  /** A small window of its own, for a table that is read beside the sound. */
  another(): FileWindow
}

type Matcher = (bytes: Buffer, at: number) => boolean

export function openFileWindow(source: ByteSource, windowBytes = WINDOW_BYTES): FileWindow {
  const buffer = Buffer.allocUnsafe(windowBytes)
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
        // From here on, fewer than `ahead` bytes are visible.
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
    another: () => openFileWindow(source, SMALL_WINDOW_BYTES),
  }
}
