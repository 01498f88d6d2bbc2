import { scanFrames, recordsIn, type JournalRecord } from '../../../src/ledger/journal/records.ts'
import type { JournalFiles } from '../../../src/ledger/journal/journal-files.ts'
import type { DiskOperation, History } from './history.ts'

/** What is on a disk: the bytes of each segment. */
export type DiskImage = ReadonlyMap<number, Buffer>

/** What happens to a write or a creation. */
export interface DiskFate {
  readonly error: Error | undefined
  /** How much of a write that fails reaches the file, from 0 to 1; or whether a creation that fails leaves the file. */
  readonly part: number
}

export interface SimulatedDisk extends JournalFiles {
  /** How often each segment was read. */
  readonly reads: Map<number, number>
  /** Ends the operation under way, if there is one. */
  step(): void
}

/** A disk in memory. It writes down everything that is done to it, and what of that is durable. */
export function simulatedDisk(
  image: DiskImage,
  history: History,
  fate: () => DiskFate,
  isManual: boolean,
): SimulatedDisk {
  const files = new Map([...image].map(([segment, bytes]) => [segment, Buffer.from(bytes)]))
  const reads = new Map<number, number>()
  const underWay: (() => void)[] = []
  const record = (operation: DiskOperation): void => {
    history.push(operation)
  }
  /** Things end when the simulation says so, or at once. */
  const later = (end: () => void): void => {
    if (isManual) underWay.push(end)
    else queueMicrotask(end)
  }
  return {
    reads,
    step: () => underWay.shift()?.(),
    list: async () => [...files.keys()].sort((a, b) => a - b),
    create: (segment) =>
      new Promise((resolve, reject) => {
        if (files.has(segment)) return reject(new Error(`segment ${segment} exists`))
        const { error, part } = fate()
        if (!error || part > 0.5) {
          files.set(segment, Buffer.alloc(0))
          record({ kind: 'create', segment })
        }
        later(() => {
          if (error) return reject(error)
          record({ kind: 'created', segment })
          resolve({
            write(bytes, offset, isDurable, done) {
              const outcome = fate()
              const arrived = outcome.error ? bytes.subarray(0, Math.round(bytes.length * outcome.part)) : bytes
              files.set(segment, written(files.get(segment) ?? Buffer.alloc(0), arrived, offset))
              const records = recordsOf(arrived, segment, offset)
              record({
                kind: 'write',
                segment,
                offset,
                bytes: Buffer.from(arrived),
                isCut: arrived.length < bytes.length,
              })
              later(() => {
                if (outcome.error) record({ kind: 'failed' })
                else if (isDurable) record({ kind: 'synced', segment, offset, bytes: Buffer.from(bytes), records })
                else record({ kind: 'handed over', records })
                done(outcome.error ?? null)
              })
            },
            close() {},
          })
        })
      }),
    async read(segment, from = 0, to = Infinity) {
      reads.set(segment, (reads.get(segment) ?? 0) + 1)
      const bytes = files.get(segment)
      if (!bytes) throw new Error(`segment ${segment} does not exist`)
      return Buffer.from(bytes.subarray(from, Math.min(to, bytes.length)))
    },
    async remove(segment) {
      const { error } = fate()
      if (error) throw error
      if (!files.delete(segment)) throw new Error(`segment ${segment} does not exist`)
      record({ kind: 'remove', segment })
    },
    async putAway(segment) {
      if (!files.delete(segment)) throw new Error(`segment ${segment} does not exist`)
      record({ kind: 'remove', segment })
    },
  }
}

export function written(file: Buffer, bytes: Buffer, offset: number): Buffer<ArrayBuffer> {
  const longer = Buffer.alloc(Math.max(file.length, offset + bytes.length))
  file.copy(longer)
  bytes.copy(longer, offset)
  return longer
}

const recordsOf = (bytes: Buffer, segment: number, offset: number): readonly JournalRecord[] =>
  scanFrames(bytes, segment, offset).frames.flatMap(({ text }) => recordsIn(text))
