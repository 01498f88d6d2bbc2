import decode from 'audio-decode'
import type { AudioFormat } from './audio-format.ts'
import { untrimmed, type ReadBytes } from './untrimmed.ts'

/** The most bytes that are read for the headers. */
const MAX_CLAIMS_BYTES = 64 * 2 ** 20

/** The maximum size of a sample in a lossless file, and of everything else in it: names, pictures. */
const MAX_SAMPLE_BYTES = 4
const MAX_OTHER_BYTES = { wav: 4096, flac: 2 ** 20 }

/**
 * Counts the samples that a decoder produces, and keeps none. Throws if it cannot decode the file, or only a part of
 * it.
 */
export async function decodedSeconds(format: AudioFormat, length: number, read: ReadBytes): Promise<number> {
  const decoder = await decode[format.decoder]()
  let seconds = 0
  let samples = 0
  const add = ({ channelData, sampleRate }: { channelData: readonly Float32Array[]; sampleRate: number }): void => {
    const count = channelData[0]?.length ?? 0
    if (count === 0) return
    seconds += count / sampleRate
    samples += count * channelData.length
  }
  try {
    for await (const piece of untrimmed(format, length, read)) add(await decoder(piece))
    add(await decoder())
  } finally {
    decoder.free()
  }
  const { extension } = format
  const isLossless = extension === 'wav' || extension === 'flac'
  if (isLossless && length - MAX_OTHER_BYTES[extension] > samples * MAX_SAMPLE_BYTES) {
    throw new Error('more bytes than sound')
  }
  if (seconds > 0) return seconds
  throw new Error('no sound')
}

/** The length according to the headers, which can be forged. */
export async function claimedSeconds(format: AudioFormat, length: number, read: ReadBytes): Promise<number> {
  // Most recordings are decoded, and their threads start faster without it.
  const { parseBuffer } = await import('music-metadata')
  const bytes = await read(0, Math.min(length, MAX_CLAIMS_BYTES))
  const { format: found } = await parseBuffer(bytes, { mimeType: format.contentType, size: length }, { duration: true })
  if (found.duration === undefined) throw new Error('no length')
  return found.duration
}
