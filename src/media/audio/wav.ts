import type { Window } from './window.ts'

const MAX_CHUNKS = 1000

/** Samples of a fixed size: integers, floating point, A-law, µ-law, and any of them described at length. */
const plainCodes: ReadonlySet<number> = new Set([1, 3, 6, 7, 0xfffe])
/** ADPCM of Microsoft and IMA: blocks of so many samples. */
const blockCodes: ReadonlySet<number> = new Set([2, 0x11])

/** Seconds of a RIFF file: the bytes of its data chunk over the bytes of a second. */
export async function wavSeconds(file: Window): Promise<number | undefined> {
  let bytesPerSecond = 0
  let position = 12
  for (let chunks = 0; chunks < MAX_CHUNKS && position + 8 <= file.length; chunks++) {
    const head = await file.at(position, 8)
    const id = head.toString('latin1', 0, 4)
    const size = head.readUInt32LE(4)
    const content = position + 8
    if (id === 'fmt ') bytesPerSecond = await readBytesPerSecond(file, content)
    if (id === 'data') {
      // Whoever wrote to a pipe could not come back to fill the size in.
      const rest = file.length - content
      const bytes = size === 0 ? rest : Math.min(size, rest)
      return bytesPerSecond > 0 ? bytes / bytesPerSecond : undefined
    }
    position = content + size + (size % 2)
  }
  return undefined
}

/** By what a decoder goes by: the average that the header claims is often wrong. */
async function readBytesPerSecond(file: Window, position: number): Promise<number> {
  const format = await file.at(position, 20)
  if (format.length < 16) return 0
  const code = format.readUInt16LE(0)
  const sampleRate = format.readUInt32LE(4)
  const blockBytes = format.readUInt16LE(12)
  if (plainCodes.has(code)) return (sampleRate * format.readUInt16LE(2) * format.readUInt16LE(14)) / 8
  const samplesPerBlock = blockCodes.has(code) && format.length === 20 ? format.readUInt16LE(18) : 0
  return samplesPerBlock > 0 ? (sampleRate * blockBytes) / samplesPerBlock : format.readUInt32LE(8)
}
