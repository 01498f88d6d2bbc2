import type { FileWindow } from './file-window.ts'
import { isSameStream, MPEG_HEADER_BYTES, readMpegFrame, type MpegFrame } from './mpeg-frames.ts'
import { withoutPadding } from './packet-counter.ts'

/**
 * The length of MPEG audio is the sum of its frames. Headers with a length can be missing, forged, or wrong for
 * variable bit rates. Only the padding that the encoder added at both ends is read from the LAME tag.
 */
export async function mp3Seconds(file: FileWindow): Promise<number | undefined> {
  return mpegSeconds(file, await skipTags(file), file.length)
}

/** The same for part of a file. */
export async function mpegSeconds(file: FileWindow, start: number, end: number): Promise<number | undefined> {
  let position = start
  let first: MpegFrame | undefined
  let padding = 0
  let seconds = 0
  let lost = 0
  let freeFrames = 0
  let isInStep = false
  while (position + MPEG_HEADER_BYTES <= end) {
    const frame = readMpegFrame(file.peek(position, MPEG_HEADER_BYTES) ?? (await file.at(position, MPEG_HEADER_BYTES)))
    if (frame?.length === 0 && first && isSameStream(frame, first) && ++freeFrames > MAX_FREE_FRAMES) return undefined
    // Other data can look like a header by chance, so a frame must come right after another, or have one after it.
    if (!frame?.length || !(isInStep || (await isFollowed(file, position, frame)))) {
      const next = await file.find(0xff, position + 1, MPEG_HEADER_BYTES, isFrame)
      lost += next - position
      if (lost > MAX_LOST_BYTES) return undefined
      position = next
      isInStep = false
      continue
    }
    const added = first ? undefined : await readEncoderTag(file, position, frame)
    if (added === undefined) seconds += frame.samples / frame.sampleRate
    else padding = added / frame.sampleRate
    first ??= frame
    isInStep = true
    position += frame.length
  }
  return first && withoutPadding(seconds, padding)
}

/** Whether the bytes after any tags are MPEG audio. */
export async function isMp3(file: FileWindow): Promise<boolean> {
  const position = await skipTags(file)
  const frame = readMpegFrame(await file.at(position, MPEG_HEADER_BYTES))
  return frame !== undefined && frame.length > 0 && (await isFollowed(file, position, frame, isSameStream))
}

/** The most bytes outside frames: tags at the end, or damage. */
const MAX_LOST_BYTES = 1024 * 1024
/** Few decoders play frames without a bit rate. Other data looks like one now and then. */
const MAX_FREE_FRAMES = 8
const MAX_TAGS = 16

function isFrame(bytes: Buffer, at: number): boolean {
  return ((bytes[at + 1] ?? 0) & 0xe0) === 0xe0 && readMpegFrame(bytes, at) !== undefined
}

/** Decoders go on with a stream of another kind, so by default any frame may follow. */
async function isFollowed(file: FileWindow, position: number, frame: MpegFrame, fits = always): Promise<boolean> {
  const end = position + frame.length
  if (end === file.length) return true
  const next = readMpegFrame(await file.at(end, MPEG_HEADER_BYTES))
  return next !== undefined && fits(next, frame)
}

const always = (_next: MpegFrame, _frame: MpegFrame): boolean => true

/** Skips ID3v2 tags. There may be several. */
export async function skipTags(file: FileWindow): Promise<number> {
  let position = 0
  for (let tags = 0; tags < MAX_TAGS; tags++) {
    const head = await file.at(position, 10)
    // Decoders take it for sound if its size is not valid.
    const isTag = head.toString('latin1', 0, 3) === 'ID3' && head.subarray(6).every((byte) => byte < 0x80)
    if (head.length < 10 || !isTag || head[3] === 0xff || head[4] === 0xff) break
    const hasFooter = ((head[5] ?? 0) & 0x10) !== 0
    const size = head.subarray(6, 10).reduce((sum, byte) => sum * 128 + byte, 0)
    position += 10 + size + (hasFooter ? 10 : 0)
  }
  return position
}

/**
 * The samples that the encoder added, if the first frame is a Xing, LAME or VBRI tag, which has no sound.
 * undefined: an ordinary frame.
 */
async function readEncoderTag(file: FileWindow, position: number, frame: MpegFrame): Promise<number | undefined> {
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
