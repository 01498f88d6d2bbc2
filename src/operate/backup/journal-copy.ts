import { closeSync, existsSync, fstatSync, openSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { JOURNAL_FOLDER, segmentName, segmentsAmong } from '../../ledger/journal/segment-names.ts'
import { appendPart, type DescribedSegment } from './backup-file.ts'

/** A segment of the journal, held open: it can be read even after the service has removed it. */
export interface OpenSegment {
  readonly segment: number
  readonly handle: number
  /** What has been written so far. A write that is under way may be cut off, as by a crash. */
  readonly bytes: number
}

/** Opens the current segments of the journal. */
export function openSegments(dataDir: string): readonly OpenSegment[] {
  const folder = join(dataDir, JOURNAL_FOLDER)
  const opened: OpenSegment[] = []
  try {
    for (const segment of existsSync(folder) ? segmentsAmong(readdirSync(folder)) : []) {
      const handle = openIfThere(join(folder, segmentName(segment)))
      if (handle !== undefined) opened.push({ segment, handle, bytes: fstatSync(handle).size })
    }
    return opened
  } catch (error) {
    closeSegments(opened)
    throw error
  }
}

export function closeSegments(segments: readonly OpenSegment[]): void {
  for (const { handle } of segments) closeSync(handle)
}

/** A segment that has been removed in the meantime is in the database already. */
export function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Writes the segments into a file, one after the other. Calls `written` after each piece. */
export function appendSegments(
  segments: readonly OpenSegment[],
  into: number,
  position: number,
  written: () => void,
): readonly DescribedSegment[] {
  let end = position
  return segments.map(({ segment, ...file }) => {
    const part = appendPart(file, into, end, written)
    end += part.bytes
    return { segment, ...part }
  })
}
