/** The type and size of an image, read from its content. A declared type may be wrong. */
interface ImageHeader {
  readonly type: 'image/png' | 'image/jpeg' | 'image/webp' | 'image/gif'
  readonly width: number
  readonly height: number
}

export interface ImageLimits {
  readonly maxBytes: number
  readonly maxSidePx: number
}

/** Returns the bytes at an offset, fewer at the end. */
type ReadBytes = (offset: number, length: number) => Buffer

/** Long enough for every header except those of jpeg and gif. */
const HEAD_BYTES = 30
const PNG_SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
/** Colour profiles and camera metadata can take a few hundred segments. */
const MAX_JPEG_SEGMENTS = 1000
/** Limits comments and the like before the first picture, each of up to 255 bytes. */
const MAX_GIF_BLOCKS = 1000

/** undefined when it is not an image of a known type, or has no size. */
export function readImageHeader(read: ReadBytes): ImageHeader | undefined {
  const head = read(0, HEAD_BYTES)
  const size = head.length < HEAD_BYTES ? undefined : sizeOf(head, read)
  return size && size.width > 0 && size.height > 0 ? size : undefined
}

/** What the image should be instead, to complete "it must be …"; undefined when it is fine. */
export function imageProblem(read: ReadBytes, byteLength: number, limits: ImageLimits): string | undefined {
  if (byteLength > limits.maxBytes) return `an image of at most ${limits.maxBytes} bytes`
  const header = readImageHeader(read)
  if (!header) return 'a png, jpeg, webp or gif'
  const { maxSidePx } = limits
  if (header.width <= maxSidePx && header.height <= maxSidePx) return undefined
  return `an image of at most ${maxSidePx} pixels a side, not ${header.width} x ${header.height}`
}

function sizeOf(head: Buffer, read: ReadBytes): ImageHeader | undefined {
  if (head.subarray(0, 8).equals(PNG_SIGNATURE)) return pngSize(head)
  if (head[0] === 0xff && head[1] === 0xd8) return jpegSize(read)
  if (/^GIF8[79]a$/.test(ascii(head, 0, 6))) return gifSize(head, read)
  if (ascii(head, 0, 4) === 'RIFF' && ascii(head, 8, 12) === 'WEBP') return webpSize(head)
  return undefined
}

function pngSize(head: Buffer): ImageHeader | undefined {
  if (ascii(head, 12, 16) !== 'IHDR') return undefined
  return { type: 'image/png', width: head.readUInt32BE(16), height: head.readUInt32BE(20) }
}

/** Decoders enlarge the canvas when the first picture does not fit, so that picture counts as well. */
function gifSize(head: Buffer, read: ReadBytes): ImageHeader | undefined {
  const type = 'image/gif'
  const [width, height, flags] = [head.readUInt16LE(6), head.readUInt16LE(8), head[10] ?? 0]
  let offset = 13 + (flags & 0x80 ? 3 << ((flags & 7) + 1) : 0)
  let isInExtension = false
  for (let count = 0; count < MAX_GIF_BLOCKS; count++) {
    const block = read(offset, 9)
    const [first] = block
    if (first === undefined) return undefined
    if (isInExtension) {
      isInExtension = first !== 0
      offset += 1 + first
    } else if (first === 0x21) {
      isInExtension = true
      offset += 2
    } else if (first === 0x2c && block.length === 9) {
      const right = block.readUInt16LE(1) + block.readUInt16LE(5)
      const bottom = block.readUInt16LE(3) + block.readUInt16LE(7)
      return { type, width: Math.max(width, right), height: Math.max(height, bottom) }
    } else return undefined
  }
  return undefined
}

/** Lossy, lossless and extended files each store the size differently. */
function webpSize(head: Buffer): ImageHeader | undefined {
  const type = 'image/webp'
  switch (ascii(head, 12, 16)) {
    case 'VP8 ':
      if (head.readUIntBE(23, 3) !== 0x9d012a) return undefined
      return { type, width: head.readUInt16LE(26) & 0x3fff, height: head.readUInt16LE(28) & 0x3fff }
    case 'VP8L': {
      if (head[20] !== 0x2f) return undefined
      const bits = head.readUInt32LE(21)
      return { type, width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
    }
    case 'VP8X':
      return { type, width: head.readUIntLE(24, 3) + 1, height: head.readUIntLE(27, 3) + 1 }
    default:
      return undefined
  }
}

/** The size is in the start-of-frame segment. The segments before it are skipped, not read. */
function jpegSize(read: ReadBytes): ImageHeader | undefined {
  let offset = 2
  for (let count = 0; count < MAX_JPEG_SEGMENTS; count++) {
    const segment = read(offset, 9)
    const marker = segment[1]
    if (segment[0] !== 0xff || marker === undefined) return undefined
    if (marker === 0xff) offset += 1
    else if (isFrameStart(marker)) {
      if (segment.length < 9) return undefined
      return { type: 'image/jpeg', width: segment.readUInt16BE(7), height: segment.readUInt16BE(5) }
    } else if (hasNoLength(marker)) offset += 2
    else if (marker === 0xd9 || marker === 0xda || segment.length < 4) return undefined
    else offset += 2 + segment.readUInt16BE(2)
  }
  return undefined
}

function isFrameStart(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
}

/** Markers that are not followed by a length. */
function hasNoLength(marker: number): boolean {
  return marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7)
}

function ascii(bytes: Buffer, from: number, to: number): string {
  return bytes.toString('latin1', from, to)
}
