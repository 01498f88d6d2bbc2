import type { FileWindow } from './file-window.ts'
import type { PacketCounter } from './packet-counter.ts'

/** The header of an MPEG audio frame: layer 1, 2 or 3. */
export interface MpegFrame {
  readonly version: number
  readonly layer: number
  readonly sampleRate: number
  readonly isMono: boolean
  /** 0: a free format, whose frames are as long as the distance between them. */
  readonly length: number
  readonly samples: number
}

export const MPEG_HEADER_BYTES = 4

const V1_LAYER_1 = [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448]
const V1_LAYER_2 = [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384]
const V1_LAYER_3 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
const V2_LAYER_1 = [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256]
const V2_LAYER_2_3 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]

/** By the two version bits: MPEG 2.5, reserved, 2, 1. */
const SAMPLE_RATES = [[11_025, 12_000, 8000], [], [22_050, 24_000, 16_000], [44_100, 48_000, 32_000]]

export function readMpegFrame(bytes: Buffer, at = 0): MpegFrame | undefined {
  if (bytes.length < at + MPEG_HEADER_BYTES) return undefined
  const word = bytes.readUInt32BE(at)
  if (word >>> 21 !== 0x7ff) return undefined
  const version = (word >>> 19) & 3
  const layer = 4 - ((word >>> 17) & 3)
  const sampleRate = SAMPLE_RATES[version]?.[(word >>> 10) & 3]
  const kilobits = bitRates(version, layer)?.[(word >>> 12) & 15]
  if (sampleRate === undefined || kilobits === undefined) return undefined
  const padding = (word >>> 9) & 1
  const samples = layer === 1 ? 384 : layer === 3 && version !== 3 ? 576 : 1152
  const slots = Math.floor((samples * kilobits * 1000) / 8 / sampleRate)
  const length = layer === 1 ? (Math.floor(slots / 4) + padding) * 4 : slots + padding
  const isMono = ((word >>> 6) & 3) === 3
  return { version, layer, sampleRate, isMono, length: kilobits === 0 ? 0 : length, samples }
}

function bitRates(version: number, layer: number): readonly number[] | undefined {
  if (layer === 4) return undefined
  if (version === 3) return [V1_LAYER_1, V1_LAYER_2, V1_LAYER_3][layer - 1]
  return layer === 1 ? V2_LAYER_1 : V2_LAYER_2_3
}

export function isSameStream(one: MpegFrame, other: MpegFrame): boolean {
  return one.version === other.version && one.layer === other.layer && one.sampleRate === other.sampleRate
}

/** Counts MPEG audio inside another container. A packet has to be one frame, or several in a row. */
export function mpegCounter(): PacketCounter {
  let seconds = 0
  return {
    get seconds() {
      return seconds
    },
    async add(file: FileWindow, position: number, bytes: number, isContinued = false) {
      const end = position + bytes
      if (isContinued) seconds = Number.NaN
      for (let at = position; at < end && at < file.length;) {
        const frame = readMpegFrame(file.peek(at, MPEG_HEADER_BYTES) ?? (await file.at(at, MPEG_HEADER_BYTES)))
        seconds += frame && frame.length > 0 ? frame.samples / frame.sampleRate : Number.NaN
        if (Number.isNaN(seconds)) return
        at += frame?.length ?? 0
      }
    },
  }
}
