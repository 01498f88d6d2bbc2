import type { FileWindow } from './file-window.ts'

/**
 * The length of MPEG audio is the sum of its frames. Headers with a length can be missing, forged, or wrong for
 * variable bit rates. Only the padding that the encoder added at both ends is read from the LAME tag.
 */
export async function mp3Seconds(file: FileWindow): Promise<number | undefined> {
  let position = await skipTags(file)
  let first: Frame | undefined
  let samples = 0
  let lost = 0
  while (position + 4 <= file.length) {
    const frame = readFrame(file.peek(position, 4) ?? (await file.at(position, 4)))
    // Other data can look like a header by chance, so the first frame must be followed by a second one.
    if (!frame || (first ? !isSameStream(frame, first) : !(await isFollowed(file, position, frame)))) {
      const next = await file.find(0xff, position + 1, 4, isFrame)
      lost += next - position
      if (lost > MAX_LOST_BYTES) return undefined
      position = next
      continue
    }
    const added = first ? undefined : await readEncoderTag(file, position, frame)
    samples += added === undefined ? frame.samples : -added
    first ??= frame
    position += frame.length
  }
  return first && Math.max(0, samples) / first.sampleRate
}

/** Whether the bytes after any tags are MPEG audio. */
export async function isMp3(file: FileWindow): Promise<boolean> {
  const position = await skipTags(file)
  const frame = readFrame(await file.at(position, 4))
  return frame !== undefined && (await isFollowed(file, position, frame))
}

interface Frame {
  readonly version: number
  readonly layer: number
  readonly sampleRate: number
  readonly isMono: boolean
  readonly length: number
  readonly samples: number
}

/** The most bytes outside frames: tags at the end, or damage. */
const MAX_LOST_BYTES = 1024 * 1024
const MAX_TAGS = 16

const V1_LAYER_1 = [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448]
const V1_LAYER_2 = [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384]
const V1_LAYER_3 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
const V2_LAYER_1 = [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256]
const V2_LAYER_2_3 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]

/** By the two version bits: MPEG 2.5, reserved, 2, 1. */
const SAMPLE_RATES = [[11_025, 12_000, 8000], [], [22_050, 24_000, 16_000], [44_100, 48_000, 32_000]]

function isFrame(bytes: Buffer, at: number): boolean {
  return ((bytes[at + 1] ?? 0) & 0xe0) === 0xe0 && readFrame(bytes, at) !== undefined
}

function readFrame(bytes: Buffer, at = 0): Frame | undefined {
  if (bytes.length < at + 4) return undefined
  const word = bytes.readUInt32BE(at)
  if (word >>> 21 !== 0x7ff) return undefined
  const version = (word >>> 19) & 3
  const layer = 4 - ((word >>> 17) & 3)
  const sampleRate = SAMPLE_RATES[version]?.[(word >>> 10) & 3]
  const kilobits = bitRates(version, layer)?.[(word >>> 12) & 15]
  if (sampleRate === undefined || !kilobits) return undefined
  const padding = (word >>> 9) & 1
  const samples = layer === 1 ? 384 : layer === 3 && version !== 3 ? 576 : 1152
  const slots = Math.floor((samples * kilobits * 1000) / 8 / sampleRate)
  const length = layer === 1 ? (Math.floor(slots / 4) + padding) * 4 : slots + padding
  return { version, layer, sampleRate, isMono: ((word >>> 6) & 3) === 3, length, samples }
}

function bitRates(version: number, layer: number): readonly number[] | undefined {
  if (layer === 4) return undefined
  if (version === 3) return [V1_LAYER_1, V1_LAYER_2, V1_LAYER_3][layer - 1]
  return layer === 1 ? V2_LAYER_1 : V2_LAYER_2_3
}

function isSameStream(one: Frame, other: Frame): boolean {
  return one.version === other.version && one.layer === other.layer && one.sampleRate === other.sampleRate
}

async function isFollowed(file: FileWindow, position: number, frame: Frame): Promise<boolean> {
  const end = position + frame.length
  if (end === file.length) return true
  const next = readFrame(await file.at(end, 4))
  return next !== undefined && isSameStream(next, frame)
}

/** Skips ID3v2 tags. There may be several. */
export async function skipTags(file: FileWindow): Promise<number> {
  let position = 0
  for (let tags = 0; tags < MAX_TAGS; tags++) {
    const head = await file.at(position, 10)
    if (head.length < 10 || head.toString('latin1', 0, 3) !== 'ID3') break
    const hasFooter = ((head[5] ?? 0) & 0x10) !== 0
    const size = head.subarray(6, 10).reduce((sum, byte) => sum * 128 + (byte & 0x7f), 0)
    position += 10 + size + (hasFooter ? 10 : 0)
  }
  return position
}

/**
 * The samples that the encoder added, if the first frame is a Xing, LAME or VBRI tag, which has no sound.
 * undefined: an ordinary frame.
 */
async function readEncoderTag(file: FileWindow, position: number, frame: Frame): Promise<number | undefined> {
  if (frame.layer !== 3) return undefined
  const bytes = await file.at(position, Math.min(frame.length, 512))
  if (bytes.toString('latin1', 36, 40) === 'VBRI') return 0
  const sideBytes = frame.version === 3 ? (frame.isMono ? 17 : 32) : frame.isMono ? 9 : 17
  const tag = bytes.subarray(4 + sideBytes)
  const name = tag.toString('latin1', 0, 4)
  if ((name !== 'Xing' && name !== 'Info') || tag.length < 8) return undefined
  const flags = tag.readUInt32BE(4)
  const encoder = 8 + (flags & 1 ? 4 : 0) + (flags & 2 ? 4 : 0) + (flags & 4 ? 100 : 0) + (flags & 8 ? 4 : 0)
  if (tag.length < encoder + 24 || tag[encoder] === 0) return 0
  const both = tag.readUIntBE(encoder + 21, 3)
  return (both >>> 12) + (both & 0xfff)
}
