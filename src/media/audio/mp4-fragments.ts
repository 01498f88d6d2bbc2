import type { FileWindow } from './file-window.ts'
import type { Mp4Box } from './mp4-boxes.ts'
import type { Mp4Codec } from './mp4-codecs.ts'
import { addBytes } from './mp4-samples.ts'
import type { PacketBudget } from './packet-counter.ts'

/** Of the samples of a track that do not have a size of their own. */
export interface FragmentDefaults {
  readonly sampleBytes: number
}

/** The samples of one track in one fragment. */
export interface Fragment extends FragmentDefaults {
  readonly trackId: number
  /** What the offsets of its runs count from. */
  readonly base: number
  /** Where the next run begins if it does not say so. */
  next: number
}

/** Reads the head of a fragment (tfhd). */
export async function readFragment(
  file: FileWindow,
  box: Mp4Box,
  movie: {
    readonly moofStart: number
    readonly defaults: ReadonlyMap<number, FragmentDefaults>
    readonly fragment?: Fragment | undefined
  },
): Promise<Fragment | undefined> {
  const bytes = await file.at(box.content, Math.min(28, box.end - box.content))
  if (bytes.length < 8) return undefined
  const flags = bytes.readUInt32BE(0)
  const trackId = bytes.readUInt32BE(4)
  const sizeAt = 8 + (flags & 1 ? 8 : 0) + (flags & 2 ? 4 : 0) + (flags & 8 ? 4 : 0)
  const ownBytes = flags & 0x10 && bytes.length >= sizeAt + 4 ? bytes.readUInt32BE(sizeAt) : undefined
  const implied = flags & 0x20000 ? movie.moofStart : (movie.fragment?.next ?? movie.moofStart)
  const base = flags & 1 && bytes.length >= 16 ? Number(bytes.readBigUInt64BE(8)) : implied
  return { trackId, base, next: base, sampleBytes: ownBytes ?? movie.defaults.get(trackId)?.sampleBytes ?? 0 }
}

/** Counts a run of samples (trun). false: there are too many. */
export async function countFragment(
  file: FileWindow,
  box: Mp4Box,
  fragment: Fragment,
  codec: Mp4Codec,
  budget: PacketBudget,
): Promise<boolean> {
  const head = await file.at(box.content, Math.min(12, box.end - box.content))
  if (head.length < 8) return true
  const flags = head.readUInt32BE(0)
  const declared = head.readUInt32BE(4)
  let position = flags & 1 && head.length === 12 ? fragment.base + head.readInt32BE(8) : fragment.next
  const table = box.content + 8 + (flags & 1 ? 4 : 0) + (flags & 4 ? 4 : 0)
  const entryBytes = 4 * [0x100, 0x200, 0x400, 0x800].filter((flag) => flags & flag).length
  const sizeAt = flags & 0x200 ? (flags & 0x100 ? 4 : 0) : undefined
  const count = entryBytes === 0 ? declared : Math.min(declared, Math.floor((box.end - table) / entryBytes))
  if (sizeAt === undefined && codec.frameBytes !== undefined) {
    await addBytes(file, codec, position, count * Math.max(fragment.sampleBytes, codec.frameBytes))
    fragment.next = position + count * fragment.sampleBytes
    return true
  }
  const sizes = sizeAt === undefined ? undefined : file.another()
  for (let index = 0; index < count && position < file.length; index++) {
    let bytes = fragment.sampleBytes
    if (sizes && sizeAt !== undefined) {
      const at = table + index * entryBytes + sizeAt
      const entry = sizes.peek(at, 4) ?? (await sizes.at(at, 4))
      bytes = entry.length === 4 ? entry.readUInt32BE(0) : 0
    }
    const reading = addBytes(file, codec, position, bytes)
    if (reading) await reading
    position += bytes
    const turn = budget.spend()
    if (turn) await turn
    if (budget.isSpent) return false
  }
  fragment.next = position
  return true
}
