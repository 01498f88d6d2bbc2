import type { FileWindow } from './file-window.ts'
import type { Mp4Box } from './mp4-boxes.ts'
import { withoutPadding } from './packet-counter.ts'

/** The parts of a track that are played. Without any, all of it is. */
export interface Mp4Edits {
  /** The sum of the parts, in ticks of the movie. 0: to the end. */
  readonly movieTicks: number
  readonly parts: readonly { readonly start: number; readonly movieTicks: number }[]
}

const MAX_EDITS = 1000

/** Reads an edit list. undefined: it is too long. */
export async function readEdits(file: FileWindow, box: Mp4Box): Promise<Mp4Edits | undefined> {
  const head = await file.at(box.content, 8)
  if (head.length < 8) return { movieTicks: 0, parts: [] }
  const isLong = head[0] === 1
  const entryBytes = isLong ? 20 : 12
  const count = Math.min(head.readUInt32BE(4), Math.floor((box.end - box.content - 8) / entryBytes))
  if (count > MAX_EDITS) return undefined
  const bytes = Buffer.from(await file.at(box.content + 8, count * entryBytes))
  const parts = Array.from({ length: Math.floor(bytes.length / entryBytes) }, (_, index) => {
    const entry = bytes.subarray(index * entryBytes)
    return isLong
      ? { movieTicks: Number(entry.readBigUInt64BE(0)), start: Number(entry.readBigInt64BE(8)) }
      : { movieTicks: entry.readUInt32BE(0), start: entry.readInt32BE(4) }
  })
  // A part without media is a pause, which has no sound.
  const sound = parts.filter(({ start }) => start !== -1)
  return { movieTicks: sound.reduce((sum, part) => sum + part.movieTicks, 0), parts: sound }
}

/**
 * What an edit list leaves of the sound: all but the padding of the encoder. undefined: it plays something twice, and how
 * much that is depends on times that the file only claims.
 */
export function editedSeconds(
  seconds: number,
  { movieTicks, parts }: Mp4Edits,
  ticksPerSecond: { readonly movie: number; readonly track: number },
): number | undefined {
  let end = -Infinity
  for (const part of parts) {
    if (part.start < end) return undefined
    const ticks = Math.floor((part.movieTicks * ticksPerSecond.track) / (ticksPerSecond.movie || 1))
    end = part.movieTicks === 0 ? Infinity : part.start + ticks
  }
  if (movieTicks === 0 || ticksPerSecond.movie === 0) return seconds
  return withoutPadding(seconds, seconds - movieTicks / ticksPerSecond.movie)
}
