import { scanFrames, recordsIn } from '../../src/ledger/journal/records.ts'
import type { RequestRow } from '../../src/ledger/rows.ts'
import type { JournalFiles } from '../../src/ledger/journal/journal-files.ts'

/** A journal in memory, whose durable writes fail as the test decides. */
export interface MemoryJournal {
  readonly files: JournalFiles
  /** The rows in it, in order. */
  rows(): readonly RequestRow[]
}

/** `failure` is asked before every durable write. */
export function memoryJournal(failure: () => Error | null = () => null): MemoryJournal {
  const segments = new Map<number, Buffer>()
  const read = (segment: number): Buffer => segments.get(segment) ?? Buffer.alloc(0)
  const files: JournalFiles = {
    list: async () => [...segments.keys()].sort((a, b) => a - b),
    async create(segment) {
      segments.set(segment, Buffer.alloc(0))
      return {
        write(bytes, offset, durable, done) {
          const error = durable ? failure() : null
          if (!error) segments.set(segment, Buffer.concat([read(segment).subarray(0, offset), bytes]))
          queueMicrotask(() => done(error))
        },
        close() {},
      }
    },
    read: async (segment, from = 0, to = Infinity) => read(segment).subarray(from, to),
    remove: async (segment) => void segments.delete(segment),
    putAway: async (segment) => void segments.delete(segment),
  }
  return {
    files,
    rows: () =>
      [...segments].flatMap(([segment, bytes]) =>
        scanFrames(bytes, segment).frames.flatMap(({ text }) =>
          recordsIn(text).flatMap((record) => (record.kind === 'row' ? [record.row] : [])),
        ),
      ),
  }
}
