import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import type { Writable } from 'node:stream'
import { createGunzip } from 'node:zlib'

const BLOCK_BYTES = 512

/** Copies one member of a .tgz to `target`. Reads no further than that member and keeps only a chunk in memory. */
export async function extractMember(tarballPath: string, memberPath: string, target: Writable): Promise<void> {
  const source = createReadStream(tarballPath)
  const blocks = byteReader(source.pipe(createGunzip()))
  try {
    let longName: string | undefined
    for (;;) {
      const header = await blocks.read(BLOCK_BYTES)
      if (header.length < BLOCK_BYTES || header[0] === 0) throw new Error(`${memberPath} is not in the package`)
      const size = Number.parseInt(text(header, 124, 12).trim(), 8)
      const padded = Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES
      const type = String.fromCharCode(header[156] ?? 0)
      if (type === 'x' || type === 'L') {
        const record = (await blocks.read(padded)).subarray(0, size).toString('utf8')
        longName = type === 'L' ? record.replace(/\0.*$/s, '') : (/\d+ path=(.*)\n/.exec(record)?.[1] ?? longName)
        continue
      }
      const name = longName ?? [text(header, 345, 155), text(header, 0, 100)].filter((part) => part !== '').join('/')
      longName = undefined
      if (name === memberPath) return await blocks.copy(size, target)
      await blocks.copy(padded)
    }
  } finally {
    source.destroy()
  }
}

function text(header: Buffer, start: number, length: number): string {
  return header
    .subarray(start, start + length)
    .toString('utf8')
    .replace(/\0.*$/s, '')
}

interface ByteReader {
  /** `length` bytes, or fewer at the end of the stream. */
  read(length: number): Promise<Buffer>
  /** Moves bytes to `target`, or skips them if there is none. */
  copy(length: number, target?: Writable): Promise<void>
}

function byteReader(stream: AsyncIterable<Buffer>): ByteReader {
  const chunks = stream[Symbol.asyncIterator]()
  let rest: Buffer = Buffer.alloc(0)

  /** Up to `max` bytes. Empty at the end of the stream. */
  async function some(max: number): Promise<Buffer> {
    if (rest.length === 0) {
      const next = await chunks.next()
      if (next.done) return Buffer.alloc(0)
      rest = next.value
    }
    const taken = rest.subarray(0, max)
    rest = rest.subarray(taken.length)
    return taken
  }

  return {
    async read(length) {
      const parts: Buffer[] = []
      for (let left = length; left > 0;) {
        const part = await some(left)
        if (part.length === 0) break
        parts.push(part)
        left -= part.length
      }
      return Buffer.concat(parts)
    },
    async copy(length, target) {
      for (let left = length; left > 0;) {
        const part = await some(left)
        if (part.length === 0) throw new Error('the package ends too early')
        left -= part.length
        if (target && !target.write(part)) await once(target, 'drain')
      }
    },
  }
}
