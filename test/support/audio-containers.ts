/** Takes recordings apart and puts their packets into other containers, so that no encoder is needed. */

/** A codec as MP4 and Matroska describe it, and its packets. */
export interface PacketTrack {
  /** The type of the sample entry, and the boxes in it. */
  readonly entryType: string
  readonly entryBoxes: Buffer
  /** The id of the codec in Matroska, and its private data. */
  readonly codec: string
  readonly codecPrivate?: Buffer
  readonly sampleRate: number
  readonly bits?: number
  readonly packets: readonly Buffer[]
  /** For the times that containers claim. */
  readonly packetSamples: number
}

export function box(type: string, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents)
  const head = Buffer.alloc(8)
  head.writeUInt32BE(content.length + 8)
  head.write(type, 4, 'latin1')
  return Buffer.concat([head, content])
}

export function words(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value >>> 0, index * 4)
  return bytes
}

export interface Mp4Options {
  /** Samples in a chunk. */
  readonly perChunk?: number
  /** Whether the index uses stz2 and co64. */
  readonly isCompact?: boolean
  readonly edits?: readonly { readonly movieTicks: number; readonly start: number }[]
  /** More boxes for the track. */
  readonly trackBoxes?: readonly Buffer[]
  readonly handler?: string
}

/** One sound track for each description, with the sound before the index. */
export function mp4File(tracks: readonly PacketTrack[], options: Mp4Options = {}): Buffer {
  const start = box('ftyp', Buffer.from('M4A \0\0\0\0', 'latin1'))
  const sound = box('mdat', ...tracks.flatMap((track) => track.packets))
  let position = start.length + 8
  const boxes = tracks.map((track, index) => {
    const trak = mp4Track(track, index + 1, position, options)
    position += track.packets.reduce((sum, packet) => sum + packet.length, 0)
    return trak
  })
  return Buffer.concat([start, sound, box('moov', box('mvhd', words(0, 0, 0, 1000, 1700), Buffer.alloc(80)), ...boxes)])
}

function mp4Track(track: PacketTrack, id: number, start: number, options: Mp4Options): Buffer {
  const { perChunk = 10, isCompact = false, edits, trackBoxes = [], handler = 'soun' } = options
  const { packets } = track
  const offsets: number[] = []
  let position = start
  for (const [index, packet] of packets.entries()) {
    if (index % perChunk === 0) offsets.push(position)
    position += packet.length
  }
  const lengths = packets.map((packet) => packet.length)
  const compact = Buffer.alloc(packets.length * 2)
  for (const [index, length] of lengths.entries()) compact.writeUInt16BE(length, index * 2)
  const sizes = isCompact
    ? box('stz2', words(0, 16, packets.length), compact)
    : box('stsz', words(0, 0, packets.length, ...lengths))
  const chunks = isCompact
    ? box('co64', words(0, offsets.length, ...offsets.flatMap((offset) => [0, offset])))
    : box('stco', words(0, offsets.length, ...offsets))
  const index = box(
    'stbl',
    sampleDescription(track),
    box('stts', words(0, 1, packets.length, track.packetSamples)),
    box('stsc', words(0, 1, 1, perChunk, 1)),
    sizes,
    chunks,
  )
  const media = box(
    'mdia',
    box('mdhd', words(0, 0, 0, track.sampleRate, packets.length * track.packetSamples, 0)),
    box('hdlr', words(0, 0), Buffer.from(handler, 'latin1'), Buffer.alloc(13)),
    box('minf', index),
  )
  const list = edits?.flatMap(({ movieTicks, start: at }) => [movieTicks, at, 0x10000]) ?? []
  const editBoxes = edits ? [box('edts', box('elst', words(0, edits.length, ...list)))] : []
  return box('trak', box('tkhd', words(7, 0, 0, id, 0, 1700), Buffer.alloc(60)), ...editBoxes, media, ...trackBoxes)
}

function sampleDescription(track: PacketTrack): Buffer {
  const entry = Buffer.alloc(28)
  entry.writeUInt16BE(1, 6)
  entry.writeUInt16BE(1, 16)
  entry.writeUInt16BE(track.bits ?? 16, 18)
  entry.writeUInt16BE(track.sampleRate & 0xffff, 24)
  return box('stsd', words(0, 1), box(track.entryType, entry, track.entryBoxes))
}

/** An EBML element, with a size of eight bytes. */
function element(id: number, ...contents: readonly Buffer[]): Buffer {
  return sizedElement(id, 8, Buffer.concat(contents))
}

/** An EBML element whose size takes this many bytes. */
export function sizedElement(id: number, sizeBytes: number, content: Buffer): Buffer {
  const name = Buffer.from(id.toString(16).padStart(Math.ceil(id.toString(16).length / 2) * 2, '0'), 'hex')
  const size = Buffer.alloc(8)
  size.writeBigUInt64BE(2n ** BigInt(7 * sizeBytes) + BigInt(content.length))
  return Buffer.concat([name, size.subarray(8 - sizeBytes), content])
}

function float(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleBE(value)
  return bytes
}

export interface WebmOptions {
  /** 1: Xiph, 2: fixed, 3: EBML. Four packets in a block. */
  readonly lacing?: 1 | 2 | 3
  /** More elements for the description of the track, and after it. */
  readonly trackElements?: readonly Buffer[]
  readonly segmentElements?: readonly Buffer[]
  readonly clusterElements?: readonly Buffer[]
  /** More elements for each block, which is then in a group. */
  readonly blockElements?: readonly Buffer[]
}

function webmTrack(track: PacketTrack, number = 1, more: readonly Buffer[] = []): Buffer {
  return element(
    0xae,
    element(0xd7, Buffer.from([number])),
    element(0x83, Buffer.from([2])),
    element(0x86, Buffer.from(track.codec)),
    ...(track.codecPrivate ? [element(0x63a2, track.codecPrivate)] : []),
    element(
      0xe1,
      element(0xb5, float(track.sampleRate)),
      element(0x9f, Buffer.from([1])),
      element(0x6264, Buffer.from([track.bits ?? 16])),
    ),
    ...more,
  )
}

export function webmFile(track: PacketTrack, options: WebmOptions = {}): Buffer {
  const { lacing, trackElements = [], segmentElements = [], clusterElements = [], blockElements } = options
  const blocks: Buffer[] = []
  const perBlock = lacing ? 4 : 1
  for (let index = 0; index < track.packets.length; index += perBlock) {
    const packets = track.packets.slice(index, index + perBlock)
    const ms = Math.round((index * track.packetSamples * 1000) / track.sampleRate)
    // Fixed lacing needs packets of one size.
    const canLace = packets.length > 1 && (lacing !== 2 || new Set(packets.map((it) => it.length)).size === 1)
    const groups = lacing && canLace ? [packets] : packets.map((it) => [it])
    for (const group of groups) blocks.push(webmBlock(group, ms, group.length > 1 ? lacing : undefined, blockElements))
  }
  return Buffer.concat([
    element(0x1a45dfa3, element(0x4282, Buffer.from('matroska'))),
    element(
      0x18538067,
      element(0x1549a966, element(0x2ad7b1, words(1_000_000)), element(0x4489, float(1700))),
      element(0x1654ae6b, webmTrack(track, 1, trackElements)),
      ...segmentElements,
      element(0x1f43b675, element(0xe7, words(0)), ...clusterElements, ...blocks),
    ),
  ])
}

function webmBlock(
  packets: readonly Buffer[],
  ms: number,
  lacing: 1 | 2 | 3 | undefined,
  more: readonly Buffer[] | undefined,
): Buffer {
  const head = Buffer.from([0x81, (ms >> 8) & 0xff, ms & 0xff, 0x80 | ((lacing ?? 0) << 1)])
  const block = (...contents: readonly Buffer[]): Buffer =>
    more ? element(0xa0, element(0xa1, head, ...contents), ...more) : element(0xa3, head, ...contents)
  if (!lacing) return block(...packets)
  const sizes = packets.slice(0, -1).map((packet) => packet.length)
  const table: number[] = [packets.length - 1]
  for (const [index, size] of sizes.entries()) {
    if (lacing === 1) table.push(...Array.from({ length: Math.floor(size / 255) }, () => 255), size % 255)
    if (lacing === 3) {
      const value = index === 0 ? size : size - (sizes[index - 1] ?? 0) + 8191
      table.push(0x40 | (value >> 8), value & 0xff)
    }
  }
  return block(Buffer.from(table), ...packets)
}

/** The packets of the only stream in an Ogg file, headers included. */
export function oggPackets(file: Buffer): readonly Buffer[] {
  const packets: Buffer[] = []
  let open: Buffer[] = []
  for (const { content, segments } of oggPages(file)) {
    let at = content
    for (const size of segments) {
      open.push(file.subarray(at, at + size))
      at += size
      if (size === 255) continue
      packets.push(Buffer.concat(open))
      open = []
    }
  }
  return packets
}

export interface PageInFile {
  readonly start: number
  readonly segments: Buffer
  readonly content: number
  readonly end: number
}

export function oggPages(file: Buffer): readonly PageInFile[] {
  const pages: PageInFile[] = []
  for (let start = 0; start + 27 <= file.length;) {
    const segments = file.subarray(start + 27, start + 27 + (file[start + 26] ?? 0))
    const content = start + 27 + segments.length
    const end = content + segments.reduce((sum, size) => sum + size, 0)
    pages.push({ start, segments, content, end })
    start = end
  }
  return pages
}

/** Decoders drop pages with a wrong checksum, so a forged page needs a new one. */
export function sealPages(file: Buffer): void {
  for (const { start, end } of oggPages(file)) {
    file.writeUInt32LE(0, start + 22)
    let sum = 0
    for (const byte of file.subarray(start, end)) {
      sum ^= byte << 24
      for (let bit = 0; bit < 8; bit++) sum = sum < 0 ? (sum << 1) ^ 0x04c11db7 : sum << 1
    }
    file.writeUInt32LE(sum >>> 0, start + 22)
  }
}

/** The samples of an MP4 file with one track and one chunk after another. */
export function mp4Packets(file: Buffer): readonly Buffer[] {
  const table = (type: string): number => file.indexOf(type, 0, 'latin1') + 4
  const sizesAt = table('stsz')
  const count = file.readUInt32BE(sizesAt + 8)
  const offset = file.readUInt32BE(table('stco') + 8)
  let at = offset
  return Array.from({ length: count }, (_, index) => {
    const packet = file.subarray(at, at + file.readUInt32BE(sizesAt + 12 + index * 4))
    at += packet.length
    return packet
  })
}

/** A box anywhere in a file, with its head. */
export function boxIn(file: Buffer, type: string): Buffer {
  const at = file.indexOf(type, 0, 'latin1') - 4
  return file.subarray(at, at + file.readUInt32BE(at))
}
