import type { ByteSource } from '../../../server/uploads/uploads.ts'

/** A container, and the name of its decoder in `audio-decode`. */
export interface AudioFormat {
  readonly extension: 'wav' | 'mp3' | 'm4a' | 'ogg' | 'flac' | 'webm'
  readonly contentType: string
  readonly decoder: 'wav' | 'opus' | 'oga' | 'flac' | 'm4a' | 'webm' | 'mp3'
  /** Where the sound begins, after any tags. */
  readonly start: number
}

const MAX_TAGS = 16

export async function formatOf(source: ByteSource): Promise<AudioFormat | undefined> {
  const head = await textAt(source, 0, 36)
  const found = (
    extension: AudioFormat['extension'],
    contentType: string,
    decoder: AudioFormat['decoder'],
    start = 0,
  ): AudioFormat => ({
    extension,
    contentType,
    decoder,
    start,
  })
  if (head.startsWith('RIFF') && head.slice(8, 12) === 'WAVE') return found('wav', 'audio/wav', 'wav')
  if (head.startsWith('OggS')) return found('ogg', 'audio/ogg', oggDecoder(head))
  if (head.slice(4, 8) === 'ftyp') return found('m4a', 'audio/mp4', 'm4a')
  if (head.startsWith('\x1a\x45\xdf\xa3')) return found('webm', 'audio/webm', 'webm')
  // Some programs put MP3 tags in front of FLAC.
  const start = await skipTags(source)
  const sound = await textAt(source, start, 4)
  if (sound === 'fLaC') return found('flac', 'audio/flac', 'flac', start)
  if (isMpegFrame(sound)) return found('mp3', 'audio/mpeg', 'mp3', start)
  return undefined
}

function oggDecoder(head: string): AudioFormat['decoder'] {
  const first = head.slice(28)
  return first.startsWith('OpusHead') ? 'opus' : first.startsWith('\x7fFLAC') ? 'flac' : 'oga'
}

/** Eleven bits, then a known version, layer, bit rate and sample rate. */
function isMpegFrame(head: string): boolean {
  const [first = 0, second = 0, third = 0] = Buffer.from(head, 'latin1')
  const isKnown = (second & 0x18) !== 0x08 && (second & 0x06) !== 0 && third >>> 4 !== 0x0f && (third & 0x0c) !== 0x0c
  return first === 0xff && second >= 0xe0 && isKnown
}

/** Skips ID3v2 tags. There may be several. */
async function skipTags(source: ByteSource): Promise<number> {
  let position = 0
  for (let tags = 0; tags < MAX_TAGS; tags++) {
    const head = Buffer.from(await textAt(source, position, 10), 'latin1')
    const sizes = head.subarray(6)
    if (!head.toString('latin1').startsWith('ID3') || sizes.length < 4 || sizes.some((byte) => byte >= 0x80)) break
    const hasFooter = ((head[5] ?? 0) & 0x10) !== 0
    position += 10 + sizes.reduce((sum, byte) => sum * 128 + byte, 0) + (hasFooter ? 10 : 0)
  }
  return position
}

async function textAt(source: ByteSource, position: number, bytes: number): Promise<string> {
  const buffer = Buffer.alloc(bytes)
  return buffer.toString('latin1', 0, await source.read(buffer, position))
}
