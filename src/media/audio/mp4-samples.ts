import type { FileWindow } from './file-window.ts'
import type { Mp4Box } from './mp4-boxes.ts'
import type { Mp4Codec } from './mp4-codecs.ts'
import type { PacketBudget } from './packet-counter.ts'

/** The index of a track: where its samples are, and their sizes. Durations are not read: only edits would need them. */
export interface SampleTables {
  /** stsz or stz2. */
  readonly sizes: Mp4Box
  /** stsc. */
  readonly runs: Mp4Box
  /** stco or co64. */
  readonly chunks: Mp4Box
}

/**
 * Counts the samples that a decoder finds through the index. false: the index contradicts itself, or has too many.
 * Decoders differ at the end: some play what the chunks list, others everything that has a size, so both count.
 */
export async function countIndexed(
  file: FileWindow,
  codec: Mp4Codec,
  tables: SampleTables,
  budget: PacketBudget,
): Promise<boolean> {
  const sizes = await openSizes(file.another(), tables.sizes)
  const chunks = await openChunks(file.another(), tables.chunks)
  const runs = await openRuns(file.another(), tables.runs)
  let sample = 0
  for (let chunk = 0; chunk < chunks.count; chunk++) {
    let position = chunks.peek(chunk) ?? (await chunks.read(chunk))
    if (chunk === runs.nextChange && !(await runs.change())) return false
    const { listed } = runs
    const left = Math.max(0, sizes.count - sample)
    const isLast = chunk === chunks.count - 1
    if (codec.frameBytes !== undefined && sizes.fixed !== undefined) {
      const count = isLast ? Math.max(listed, left) : listed
      await addBytes(file, codec, position, count * Math.max(sizes.fixed, codec.frameBytes))
      sample += count
    } else {
      const count = isLast ? left : Math.min(listed, left)
      for (let index = 0; index < count && position < file.length; index++) {
        const bytes = sizes.fixed ?? sizes.peek(sample + index) ?? (await sizes.read(sample + index))
        const reading = addBytes(file, codec, position, bytes)
        if (reading) await reading
        position += bytes
        const turn = budget.spend()
        if (turn) await turn
        if (budget.isSpent) return false
      }
      sample += count
    }
    const turn = budget.spend()
    if (turn) await turn
    if (budget.isSpent) return false
  }
  return true
}

/** Adds what the file has of a sample. */
export function addBytes(
  file: FileWindow,
  { counter, frameBytes }: Mp4Codec,
  position: number,
  bytes: number,
): Promise<void> | undefined {
  if (position >= file.length) return undefined
  return counter.add(file, position, Math.min(Math.max(bytes, frameBytes ?? 0), file.length - position))
}

interface Sizes {
  readonly count: number
  readonly fixed: number | undefined
  /** The size of a sample, if it is in the window. */
  peek(index: number): number | undefined
  read(index: number): Promise<number>
}

async function openSizes(file: FileWindow, box: Mp4Box): Promise<Sizes> {
  const head = await file.at(box.content, 12)
  if (head.length < 12) return { count: 0, fixed: 0, peek: () => 0, read: () => Promise.resolve(0) }
  const isCompact = box.type === 'stz2'
  const declared = head.readUInt32BE(8)
  const fixed = isCompact ? 0 : head.readUInt32BE(4)
  if (fixed > 0) return { count: declared, fixed, peek: () => fixed, read: () => Promise.resolve(fixed) }
  const bits = isCompact ? (head[7] ?? 0) : 32
  const table = box.content + 12
  const count = bits > 0 ? Math.min(declared, Math.floor(((box.end - table) * 8) / bits)) : 0
  const at = (index: number): [position: number, bytes: number] => [
    table + Math.floor((index * bits) / 8),
    Math.ceil(bits / 8),
  ]
  const sizeIn = (bytes: Buffer, index: number): number => {
    if (bits >= 8) return bytes.length === bits / 8 ? bytes.readUIntBE(0, bits / 8) : 0
    return index % 2 === 0 ? (bytes[0] ?? 0) >>> 4 : (bytes[0] ?? 0) & 15
  }
  return {
    count: bits === 4 || bits === 8 || bits === 16 || bits === 32 ? count : 0,
    fixed: undefined,
    peek(index) {
      const bytes = file.peek(...at(index))
      return bytes && sizeIn(bytes, index)
    },
    read: async (index) => sizeIn(await file.at(...at(index)), index),
  }
}

interface Chunks {
  readonly count: number
  /** Where a chunk is, if that is in the window. */
  peek(index: number): number | undefined
  read(index: number): Promise<number>
}

async function openChunks(file: FileWindow, box: Mp4Box): Promise<Chunks> {
  const entryBytes = box.type === 'co64' ? 8 : 4
  const table = await openTable(file, box, entryBytes)
  const offsetIn = (entry: Buffer): number =>
    entryBytes === 8 ? Number(entry.readBigUInt64BE(0)) : entry.readUInt32BE(0)
  return {
    count: table.count,
    peek(index) {
      const entry = file.peek(table.start + index * entryBytes, entryBytes)
      return entry && offsetIn(entry)
    },
    read: async (index) => offsetIn(await table.entry(index)),
  }
}

interface Runs {
  /** How many samples a chunk has, up to the next change. */
  readonly listed: number
  /** The chunk from which on another number holds. */
  readonly nextChange: number
  /** false: the table is not in order. */
  change(): Promise<boolean>
}

/** Each entry holds from its first chunk (counted from 1) to that of the next entry. */
async function openRuns(file: FileWindow, box: Mp4Box): Promise<Runs> {
  const table = await openTable(file, box, 12)
  const firstChunk = async (index: number): Promise<number> =>
    index < table.count ? (await table.entry(index)).readUInt32BE(0) - 1 : Infinity
  let next = 0
  let listed = 1
  let nextChange = await firstChunk(0)
  return {
    get listed() {
      return listed
    },
    get nextChange() {
      return nextChange
    },
    async change() {
      listed = (await table.entry(next++)).readUInt32BE(4)
      const before = nextChange
      nextChange = await firstChunk(next)
      return nextChange > before
    },
  }
}

/** A table that begins with version and flags, and the number of its entries. */
async function openTable(
  file: FileWindow,
  box: Mp4Box,
  entryBytes: number,
): Promise<{ readonly start: number; readonly count: number; entry(index: number): Promise<Buffer> }> {
  const head = await file.at(box.content, 8)
  const declared = head.length < 8 ? 0 : head.readUInt32BE(4)
  const table = box.content + 8
  return {
    start: table,
    count: Math.max(0, Math.min(declared, Math.floor((Math.min(box.end, file.length) - table) / entryBytes))),
    async entry(index) {
      const position = table + index * entryBytes
      return file.peek(position, entryBytes) ?? (await file.at(position, entryBytes))
    },
  }
}
