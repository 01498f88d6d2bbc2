import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { roomyLimits } from './chat-stage.ts'
import { sharedWeir } from './shared-stage.ts'
import { speechEngine, type SpeechEngine } from './speech-engine.ts'
import { modelEntry, startWeir, type TestWeir } from './weir.ts'

/** The real service with one audio model, and the engine behind it. Shared, unless the options need another service. */
export interface AudioStage {
  readonly weir: TestWeir
  readonly engine: SpeechEngine
  /** Sends a clip with these fields, as a browser's form does. */
  send(
    fields?: Fields,
    options?: { path?: string; clip?: string | Buffer | null; fileFirst?: boolean; key?: string },
  ): Promise<Response>
}

export type Fields = Readonly<Record<string, string | readonly string[]>>

export interface AudioStageOptions {
  readonly kind?: string
  readonly model?: object
  readonly limits?: object
  readonly config?: object
  /** Entries of further models. */
  readonly models?: readonly object[]
  /** The folder for its data; that of temporary files unless given. */
  readonly disk?: string
}

export const allParameters = ['language', 'prompt', 'response_format', 'temperature', 'timestamp_granularities']

export const transcriptions = '/audio/transcriptions'
export const translations = '/audio/translations'

export function clip(name: string): Buffer {
  return readFileSync(new URL(`../fixtures/audio/${name}`, import.meta.url))
}

export async function audioStage(t: TestContext, options: AudioStageOptions = {}): Promise<AudioStage> {
  const engine = await speechEngine()
  const config = {
    server: { port: 0, admin_port: 0, drain_ms: 500 },
    rate_limit: { requests_per_minute: 100_000 },
    models: [
      modelEntry([engine.url], {
        id: 'openai/whisper-test',
        aliases: ['whisper-1'],
        categories: ['audio'],
        context_length: 448,
        max_completion_tokens: 448,
        default_max_tokens: 448,
        supported_parameters: allParameters,
        pricing: { per_audio_minute: '0.006' },
        serverless: {
          engine: { kind: options.kind ?? 'openai', urls: [engine.url], model: 'engine-whisper' },
          limits: { ...roomyLimits, ...options.limits },
        },
        ...options.model,
      }),
      ...(options.models ?? []),
    ],
    ...options.config,
  }
  const { disk } = options
  const isOwn = options.config !== undefined || disk !== undefined
  const weir = await (isOwn ? startWeir(config, {}, { disk }) : sharedWeir(config))
  t.after(async () => {
    if (isOwn) await weir.stop()
    await engine.close()
  })
  return {
    weir,
    engine,
    send(fields = {}, { path = transcriptions, clip: sound = 'plain.wav', fileFirst = false, key = weir.key } = {}) {
      const form = new FormData()
      const addFile = (): void => {
        if (sound === null) return
        const bytes = typeof sound === 'string' ? clip(sound) : sound
        form.append('file', new Blob([new Uint8Array(bytes)]), 'recording.bin')
      }
      if (fileFirst) addFile()
      const all: Fields = { model: 'openai/whisper-test', ...fields }
      for (const [name, values] of Object.entries(all)) for (const value of [values].flat()) form.append(name, value)
      if (!fileFirst) addFile()
      return weir.call(path, { method: 'POST', body: form, key })
    },
  }
}

/** A WAV of silence: 8 kHz, 8 bits. */
export function silentWav(bytes: number): Buffer {
  const file = Buffer.alloc(bytes, 128)
  clip('plain.wav').copy(file, 0, 0, 44)
  file.write('RIFF', 0)
  file.writeUInt32LE(bytes - 8, 4)
  file.write('WAVEfmt ', 8)
  file.writeUInt32LE(16, 16)
  file.writeUInt16LE(1, 20)
  file.writeUInt16LE(1, 22)
  file.writeUInt32LE(8000, 24)
  file.writeUInt32LE(8000, 28)
  file.writeUInt16LE(1, 32)
  file.writeUInt16LE(8, 34)
  file.write('data', 36)
  file.writeUInt32LE(bytes - 44, 40)
  return file
}

/** Uploads that are on disk: files with a name, and files that this process holds open without one. */
export function spooled(weir: TestWeir): string[] {
  const folder = join(weir.dataDir, 'spool')
  const open = readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)]
    } catch {
      return []
    }
  })
  return [...readdirSync(folder), ...open.filter((path) => path.startsWith(folder))]
}
