import type { JournalPosition } from '../../../src/ledger/journal/positions.ts'
import type { JournalRecord } from '../../../src/ledger/journal/records.ts'
import type { LedgerRow } from '../../../src/ledger/rows.ts'
import { written, type DiskImage } from './disk.ts'

/** Everything that happened, in order. A crash may come after any of it. */
export type History = Happening[]

export type Happening = DiskOperation | StoreOperation | Observation

export type DiskOperation =
  /** The file exists, but a crash may undo that. */
  | { readonly kind: 'create'; readonly segment: number }
  | { readonly kind: 'created'; readonly segment: number }
  /** The operating system has the bytes, and the disk none, some or all of them. */
  | {
      readonly kind: 'write'
      readonly segment: number
      readonly offset: number
      readonly bytes: Buffer
      /** It fails before all of it is written. */
      readonly isCut: boolean
    }
  | {
      readonly kind: 'synced'
      readonly segment: number
      readonly offset: number
      readonly bytes: Buffer
      readonly records: readonly JournalRecord[]
    }
  /** A write that need not be durable has ended. */
  | { readonly kind: 'handed over'; readonly records: readonly JournalRecord[] }
  | { readonly kind: 'failed' }
  | { readonly kind: 'remove'; readonly segment: number }

/** A transaction of the store. */
export interface StoreOperation {
  readonly kind: 'stored'
  readonly rows: readonly LedgerRow[]
  readonly aside: readonly LedgerRow[]
  readonly position: JournalPosition | undefined
}

/** What a caller did, or was told. */
export type Observation =
  | { readonly kind: 'noted'; readonly id: string }
  | { readonly kind: 'asked'; readonly id: string }
  | { readonly kind: 'settled'; readonly id: string }
  | { readonly kind: 'withheld'; readonly id: string }

/** What the store has. A transaction is there as a whole or not at all. */
export interface StoreState {
  readonly rows: ReadonlyMap<string, LedgerRow>
  readonly aside: ReadonlyMap<string, LedgerRow>
  readonly position: JournalPosition | undefined
}

export function stored(state: StoreState, { rows, aside, position }: StoreOperation): StoreState {
  const all = new Map(state.rows)
  for (const row of rows) if (!all.has(row.requestId)) all.set(row.requestId, row)
  const refused = new Map(state.aside)
  for (const row of aside) if (!refused.has(row.requestId)) refused.set(row.requestId, row)
  return { rows: all, aside: refused, position: position ?? state.position }
}

/** What a crash leaves of the part that is not durable. */
export const survivals = ['everything', 'nothing', 'parts'] as const
export type Survival = (typeof survivals)[number]

interface File {
  durable: Buffer
  isDurable: boolean
  pending: { offset: number; bytes: Buffer }[]
}

/** The disk as a crash would leave it, after each thing that happened. */
export class CrashedDisk {
  readonly #files = new Map<number, File>()
  /** Removed, unless the crash undoes it. In order. */
  readonly #removed: { segment: number; file: File }[] = []

  constructor(image: DiskImage) {
    for (const [segment, durable] of image) this.#files.set(segment, { durable, isDurable: true, pending: [] })
  }

  follow(it: Happening): void {
    if (it.kind === 'create') this.#files.set(it.segment, { durable: Buffer.alloc(0), isDurable: false, pending: [] })
    if (it.kind === 'remove') this.#remove(it.segment)
    if (it.kind !== 'created' && it.kind !== 'write' && it.kind !== 'synced') return
    const file = this.#files.get(it.segment)
    // Nothing of a file that was removed meanwhile counts.
    if (!file) return
    if (it.kind === 'created') file.isDurable = true
    if (it.kind === 'write') file.pending.push({ offset: it.offset, bytes: it.bytes })
    if (it.kind === 'synced') {
      file.durable = written(file.durable, it.bytes, it.offset)
      file.pending = file.pending.filter(({ offset, bytes }) => offset + bytes.length > it.offset + it.bytes.length)
    }
  }

  #remove(segment: number): void {
    const file = this.#files.get(segment)
    if (!file) return
    this.#files.delete(segment)
    this.#removed.push({ segment, file })
  }

  /** One of the disks that a crash may leave now. */
  image(survival: Survival, areRemovesUndone: boolean, random: () => number): DiskImage {
    const image = new Map<number, Buffer>()
    const keep = (segment: number, file: File): void => {
      if (!file.isDurable && !survives(survival, random)) return
      image.set(segment, contentOf(file, survival, random))
    }
    for (const [segment, file] of this.#files) keep(segment, file)
    // A file system forgets the last changes of a folder, or none.
    const kept = areRemovesUndone ? Math.floor(random() * (this.#removed.length + 1)) : this.#removed.length
    for (const { segment, file } of this.#removed.slice(kept)) if (!image.has(segment)) keep(segment, file)
    return image
  }
}

function survives(survival: Survival, random: () => number): boolean {
  return survival === 'everything' || (survival === 'parts' && random() < 0.5)
}

/** Small, so that a frame has several. */
const SECTOR = 64

function contentOf({ durable, pending }: File, survival: Survival, random: () => number): Buffer {
  let content = durable
  if (survival === 'nothing') return content
  for (const { offset, bytes } of pending) {
    if (survival === 'everything') content = written(content, bytes, offset)
    else {
      for (let at = 0; at < bytes.length; at += SECTOR) {
        if (random() < 0.5) content = written(content, bytes.subarray(at, at + SECTOR), offset + at)
      }
    }
  }
  return content
}
