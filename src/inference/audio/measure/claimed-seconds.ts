import { parseBuffer } from 'music-metadata'
import type { AudioFormat } from './audio-format.ts'
import type { ReadBytes } from './untrimmed.ts'

/** The most bytes that are read for the headers. */
const MAX_CLAIMS_BYTES = 64 * 2 ** 20

/** The length according to the headers, which can be forged. */
export async function claimedSeconds(format: AudioFormat, length: number, read: ReadBytes): Promise<number> {
  const bytes = await read(0, Math.min(length, MAX_CLAIMS_BYTES))
  const { format: found } = await parseBuffer(bytes, { mimeType: format.contentType, size: length }, { duration: true })
  if (found.duration === undefined) throw new Error('no length')
  return found.duration
}
