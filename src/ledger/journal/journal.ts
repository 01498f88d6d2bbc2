import { frameOf, headText, intentText, rowText, type SegmentHead } from './records.ts'
import type { JournalPosition, JournalSpan } from './positions.ts'
import type { Intent, RequestRow } from '../rows.ts'
import type { Clock } from '../../shared/clock.ts'
import type { JournalFiles, SegmentWriter } from './journal-files.ts'

/**
 * Intents and rows, appended to segments on disk. Everything that arrives during a write goes into the next one, as one
 * frame: a single row waits for one durable write, and a thousand concurrent rows share one.
 *
 * No request waits for its intent. Intents are written when no other write is under way, without waiting for the disk,
 * and again in the next durable frame. So intents survive the process and need no disk write of their own.
 *
 * If a write fails, its segment is left as it is, and the next segment records where that one ended: bytes of the
 * failed write beyond that point do not count. Everything that is not durable is kept and written again.
 */
export interface Journal {
  /**
   * Creates the first segment, so that the first intent need not wait for it. Rejects if the disk cannot be written.
   */
  prepare(): Promise<void>
  /** Throws if the journal cannot be written now; then nothing may be sent to an engine. */
  note(intent: Intent): void
  /**
   * Resolves when the row is durable. A rejection only means that the caller should stop waiting: the journal keeps
   * trying, with `late` instead of the row if it is given.
   */
  settle(row: RequestRow, late?: () => RequestRow): Promise<void>
  /** Where the durable part ends. */
  end(): JournalPosition
  status(): { readonly failure: Error | undefined; readonly waiting: number; readonly lagMs: number }
  /** Resolves when everything is durable. */
  flush(): Promise<void>
  /**
   * Ends the journal; writes that `flush` did not wait for are not retried. Returns whether no intent is open, so that
   * the journal is no longer needed once it is applied.
   */
  close(): { readonly isComplete: boolean }
}

export interface JournalOptions {
  readonly files: JournalFiles
  /** The number of the first segment. No existing segment may have this number or a higher one. */
  readonly firstSegment: number
  readonly clock: Clock
  /** Called with everything that becomes durable, in order. */
  grew(span: JournalSpan): void
}

export const SEGMENT_BYTES = 4 * 1024 * 1024
/** Keeps the time to build and write a frame to a few milliseconds. */
const FRAME_ENTRIES_MAX = 2000
/** Above this, intents get a durable write of their own, so that they are not written again and again. */
const PLAIN_ENTRIES_MAX = 64
const RETRY_MS = 250
/** How long a caller's last byte waits for a failing disk. The row itself is kept until it is written. */
const SETTLE_PATIENCE_MS = 5000

interface Entry {
  text: string
  readonly requestId: string
  /** Present only for rows: a caller is waiting. */
  readonly row: WaitingRow | undefined
}

interface WaitingRow {
  /** Replaces the row once its caller has waited too long. */
  readonly late: (() => RequestRow) | undefined
  readonly since: number
  resolve(): void
  reject(error: Error): void
}

interface Segment {
  readonly number: number
  readonly writer: SegmentWriter
  end: number
}

export function openJournal({ files, firstSegment, clock, grew }: JournalOptions): Journal {
  /** Not durable yet, in order. */
  let queue: Entry[] = []
  let queuedRows = 0
  /** How many entries of the queue have been passed to the operating system. */
  let handedOver = 0
  /** The intents of requests that have no durable row yet. A new segment begins with those that are durable. */
  const open = new Map<string, string>()
  let segment: Segment | undefined
  let nextNumber = firstSegment
  let previous: SegmentHead['previous'] = null
  let isWriting = false
  let failure: Error | undefined
  let retry: NodeJS.Timeout | undefined
  let emptied: (() => void)[] = []
  let isClosed = false

  function pump(): void {
    if (isWriting || retry) return
    if (isClosed) {
      if (segment) leave(segment)
      return
    }
    if (queue.length === 0) {
      for (const done of emptied.splice(0)) done()
      return
    }
    const isDurable = queuedRows > 0 || queue.length > PLAIN_ENTRIES_MAX || emptied.length > 0
    if (!isDurable && handedOver === queue.length) return
    isWriting = true
    if (segment && segment.end < SEGMENT_BYTES) write(segment, isDurable)
    else void openAndWrite(isDurable)
  }

  async function openAndWrite(isDurable: boolean): Promise<void> {
    try {
      write(await nextSegment(), isDurable)
    } catch (error) {
      failed(error as Error)
    }
  }

  /** Nothing in the new segment counts until its first frame is durable. */
  async function nextSegment(): Promise<Segment> {
    if (segment) leave(segment)
    const number = nextNumber++
    const writer = await files.create(number)
    return (segment = { number, writer, end: 0 })
  }

  function leave({ number, writer, end }: Segment): void {
    writer.close()
    segment = undefined
    if (end > 0) previous = { segment: number, end }
    else void files.remove(number).catch(() => {})
  }

  function write(into: Segment, isDurable: boolean): void {
    const count = Math.min(queue.length, FRAME_ENTRIES_MAX)
    const lines = into.end === 0 ? opening(count) : []
    for (let index = 0; index < count; index++) lines.push(queue[index]!.text)
    const frame = frameOf(lines.join('\n'), into.number, into.end)
    into.writer.write(frame, into.end, isDurable, (error) => {
      isWriting = false
      if (error) return failed(error)
      failure = undefined
      if (isDurable) confirm(into, count, frame.length)
      else handedOver = count
      pump()
    })
  }

  /** The first lines of a segment: its header, and the open intents that only earlier segments have. */
  function opening(count: number): string[] {
    const carried = new Map(open)
    for (let index = 0; index < count; index++) carried.delete(queue[index]!.requestId)
    return [headText({ format: 1, previous }), ...carried.values()]
  }

  function confirm(into: Segment, count: number, bytes: number): void {
    const from = into.end
    into.end += bytes
    handedOver = 0
    const entries = queue
    queue = entries.length === count ? [] : entries.slice(count)
    for (let index = 0; index < count; index++) {
      const { row, requestId } = entries[index]!
      if (!row) continue
      queuedRows--
      open.delete(requestId)
    }
    // A caller may read as soon as its row is confirmed, so the projector has to know about the row before that.
    grew({ segment: into.number, from, to: into.end })
    for (let index = 0; index < count; index++) entries[index]!.row?.resolve()
  }

  function failed(error: Error): void {
    isWriting = false
    failure = error
    handedOver = 0
    if (segment) leave(segment)
    const overdue = clock.monotonic() - SETTLE_PATIENCE_MS
    for (const entry of queue) {
      if (!entry.row || entry.row.since > overdue) continue
      if (entry.row.late) entry.text = rowText(entry.row.late())
      entry.row.reject(error)
    }
    if (isClosed) return
    retry = setTimeout(() => {
      retry = undefined
      pump()
    }, RETRY_MS)
  }

  return {
    async prepare() {
      isWriting = true
      await nextSegment().finally(() => (isWriting = false))
      pump()
    },
    note(intent) {
      if (failure) throw failure
      const text = intentText(intent)
      open.set(intent.requestId, text)
      queue.push({ text, requestId: intent.requestId, row: undefined })
      pump()
    },
    settle(row, late) {
      return new Promise((resolve, reject) => {
        const waiting = { late, since: clock.monotonic(), resolve, reject }
        queue.push({ text: rowText(row), requestId: row.requestId, row: waiting })
        queuedRows++
        pump()
      })
    },
    end,
    status() {
      const oldest = queue.find(({ row }) => row)?.row
      return { failure, waiting: queuedRows, lagMs: oldest ? clock.monotonic() - oldest.since : 0 }
    },
    flush: () =>
      new Promise((resolve) => {
        emptied.push(resolve)
        pump()
      }),
    close() {
      isClosed = true
      clearTimeout(retry)
      retry = undefined
      // The number of a descriptor that is closed during a write may be reused for another file before the write
      // happens.
      pump()
      return { isComplete: open.size === 0 && queue.length === 0 }
    },
  }

  /** A segment without a durable frame contains nothing that a caller waited for. */
  function end(): JournalPosition {
    if (segment && segment.end > 0) return { segment: segment.number, offset: segment.end }
    return previous ? { segment: previous.segment, offset: previous.end } : { segment: firstSegment, offset: 0 }
  }
}
