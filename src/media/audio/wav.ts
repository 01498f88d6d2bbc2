import type { FileWindow } from './file-window.ts'

const MAX_CHUNKS = 1000

/** Samples of fixed size: integers, floating point, A-law, µ-law, and the extensible format. */
const plainCodes: ReadonlySet<number> = new Set([1, 3, 6, 7, 0xfffe])
/** ADPCM of Microsoft and IMA: blocks with a fixed number of samples. */
const blockCodes: ReadonlySet<number> = new Set([2, 0x11])

/** The length of a RIFF file: the bytes of its data chunk divided by the bytes per second. */
export async function wavSeconds(file: FileWindow): Promise<number | undefined> {
  let bytesPerSecond = 0
  let position = 12
  for (let chunks = 0; chunks < MAX_CHUNKS && position + 8 <= file.length; chunks++) {
    const head = await file.at(position, 8)
    const id = head.toString('latin1', 0, 4)
    const size = head.readUInt32LE(4)
    const content = position + 8
    if (id === 'fmt ') bytesPerSecond = await readBytesPerSecond(file, content)
    if (id === 'data') {
      // A program that writes to a pipe cannot fill in the size afterwards.
      const rest = file.length - content
      const bytes = size === 0 ? rest : Math.min(size, rest)
      return bytesPerSecond > 0 ? bytes / bytesPerSecond : undefined
    }
    position = content + size + (size % 2)
  }
  return undefined
}

/** Computed from the fields a decoder uses, because the average in the header is often wrong. */
async function readBytesPerSecond(file: FileWindow, position: number): Promise<number> {
  const format = await file.at(position, 20)
  if (format.length < 16) return 0
  const code = format.readUInt16LE(0)
  const sampleRate = format.readUInt32LE(4)
  const blockBytes = format.readUInt16LE(12)
  if (plainCodes.has(code)) return (sampleRate * format.readUInt16LE(2) * format.readUInt16LE(14)) / 8
  const samplesPerBlock = blockCodes.has(code) && format.length === 20 ? format.readUInt16LE(18) : 0
  return samplesPerBlock > 0 ? (sampleRate * blockBytes) / samplesPerBlock : format.readUInt32LE(8)
}
