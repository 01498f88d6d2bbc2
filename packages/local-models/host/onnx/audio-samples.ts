import { Worker } from 'node:worker_threads'
import { HostError } from '../runtime/host-error.ts'

const MAX_WORKER_MEGABYTES = 2048

/** Decodes to mono at 16 kHz in a thread of its own, so that minutes of audio do not block the other requests. */
export async function audioSamples(audio: Buffer, signal: AbortSignal): Promise<Float32Array> {
  signal.throwIfAborted()
  const bytes = Uint8Array.from(audio)
  const worker = new Worker(new URL('./audio-worker.ts', import.meta.url), {
    workerData: bytes,
    transferList: [bytes.buffer],
    resourceLimits: { maxOldGenerationSizeMb: MAX_WORKER_MEGABYTES },
  })
  const { promise, resolve, reject } = Promise.withResolvers<Float32Array>()
  const abort = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', abort, { once: true })
  worker.once('message', resolve)
  worker.once('error', () => reject(undecodable()))
  worker.once('exit', () => reject(undecodable()))
  try {
    const samples = await promise
    if (samples.length === 0) throw undecodable()
    return samples
  } finally {
    signal.removeEventListener('abort', abort)
    await worker.terminate()
  }
}

function undecodable(): HostError {
  const message = 'The audio could not be decoded. Send wav, mp3, ogg (Vorbis, Opus), flac, m4a/aac or webm.'
  return new HostError('invalid_value', message, { param: 'file' })
}
