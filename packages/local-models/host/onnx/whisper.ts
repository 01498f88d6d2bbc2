import { readFile } from 'node:fs/promises'
import type { Tensor } from 'onnxruntime-node'
import { HostError } from '../runtime/host-error.ts'
import type { EngineModel, RecognizedSpeech, SpeechRequest, SpeechSegment } from '../runtime/engine-model.ts'
import { audioSamples } from './audio-samples.ts'
import { melSpectrogram, SAMPLE_RATE } from './mel-spectrogram.ts'
import type { OnnxLoading } from './model-loading.ts'
import { float32, output, run } from './session.ts'
import { loadWhisperTokens } from './whisper-tokens.ts'
import { decodeWindow, detectLanguage, isSilent, splitSegments } from './whisper-window.ts'

const WINDOW_SECONDS = 30
const WINDOW_FRAMES = 3000
/** A shorter rest holds no word, but the model would invent one. */
const MIN_REST_SECONDS = 0.1
const MAX_PROMPT_TOKENS = 200

/** Speech to text in windows of 30 seconds. Each window starts where the last closed segment ended. */
export async function loadWhisper({ open, path, memoryBytes }: OnnxLoading): Promise<EngineModel> {
  const { feature_size: bands } = JSON.parse(await readFile(path('features'), 'utf8')) as { feature_size: number }
  const tokens = await loadWhisperTokens(path('tokenizer'), path('generation'))
  const [encoder, decoder] = await Promise.all([open(path('encoder')), open(path('decoder'))])

  async function listen(samples: Float32Array, signal: AbortSignal): Promise<Tensor> {
    const values = melSpectrogram(samples, bands, WINDOW_FRAMES)
    const inputs = { input_features: float32(values, [1, bands, WINDOW_FRAMES]) }
    return output(await run(encoder, inputs, signal, ['last_hidden_state']), 'last_hidden_state')
  }

  async function transcribe(request: SpeechRequest, signal: AbortSignal): Promise<RecognizedSpeech> {
    const { task, temperature, prompt } = request
    let { language } = request
    if (language !== undefined && !tokens.languages.has(language)) {
      throw new HostError('invalid_value', `This model does not know the language '${language}'.`, {
        param: 'language',
      })
    }
    const samples = await audioSamples(request.audio, signal)
    const durationSeconds = samples.length / SAMPLE_RATE
    const previous = prompt ? tokens.encode(` ${prompt.trim()}`).slice(-MAX_PROMPT_TOKENS) : []
    const segments: SpeechSegment[] = []
    let at = 0
    while (durationSeconds - at > MIN_REST_SECONDS) {
      const start = Math.round(at * SAMPLE_RATE)
      const window = samples.subarray(start, start + WINDOW_SECONDS * SAMPLE_RATE)
      const audio = await listen(window, signal)
      language ??= await detectLanguage(decoder, audio, tokens, signal)
      const answer = await decodeWindow({ decoder, audio, tokens, task, language, previous, temperature, signal })
      const seconds = window.length / SAMPLE_RATE
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
