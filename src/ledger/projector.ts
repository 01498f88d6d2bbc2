import { isAfter, type JournalPosition, type JournalSpan } from './journal/positions.ts'
import type { Clock } from '../shared/clock.ts'

/**
 * Applies the journal to the store: a short while after it grew, so that many rows share a transaction; immediately if
 * a reader waits for them. After a failure it retries for as long as the process lives.
 */
export interface Projector {
  /** The journal has grown. */
  add(span: JournalSpan): void
  /** Resolves when the store has everything up to this position. Rejects if the store does not accept it now. */
  through(position: JournalPosition): Promise<void>
  /** `isFailing`: the store did not accept the last rows that it was given. */
  status(): { readonly bytes: number; readonly lagMs: number; readonly isFailing: boolean }
  /** Stops applying. */
  close(): void
}

export interface ProjectorParts {
  readonly clock: Clock
  /** Adds the rows of these spans to the store. */
  apply(spans: readonly JournalSpan[]): Promise<void>
  /** Everything in this segment is in the store, and nothing more will be added to it. */
  done(segment: number): void
  /** Called when the store stops accepting rows, and when it accepts them again. */
  failed(reason: Error): void
  recovered(): void
}

/**
 * Long enough for hundreds of rows to share a transaction, and short enough for someone who queries the database
 * directly.
 */
const PAUSE_MS = 200
const RETRY_MS = 500
/** A backlog is applied in pieces of this size, so that readers see progress. */
const SPANS_BYTES_MAX = 4 * 1024 * 1024

interface Reader {
  readonly position: JournalPosition
  resolve(): void
  reject(error: Error): void
}

export function createProjector({ clock, apply, done, failed, recovered }: ProjectorParts): Projector {
  /** Not in the store yet, in order; one for each segment. */
  let spans: { segment: number; from: number; to: number }[] = []
  let bytes = 0
  let since = 0
  let readers: Reader[] = []
  let isApplying = false
  let timer: NodeJS.Timeout | undefined
  let isFailing = false
  let isClosed = false

  function applyAfter(ms: number): void {
    if (!isClosed) timer ??= setTimeout(applyNow, ms)
  }

  function applyNow(): void {
    clearTimeout(timer)
    timer = undefined
    if (isApplying || isClosed) return
    isApplying = true
    const piece = firstSpans()
    apply(piece).then(
      () => {
        isApplying = false
        applied(piece)
        if (bytes > 0 && readers.length > 0) applyNow()
        else if (bytes > 0) applyAfter(bytes > SPANS_BYTES_MAX ? 0 : PAUSE_MS)
      },
      (error: Error) => {
        isApplying = false
        if (!isFailing) failed(error)
        isFailing = true
        for (const reader of readers.splice(0)) reader.reject(error)
        applyAfter(RETRY_MS)
      },
    )
  }

  function firstSpans(): readonly JournalSpan[] {
    const piece: JournalSpan[] = []
    for (let size = 0, index = 0; index < spans.length && size < SPANS_BYTES_MAX; index++) {
      const span = { ...spans[index]! }
      size += span.to - span.from
      piece.push(span)
    }
    return piece
  }

  function applied(piece: readonly JournalSpan[]): void {
    if (isFailing) recovered()
    isFailing = false
    since = clock.monotonic()
    for (const { segment, from, to } of piece) {
      const first = spans[0]!
      bytes -= to - from
      first.from = to
      // The last segment may still grow, and another one may have grown in the meantime.
      if (spans.length === 1 || first.from < first.to) break
      spans.shift()
      done(segment)
    }
    const reached = end()
    for (const reader of readers.splice(0)) {
      if (isAfter(reader.position, reached)) readers.push(reader)
      else reader.resolve()
    }
  }

  /** The position that the store has reached. */
  function end(): JournalPosition {
    const [first] = spans
    return first ? { segment: first.segment, offset: first.from } : { segment: 0, offset: 0 }
  }

  return {
    add({ segment, from, to }) {
      if (bytes === 0) since = clock.monotonic()
      bytes += to - from
      const last = spans.at(-1)
      if (last?.segment === segment) last.to = to
      else {
        spans.push({ segment, from, to })
        retire()
      }
      applyAfter(PAUSE_MS)
    },
    through(position) {
      if (bytes === 0 || !isAfter(position, end())) return Promise.resolve()
      if (isClosed) return Promise.reject(new Error('the ledger is closed'))
      return new Promise((resolve, reject) => {
        readers.push({ position, resolve, reject })
        applyNow()
      })
    },
    close() {
      isClosed = true
      clearTimeout(timer)
      timer = undefined
      for (const reader of readers.splice(0)) reader.reject(new Error('the ledger is closed'))
    },
    status: () => ({ bytes, lagMs: bytes === 0 ? 0 : clock.monotonic() - since, isFailing }),
  }

  /** A segment that was applied while it was the last one is finished once another one follows. */
  function retire(): void {
    const [first] = spans
    if (spans.length < 2 || !first || isApplying || first.from < first.to) return
    spans.shift()
    done(first.segment)
  }
}
