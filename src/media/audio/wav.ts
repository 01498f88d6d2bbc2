import type { FileWindow } from './file-window.ts'
import { mpegSeconds } from './mp3.ts'

const MAX_CHUNKS = 1000
const vital: ReadonlySet<string> = new Set(['fmt ', 'data'])

/**
 * The length of a RIFF file: the bytes of its data chunks, by the size of a sample. There is usually one data chunk, but
 * some decoders play them all.
 */
export async function wavSeconds(file: FileWindow): Promise<number | undefined> {
  let format: Format | undefined
  let seconds: number | undefined
  let position = 12
  for (let chunks = 0; position + 8 <= file.length; chunks++) {
    if (chunks === MAX_CHUNKS) return undefined
    const head = await file.at(position, 8)
    const id = head.toString('latin1', 0, 4)
    const size = head.readUInt32LE(4)
    const content = position + 8
    if (id === 'fmt ') {
      // Of two, some decoders take the first and others the last.
      if (format) return undefined
      format = readFormat(await file.at(content, Math.min(size, FORMAT_BYTES)))
      if (!format) return undefined
    }
    let end = content + size
    if (id === 'data') {
      // A program that writes to a pipe cannot fill in the size afterwards.
      if (size === 0 || end > file.length) end = file.length
      const played = await format?.seconds(file, content, end)
      if (played === undefined) return undefined
      seconds = (seconds ?? 0) + played
    }
    const isOdd = (end - content) % 2 === 1
    // A chunk is padded to an even length. Not every decoder knows that.
    if (isOdd && vital.has((await file.at(end, 4)).toString('latin1'))) return undefined
    position = isOdd ? end + 1 : end
  }
  return seconds
}

interface Format {
  seconds(file: FileWindow, start: number, end: number): number | Promise<number | undefined>
}

const FORMAT_BYTES = 40

const CODE = {
  integer: 1,
  microsoftAdpcm: 2,
  float: 3,
  aLaw: 6,
  muLaw: 7,
  imaAdpcm: 0x11,
  gsm: 0x31,
  mpegLayer1And2: 0x50,
  mpegLayer3: 0x55,
  extensible: 0xfffe,
} as const

/** The average bytes per second say nothing: no decoder needs them. */
function readFormat(bytes: Buffer): Format | undefined {
  if (bytes.length < 16) return undefined
  const code = bytes.readUInt16LE(0)
  const isExtensible = code === CODE.extensible
  if (isExtensible && bytes.length < FORMAT_BYTES) return undefined
  const channels = bytes.readUInt16LE(2)
  const sampleRate = bytes.readUInt32LE(4)
  if (channels === 0 || sampleRate === 0) return undefined
  const block = bytes.readUInt16LE(12)
  const bits = bytes.readUInt16LE(14)
  const declared = bytes.length >= 20 ? bytes.readUInt16LE(18) : 0
  const validBits = isExtensible ? declared : 0
  switch (isExtensible ? bytes.readUInt16LE(24) : code) {
    case CODE.integer:
    case CODE.float:
      return plain(sampleRate, channels * sampleBytes(bits, validBits), block)
    case CODE.aLaw:
    case CODE.muLaw:
      return plain(sampleRate, channels, block)
    case CODE.imaAdpcm:
      return bits === 4 ? blocks(sampleRate, block, declared, (it) => 1 + Math.floor(it / channels - 4) * 2) : undefined
    case CODE.microsoftAdpcm:
      return blocks(sampleRate, block, declared, (it) => 2 + Math.floor((it / channels - 7) * 2))
    case CODE.gsm:
      return blocks(sampleRate, 65, 320, () => 0)
    case CODE.mpegLayer1And2:
    case CODE.mpegLayer3:
      return { seconds: mpegSeconds }
    default:
      return undefined
  }
}

/**
 * Samples take whole bytes. The extensible format also says how many bits are in use; some decoders read samples of that
 * size, except for 24 bits in 32.
 */
function sampleBytes(bits: number, validBits: number): number {
  const bytes = Math.ceil(bits / 8)
  if (validBits === 0 || (bits === 32 && validBits === 24)) return bytes
  return Math.min(bytes, Math.ceil(validBits / 8))
}

/** If the header contradicts itself about the size of a sample for all channels, the smaller size counts. */
function plain(sampleRate: number, frameBytes: number, block: number): Format | undefined {
  const bytes = block > 0 ? Math.min(frameBytes, block) : frameBytes
  return bytes > 0 ? { seconds: (_file, start, end) => (end - start) / bytes / sampleRate } : undefined
}

/** Compressed blocks. Some decoders believe the header about the samples in a block, others derive them from its size. */
function blocks(
  sampleRate: number,
  block: number,
  declaredSamples: number,
  samplesIn: (bytes: number) => number,
): Format | undefined {
  if (block === 0) return undefined
  const samples = Math.max(declaredSamples, samplesIn(block))
  if (samples <= 0) return undefined
  return {
    seconds(_file, start, end) {
      const whole = Math.floor((end - start) / block)
      const rest = Math.max(0, samplesIn((end - start) % block))
      return (whole * samples + rest) / sampleRate
    },
  }
}
