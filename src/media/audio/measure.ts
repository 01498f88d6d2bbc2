import type { ByteSource, MeasuredAudio } from '../../ports/uploads.ts'
import { flacSeconds } from './flac.ts'
import { isMp3, mp3Seconds, skipTags } from './mp3.ts'
import { mp4Seconds } from './mp4.ts'
import { oggSeconds } from './ogg.ts'
import { wavSeconds } from './wav.ts'
import { webmSeconds } from './webm.ts'
import { openFileWindow, type FileWindow } from './file-window.ts'

/** A week. Anything longer is a wrong or forged number. */
const MAX_SECONDS = 7 * 24 * 3600

interface Container {
  readonly extension: string
  readonly contentType: string
  seconds(file: FileWindow): Promise<number | undefined>
}

/**
 * The format and length of a recording, from its content and not its name. undefined: not a supported audio
 * format. Without durationMs: supported, but its length cannot be determined.
 */
export async function measureAudio(source: ByteSource): Promise<MeasuredAudio | undefined> {
  const file = openFileWindow(source)
  const container = await containerOf(file)
  if (!container) return undefined
  const { extension, contentType } = container
  const seconds = await container.seconds(file)
  const isPlausible = seconds !== undefined && seconds > 0 && seconds <= MAX_SECONDS
  return { extension, contentType, durationMs: isPlausible ? Math.max(1, Math.round(seconds * 1000)) : undefined }
}

async function containerOf(file: FileWindow): Promise<Container | undefined> {
  const start = Buffer.from(await file.at(0, 12)).toString('latin1')
  if (start.startsWith('RIFF') && start.slice(8) === 'WAVE') {
    return { extension: 'wav', contentType: 'audio/wav', seconds: wavSeconds }
  }
  if (start.startsWith('OggS')) return { extension: 'ogg', contentType: 'audio/ogg', seconds: oggSeconds }
  if (start.slice(4, 8) === 'ftyp') return { extension: 'm4a', contentType: 'audio/mp4', seconds: mp4Seconds }
  if (start.startsWith('\x1a\x45\xdf\xa3')) {
    return { extension: 'webm', contentType: 'audio/webm', seconds: webmSeconds }
  }
  // Some programs put MP3 tags in front of FLAC.
  const afterTags = await skipTags(file)
  if ((await file.at(afterTags, 4)).toString('latin1') === 'fLaC') {
    return { extension: 'flac', contentType: 'audio/flac', seconds: (it) => flacSeconds(it, afterTags) }
  }
  if (await isMp3(file)) return { extension: 'mp3', contentType: 'audio/mpeg', seconds: mp3Seconds }
  return undefined
}
