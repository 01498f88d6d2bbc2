import { readFile } from 'node:fs/promises'
import { Tokenizer } from '@huggingface/tokenizers'
import { HostError } from '../runtime/host-error.ts'
import type { EngineModel, RecognizedSpeech, SpeechRequest, SpeechSegment } from '../runtime/engine-model.ts'
import { audioSamples } from './audio-samples.ts'
import { SAMPLE_RATE } from './mel-spectrogram.ts'
import type { OnnxLoading } from './model-loading.ts'
import { float32, output, run } from './session.ts'
import { speechDecoder } from './speech-decoder.ts'
import { windowsAtPauses } from './speech-pauses.ts'
import { tokenChooser } from './token-choice.ts'

const START_TOKEN = 1
const END_TOKEN = 2
/** Short windows, because a window is also a segment: the model gives no times of its own. */
const MIN_WINDOW_SECONDS = 4
const MAX_WINDOW_SECONDS = 15
/** A shorter rest holds no word, but the model would invent one. */
const MIN_REST_SECONDS = 0.1
/** No one speaks faster. With more tokens, the model is repeating itself. */
const MAX_TOKENS_PER_SECOND = 6.5
const SPARE_TOKENS = 4

/** English speech to text from the samples themselves, in windows that end at pauses. */
export async function loadMoonshine({ open, path, memoryBytes }: OnnxLoading): Promise<EngineModel> {
  const tokenizer = new Tokenizer(JSON.parse(await readFile(path('tokenizer'), 'utf8')) as object, {})
  const [encoder, decoder] = await Promise.all([open(path('encoder')), open(path('decoder'))])

  async function transcribeWindow(window: Float32Array, temperature: number, signal: AbortSignal) {
    const inputs = { input_values: float32(window, [1, window.length]) }
    const audio = output(await run(encoder, inputs, signal, ['last_hidden_state']), 'last_hidden_state')
    const steps = speechDecoder(decoder, audio)
    const choose = tokenChooser({ temperature, seed: 1, stop: [] })
    const maxTokens = Math.ceil((window.length / SAMPLE_RATE) * MAX_TOKENS_PER_SECOND) + SPARE_TOKENS
    const tokens: number[] = []
    let logprobSum = 0
    for (let previous = START_TOKEN; tokens.length < maxTokens;) {
      const { token, logprob } = choose(await steps.feed([previous], signal))
      logprobSum += logprob
      if (token === END_TOKEN) break
      tokens.push(token)
      previous = token
    }
    return { tokens, averageLogprob: logprobSum / (tokens.length + 1) }
  }

  async function transcribe(request: SpeechRequest, signal: AbortSignal): Promise<RecognizedSpeech> {
    refuseOtherLanguages(request)
    const samples = await audioSamples(request.audio, signal)
    const limits = { sampleRate: SAMPLE_RATE, minSeconds: MIN_WINDOW_SECONDS, maxSeconds: MAX_WINDOW_SECONDS }
    const segments: SpeechSegment[] = []
    let startSeconds = 0
    for (const window of windowsAtPauses(samples, limits)) {
      const seconds = window.length / SAMPLE_RATE
      const endSeconds = startSeconds + seconds
      if (seconds > MIN_REST_SECONDS) {
        const { tokens, averageLogprob } = await transcribeWindow(window, request.temperature, signal)
        const text = tokenizer.decode(tokens, { skip_special_tokens: true }).trim()
        const known = { startSeconds: round(startSeconds), endSeconds: round(endSeconds), tokens, averageLogprob }
        if (text !== '') segments.push({ ...known, text: ` ${text}`, noSpeechProbability: 0 })
      }
      startSeconds = endSeconds
    }
    return { language: 'en', durationSeconds: startSeconds, temperature: request.temperature, segments }
  }

  return {
    memoryBytes,
    transcribe,
    async close() {
      await Promise.all([encoder.release(), decoder.release()])
    },
  }
}

function refuseOtherLanguages({ task, language }: SpeechRequest): void {
  if (task === 'translate') {
    throw new HostError('invalid_value', 'This model cannot translate. Use a whisper model.', { param: 'model' })
  }
  if (language !== undefined && language !== 'en') {
    const message = `This model knows only English, not '${language}'. Use a whisper model.`
    throw new HostError('invalid_value', message, { param: 'language' })
  }
}

function round(seconds: number): number {
  return Math.round(seconds * 100) / 100
}
