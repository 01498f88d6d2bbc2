import { recordsIn, type JournalRecord, scanFrames } from '../../src/ledger/journal/records.ts'
import type { JournalFiles } from '../../src/ledger/journal/journal-files.ts'

/** Journal files whose writes succeed or fail one by one, as the test decides. */
export interface ScriptedJournalFiles {
  readonly files: JournalFiles
  /** Every write, the oldest first. */
  readonly writes: ScriptedWrite[]
  readonly created: number[]
  readonly removed: number[]
  readonly closed: number[]
  /** What the next `create` rejects with, once each. */
  readonly createFailures: Error[]
  /** How many writes are under way. */
  underWay(): number
  /** Ends the write under way. */
  succeed(): Promise<void>
  fail(error?: Error): Promise<void>
}

export interface ScriptedWrite {
  readonly segment: number
  readonly offset: number
  readonly isDurable: boolean
  readonly records: readonly JournalRecord[]
  readonly bytes: number
}

export function scriptedJournalFiles(): ScriptedJournalFiles {
  const writes: ScriptedWrite[] = []
  const created: number[] = []
  const removed: number[] = []
  const closed: number[] = []
  const createFailures: Error[] = []
  const underWay: ((error: Error | null) => void)[] = []
  const unused = (): never => {
    throw new Error('the journal only writes')
  }
  async function end(error: Error | null): Promise<void> {
    const done = underWay.pop()
    if (!done) throw new Error('nothing is being written')
    done(error)
    // A new segment is created asynchronously.
    for (let turns = 0; turns < 3; turns++) await new Promise(setImmediate)
  }
  return {
    writes,
    created,
    removed,
    closed,
    createFailures,
    underWay: () => underWay.length,
    succeed: () => end(null),
    fail: (error = new Error('no space left on the device')) => end(error),
    files: {
      list: unused,
      read: unused,
      putAway: unused,
      async create(segment) {
        const failure = createFailures.shift()
        if (failure) throw failure
        created.push(segment)
        return {
          write(bytes, offset, isDurable, done) {
            if (closed.includes(segment)) throw new Error(`segment ${segment} is closed`)
            if (underWay.length > 0) throw new Error('two writes at once')
            const { frames } = scanFrames(bytes, segment, offset)
            const records = frames.flatMap(({ text }) => recordsIn(text))
            writes.push({ segment, offset, isDurable, records, bytes: bytes.length })
            underWay.push(done)
          },
          close() {
            if (underWay.length > 0) throw new Error(`segment ${segment} is closed while it is being written`)
            closed.push(segment)
          },
        }
      },
      async remove(segment) {
        removed.push(segment)
      },
    },
  }
}
