import { parentPort, workerData } from 'node:worker_threads'
import decode from 'audio-decode'
import { resample } from './audio-resampling.ts'
import { SAMPLE_RATE } from './mel-spectrogram.ts'

/** A worker thread: decodes the bytes it is given, and sends back mono samples. */
const { channelData, sampleRate } = await decode(workerData as Uint8Array)
const samples = resample(mixDown(channelData), sampleRate, SAMPLE_RATE)
parentPort?.postMessage(samples, [samples.buffer as ArrayBuffer])

function mixDown(channels: readonly Float32Array[]): Float32Array {
  const [first = new Float32Array(), ...others] = channels
  if (others.length === 0) return first
  return first.map(
    (value, index) => others.reduce((sum, channel) => sum + (channel[index] ?? 0), value) / channels.length,
  )
}
