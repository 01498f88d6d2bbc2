import type { FileWindow } from './file-window.ts'
import { flacCounter, flacRate } from './flac-frames.ts'

const MAX_METADATA_BLOCKS = 1000

/** The length of FLAC is the sum of its frames. The total in the header may be missing or wrong. */
export async function flacSeconds(file: FileWindow, start: number): Promise<number | undefined> {
  const head = await file.at(start, 42)
  const sampleRate = flacRate(head.subarray(8))
  if (head.length < 42 || ((head[4] ?? 0) & 0x7f) !== 0 || sampleRate === 0) return undefined
  const counter = flacCounter(sampleRate)
  const position = await skipMetadata(file, start)
  await counter.add(file, position, file.length - position)
  return counter.seconds
}

/**
 * Skips the metadata, which can hold a picture. If a block goes past the end of the file, the sound begins after its
 * head, because decoders look for it there.
 */
async function skipMetadata(file: FileWindow, start: number): Promise<number> {
  let position = start + 4
  for (let blocks = 0; blocks < MAX_METADATA_BLOCKS; blocks++) {
    const head = await file.at(position, 4)
    const end = position + 4 + (head.length < 4 ? 0 : head.readUIntBE(1, 3))
    if (head.length < 4 || end > file.length) break
    position = end
    if ((head[0] ?? 0) & 0x80) break
  }
  return position
}
