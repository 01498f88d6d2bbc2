import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'

const BLOCK_BYTES = 512

/** Reads one member of a .tgz. Reads no further than that member and keeps only a chunk in memory. */
export async function* tarMemberBytes(tarballPath: string, memberPath: string): AsyncGenerator<Buffer> {
  const unpacked = createGunzip()
  // An error of either stream destroys both. The iterator below then throws it.
  pipeline(createReadStream(tarballPath), unpacked, () => {})
  const blocks = byteReader(unpacked)
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
        longName = type === 'L' ? record.replace(/\0.*$/s, '') : (/^\d+ path=(.*)\n/m.exec(record)?.[1] ?? longName)
        continue
      }
      const name = longName ?? [text(header, 345, 155), text(header, 0, 100)].filter((part) => part !== '').join('/')
      longName = undefined
      if (name === memberPath) return yield* blocks.pieces(size)
      await blocks.skip(padded)
    }
  } finally {
    unpacked.destroy()
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
  /** `length` bytes, piece by piece. */
  pieces(length: number): AsyncGenerator<Buffer>
  skip(length: number): Promise<void>
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

  async function* pieces(length: number): AsyncGenerator<Buffer> {
    for (let left = length; left > 0;) {
      const part = await some(left)
      if (part.length === 0) throw new Error('the package ends too early')
      left -= part.length
      yield part
    }
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
    pieces,
    async skip(length) {
      for await (const _ of pieces(length));
    },
  }
}
