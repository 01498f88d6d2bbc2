import { readFile } from 'node:fs/promises'
import { invalidValue } from '../runtime/engine-model.ts'
import type { EngineModel, Segment, SpeechRequest, Transcript } from '../runtime/engine-model.ts'
import { audioSamples } from './audio-samples.ts'
import { melSpectrogram, sampleRate } from './mel-spectrogram.ts'
import type { OnnxLoading } from './model-loading.ts'
import { float32, output, run } from './session.ts'
import { loadWhisperTokens } from './whisper-tokens.ts'
import { decodeWindow, detectLanguage, isSilent, splitSegments } from './whisper-window.ts'

const windowSeconds = 30
const windowFrames = 3000
/** Shorter rests hold no word, only invitations to invent one. */
const remainderSecondsMin = 0.1
const promptTokensMax = 200

/** Speech to text in windows of 30 seconds, each starting where the last closed segment ended. */
export async function loadWhisper({ open, path, memoryBytes }: OnnxLoading): Promise<EngineModel> {
  const { feature_size: bands } = JSON.parse(await readFile(path('features'), 'utf8')) as { feature_size: number }
  const tokens = await loadWhisperTokens(path('tokenizer'), path('generation'))
  const [encoder, decoder] = await Promise.all([open(path('encoder')), open(path('decoder'))])

  async function listen(samples: Float32Array, signal: AbortSignal) {
    const { values } = melSpectrogram(samples, bands, windowFrames)
    const inputs = { input_features: float32(values, [1, bands, windowFrames]) }
    return output(await run(encoder, inputs, signal, ['last_hidden_state']), 'last_hidden_state')
  }

  async function transcribe(request: SpeechRequest, signal: AbortSignal): Promise<Transcript> {
    const { task, temperature, prompt } = request
    const samples = await audioSamples(request.audio, signal)
    const durationSeconds = samples.length / sampleRate
    const previous = prompt ? tokens.encode(` ${prompt.trim()}`).slice(-promptTokensMax) : []
    let language = request.language
    if (language !== undefined && !tokens.languages.has(language))
      throw invalidValue('language', `Unknown language '${language}'.`)
    const segments: Segment[] = []
    let at = 0
    while (durationSeconds - at > remainderSecondsMin) {
      const start = Math.round(at * sampleRate)
      const window = samples.subarray(start, start + windowSeconds * sampleRate)
      const audio = await listen(window, signal)
      language ??= await detectLanguage(decoder, audio, tokens, signal)
      const answer = await decodeWindow({ decoder, audio, tokens, task, language, previous, temperature, signal })
      const seconds = window.length / sampleRate
      const found = isSilent(answer)
        ? { segments: [], advanceSeconds: seconds }
        : splitSegments(answer, at, seconds, tokens)
      segments.push(...found.segments)
      at += Math.min(found.advanceSeconds, seconds)
    }
    return { language: language ?? 'en', durationSeconds, temperature, segments }
  }

  return {
    memoryBytes,
    transcribe,
    async close() {
      await Promise.all([encoder.release(), decoder.release()])
    },
  }
}
