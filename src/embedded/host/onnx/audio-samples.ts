import { Worker } from 'node:worker_threads'
import { EngineError } from '../runtime/engine-model.ts'

/** Decodes to mono at 16 kHz in a thread of its own: minutes of music would otherwise hold up everyone else. */
export async function audioSamples(audio: Buffer, signal: AbortSignal): Promise<Float32Array> {
  signal.throwIfAborted()
  const bytes = Uint8Array.from(audio)
  const worker = new Worker(new URL('./audio-worker.ts', import.meta.url), {
    workerData: bytes,
    transferList: [bytes.buffer],
    resourceLimits: { maxOldGenerationSizeMb: 2048 },
  })
  const { promise, resolve, reject } = Promise.withResolvers<Float32Array>()
  const abort = () => reject(signal.reason as Error)
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

function undecodable(): EngineError {
  const message = 'The audio could not be decoded. Supported: wav, mp3, ogg (vorbis, opus), flac, m4a/aac, webm.'
  return new EngineError(400, 'invalid_value', message, 'file')
}
