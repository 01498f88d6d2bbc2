import { parentPort, workerData } from 'node:worker_threads'
import decode from 'audio-decode'
import { resample } from './audio-resampling.ts'
import { sampleRate } from './mel-spectrogram.ts'

const { channelData, sampleRate: rate } = await decode(workerData as Uint8Array)
const samples = resample(mixDown(channelData), rate, sampleRate)
parentPort?.postMessage(samples, [samples.buffer as ArrayBuffer])

function mixDown(channels: readonly Float32Array[]): Float32Array {
  const [first = new Float32Array(), ...others] = channels
  if (others.length === 0) return first
  return first.map(
    (value, index) => others.reduce((sum, channel) => sum + (channel[index] ?? 0), value) / channels.length,
  )
}
