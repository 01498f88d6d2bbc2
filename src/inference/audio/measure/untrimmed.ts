import type { AudioFormat } from './audio-format.ts'

const PIECE_BYTES = 16_384
/** The index of an MP4 file; four bytes for each packet. */
const MAX_INDEX_BYTES = 16 * 2 ** 20
const MAX_BOXES = 10_000
/** Of Opus: 80 ms at 48 kHz, of which encoders use 6.5. */
const MAX_PRE_SKIP = 3840
/** Of MP3: the delay and padding of usual encoders. */
const MAX_PADDING = 4 * 1152

/** Of Ogg. */
const OGG_HEADER_BYTES = 27
const MAX_PAGE_BYTES = OGG_HEADER_BYTES + 255 + 255 * 255
const MOST_SAMPLES_OF_PAGE = 2n ** 25n

export type ReadBytes = (position: number, bytes: number) => Promise<Buffer>

/**
 * The bytes of a recording, in pieces, without the numbers that tell a decoder to skip sound at its ends. Some decoders
 * follow such numbers and others do not, so a caller could forge them to pay for less than an engine plays.
 */
export async function* untrimmed(format: AudioFormat, length: number, read: ReadBytes): AsyncGenerator<Buffer> {
  const pieces = piecesOf(format.start, length, read)
  if (format.extension === 'm4a') yield* withIndexFirst(length, read)
  else if (format.extension === 'ogg') yield* withoutGranules(pieces)
  else if (format.extension === 'webm') yield* withoutDiscarding(pieces)
  else if (format.extension === 'mp3') yield* withoutPadding(pieces)
  else yield* pieces
}

async function* piecesOf(start: number, end: number, read: ReadBytes): AsyncGenerator<Buffer> {
  for (let position = start; position < end; position += PIECE_BYTES) {
    yield await read(position, Math.min(PIECE_BYTES, end - position))
  }
}

/**
 * A decoder that finds the index at the end has the whole file in memory, and decodes it in one go. So the index is
 * moved to the front, and its positions are adjusted. Its edits and gapless tags are removed.
 */
async function* withIndexFirst(length: number, read: ReadBytes): AsyncGenerator<Buffer> {
  const place = await findIndex(length, read)
  if (!place) throw new Error('no index')
  const index = await read(place.start, place.bytes)
  for (const name of ['edts', 'ilst']) for (const at of placesOf(index, name)) index.write('free', at, 'latin1')
  for (const at of placesOf(index, 'dOps')) limitPreSkip(index, at + 6, 'big')
  const isFirst = place.start < place.media
  if (!isFirst) {
    for (const at of placesOf(index, 'stco')) shift(index, at, index.length, 4)
    for (const at of placesOf(index, 'co64')) shift(index, at, index.length, 8)
    yield Buffer.from(index)
  }
  yield* piecesOf(0, place.start, read)
  // Something of the same size takes its place, so that every other position stays the same.
  if (!isFirst) index.write('free', 4, 'latin1')
  yield index
  yield* piecesOf(place.start + place.bytes, length, read)
}

interface IndexPlace {
  readonly start: number
  readonly bytes: number
  /** Where the first sound is. */
  readonly media: number
}

async function findIndex(length: number, read: ReadBytes): Promise<IndexPlace | undefined> {
  let media = length
  for (let position = 0, boxes = 0; position + 8 <= length && boxes < MAX_BOXES; boxes++) {
    const head = await read(position, 16)
    const type = head.toString('latin1', 4, 8)
    const size = boxSize(head, length - position)
    if (size < 8) return undefined
    if (type === 'mdat') media = Math.min(media, position)
    if (type === 'moov') return size > MAX_INDEX_BYTES ? undefined : { start: position, bytes: size, media }
    position += size
  }
  return undefined
}

function boxSize(head: Buffer, rest: number): number {
  const size = head.readUInt32BE(0)
  return size === 0 ? rest : size === 1 && head.length === 16 ? Number(head.readBigUInt64BE(8)) : size
}

function* placesOf(bytes: Buffer, name: string): Generator<number> {
  for (let at = bytes.indexOf(name, 0, 'latin1'); at >= 0; at = bytes.indexOf(name, at + 4, 'latin1')) yield at
}

/** Moves the positions of a table of chunks, whose name is at `at`. */
function shift(index: Buffer, at: number, by: number, size: 4 | 8): void {
  if (at + 12 > index.length) return
  const count = Math.min(index.readUInt32BE(at + 8), Math.floor((index.length - at - 12) / size))
  for (let entry = at + 12 + size - 4, left = count; left > 0; entry += size, left--) {
    index.writeUInt32BE((index.readUInt32BE(entry) + by) >>> 0, entry)
  }
}

/** What an Opus decoder skips at the start. With 0, a decoder would follow another number. */
function limitPreSkip(bytes: Buffer, at: number, order: 'big' | 'little'): void {
  if (at + 2 > bytes.length) return
  const samples = order === 'big' ? bytes.readUInt16BE(at) : bytes.readUInt16LE(at)
  const limited = Math.min(Math.max(1, samples), MAX_PRE_SKIP)
  if (order === 'big') bytes.writeUInt16BE(limited, at)
  else bytes.writeUInt16LE(limited, at)
}

/**
 * The position at the end of an Ogg page determines how much of its sound counts, and pages out of order are skipped.
 * Here each page follows the one before, and claims more than it has.
 */
async function* withoutGranules(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0)
  let pages = 0
  for await (const piece of pieces) {
    rest = Buffer.concat([rest, piece])
    let done = 0
    for (let at = rest.indexOf('OggS'); at >= 0; at = rest.indexOf('OggS', done)) {
      const body = at + OGG_HEADER_BYTES + (rest[at + 26] ?? 0)
      const end = rest.subarray(at + OGG_HEADER_BYTES, body).reduce((sum, bytes) => sum + bytes, body)
      if (end > rest.length) break
      const isStart = ((rest[at + 5] ?? 0) & 2) !== 0
      pages = isStart ? 0 : pages + 1
      rest.writeBigUInt64LE(BigInt(pages) * MOST_SAMPLES_OF_PAGE, at + 6)
      rest.writeUInt32LE(pages, at + 18)
      if (rest.toString('latin1', body, body + 8) === 'OpusHead') limitPreSkip(rest, body + 10, 'little')
      done = end
    }
    yield rest.subarray(0, done)
    rest = rest.subarray(done)
    if (rest.length > MAX_PAGE_BYTES + PIECE_BYTES) throw new Error('no pages')
  }
  yield rest
}

/** Only the first frame of an MP3 file can have a tag with these numbers, twelve bits each. */
async function* withoutPadding(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let isFirst = true
  for await (const piece of pieces) {
    if (isFirst) limitPadding(piece)
    isFirst = false
    yield piece
  }
}

function limitPadding(frame: Buffer): void {
  const tag = [frame.indexOf('Xing'), frame.indexOf('Info')].find((at) => at >= 0 && at <= 36)
  if (tag === undefined) return
  const flags = frame.readUInt32BE(tag + 4)
  const encoder = tag + 8 + (flags & 1 ? 4 : 0) + (flags & 2 ? 4 : 0) + (flags & 4 ? 100 : 0) + (flags & 8 ? 4 : 0)
  if (encoder + 24 > frame.length) return
  const both = frame.readUIntBE(encoder + 21, 3)
  if ((both >>> 12) + (both & 0xfff) > MAX_PADDING) frame.writeUIntBE(0, encoder + 21, 3)
}

/**
 * Renames the Matroska elements that cut off the end of a block, which decoders follow for Opus alone. Two bytes of
 * sound that happen to look like one change in one bit. A decoder finds the codec in the first piece, or not at all.
 */
async function* withoutDiscarding(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let isOpus: boolean | undefined
  let lastByte: number | undefined
  for await (const piece of pieces) {
    isOpus ??= piece.includes('A_OPUS')
    if (isOpus) {
      for (const at of placesOf(piece, 'OpusHead')) limitPreSkip(piece, at + 10, 'little')
      for (const at of placesOf(piece, '\x75\xa2')) piece[at + 1] = 0xa3
      if (lastByte === 0x75 && piece[0] === 0xa2) piece[0] = 0xa3
      lastByte = piece.at(-1)
    }
    yield piece
  }
}
