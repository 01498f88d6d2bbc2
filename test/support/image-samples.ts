import { crc32, deflateSync } from 'node:zlib'

/** The smallest files that have what a reader of headers looks for. `more` bytes follow. */
interface Shape {
  readonly width?: number
  readonly height?: number
  readonly more?: number
}

export function png({ width = 1, height = 1, more = 0 }: Shape = {}): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 2], 8)
  const signature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')
  return Buffer.concat([signature, pngChunk('IHDR', header), pngChunk('IDAT', noise(more)), pngChunk('IEND')])
}

/** One that a browser can show: grey, from dark at the top to light at the bottom. */
export function picture(width: number, height: number): Buffer {
  const rows = Array.from({ length: height }, (_, row) =>
    Buffer.concat([Buffer.alloc(1), Buffer.alloc(width * 3, Math.floor((row / height) * 255))]),
  )
  const [signature, data] = [png({ width, height }), deflateSync(Buffer.concat(rows))]
  // The signature and the header of a PNG are its first 33 bytes.
  return Buffer.concat([signature.subarray(0, 33), pngChunk('IDAT', data), pngChunk('IEND')])
}

function pngChunk(name: string, data: Buffer = Buffer.alloc(0)): Buffer {
  const body = Buffer.concat([Buffer.from(name), data])
  const ends = Buffer.alloc(8)
  ends.writeUInt32BE(data.length, 0)
  ends.writeUInt32BE(crc32(body), 4)
  return Buffer.concat([ends.subarray(0, 4), body, ends.subarray(4)])
}

/** With `more` bytes of notes before the size, as cameras write them. */
export function jpeg({ width = 1, height = 1, more = 0 }: Shape = {}): Buffer {
  const pieces: Buffer[] = [Buffer.from([0xff, 0xd8])]
  for (let left = more; left > 0; left -= 60_000) pieces.push(segment(0xe1, noise(Math.min(left, 60_000))))
  const frame = Buffer.from([8, 0, 0, 0, 0, 1, 1, 0x11, 0])
  frame.writeUInt16BE(height, 1)
  frame.writeUInt16BE(width, 3)
  // Fill bytes before a marker are allowed.
  pieces.push(Buffer.from([0xff]), segment(0xc2, frame), segment(0xda, Buffer.alloc(20)), Buffer.from([0xff, 0xd9]))
  return Buffer.concat(pieces)
}

function segment(marker: number, data: Buffer): Buffer {
  const head = Buffer.from([0xff, marker, 0, 0])
  head.writeUInt16BE(data.length + 2, 2)
  return Buffer.concat([head, data])
}

/** With a comment before its picture. `screen`: the size in the header, if it is not that of the picture. */
export function gif({ width = 1, height = 1, screen = { width, height } }: Shape & { screen?: Shape } = {}): Buffer {
  const header = Buffer.from('GIF89a\0\0\0\0\0\0\0', 'latin1')
  header.writeUInt16LE(screen.width ?? 1, 6)
  header.writeUInt16LE(screen.height ?? 1, 8)
  const picture = Buffer.from([0x2c, 0, 0, 0, 0, 0, 0, 0, 0, 0])
  picture.writeUInt16LE(width, 5)
  picture.writeUInt16LE(height, 7)
  const comment = Buffer.concat([Buffer.from([0x21, 0xfe, 5]), Buffer.from('water'), Buffer.alloc(1)])
  return Buffer.concat([header, comment, picture, Buffer.from([2, 2, 0x44, 1, 0, 0x3b])])
}

export type WebpKind = 'VP8 ' | 'VP8L' | 'VP8X'

export function webp({ width = 1, height = 1 }: Shape = {}, kind: WebpKind = 'VP8 '): Buffer {
  const bytes = Buffer.alloc(40)
  bytes.write('RIFF')
  bytes.writeUInt32LE(32, 4)
  bytes.write(`WEBP${kind}`, 8)
  if (kind === 'VP8 ') {
    bytes.set([0x9d, 0x01, 0x2a], 23)
    bytes.writeUInt16LE(width, 26)
    bytes.writeUInt16LE(height, 28)
  } else if (kind === 'VP8L') {
    bytes[20] = 0x2f
    bytes.writeUInt32LE(((width - 1) | ((height - 1) << 14)) >>> 0, 21)
  } else {
    bytes.writeUIntLE(width - 1, 24, 3)
    bytes.writeUIntLE(height - 1, 27, 3)
  }
  return bytes
}

export function dataUrl(type: string, bytes: Buffer): string {
  return `data:image/${type};base64,${bytes.toString('base64')}`
}

/** The same bytes every time, and no two places alike. */
function noise(length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length)
  for (let index = 0; index < length; index++) bytes[index] = (index * 2_654_435_761) >>> 13
  return bytes
}
