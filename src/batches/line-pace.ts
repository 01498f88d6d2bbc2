import type { Batch } from './batch-store.ts'

/** How fast the lines of a batch go. */
export interface LinePace {
  /** null: no line can run now, or too few have ended in the last minutes. */
  readonly linesPerMinute: number | null
  /** When the last line ends at this pace, which may be after the batch expires. */
  readonly expectedEnd: number | null
}

/** The pace is that of this time: how much of the models is idle changes over a day. */
export const RECENT_MS = 10 * 60_000
/** Fewer lines in less time could have any pace. */
const MIN_LINES = 5
const MIN_MS = 10_000

/** `endedLines` have ended since `since`. */
export function linePaceOf(
  { state, pause, counts }: Pick<Batch, 'state' | 'pause' | 'counts'>,
  endedLines: number,
  since: number,
  now: number,
): LinePace {
  const isKnown = state === 'in_progress' && pause === null && endedLines >= MIN_LINES && now - since >= MIN_MS
  if (!isKnown) return { linesPerMinute: null, expectedEnd: null }
  const msPerLine = (now - since) / endedLines
  const left = Math.max(0, counts.total - counts.completed - counts.failed)
  return { linesPerMinute: 60_000 / msPerLine, expectedEnd: Math.round(now + left * msPerLine) }
}
