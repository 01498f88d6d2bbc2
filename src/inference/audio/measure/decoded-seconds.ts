import decode from 'audio-decode'
import type { AudioFormat } from './audio-format.ts'
import { untrimmed, type ReadBytes } from './untrimmed.ts'

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
