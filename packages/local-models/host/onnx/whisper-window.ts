import { deflateSync } from 'node:zlib'
import type { InferenceSession, Tensor } from 'onnxruntime-node'
import type { SpeechSegment } from '../runtime/engine-model.ts'
import { applyTimestampRules } from './timestamp-rules.ts'
import { bestToken, logSumExp, tokenChooser } from './token-choice.ts'
import { speechDecoder } from './speech-decoder.ts'
import type { WhisperTokens } from './whisper-tokens.ts'

export interface WindowRequest {
  readonly decoder: InferenceSession
  readonly audio: Tensor
  readonly tokens: WhisperTokens
  readonly task: 'transcribe' | 'translate'
  readonly language: string
  /** The tokens of the caller's prompt. */
  readonly previous: readonly number[]
  readonly temperature: number
  readonly signal: AbortSignal
}

export interface WindowAnswer {
  readonly tokens: readonly number[]
  readonly averageLogprob: number
  readonly noSpeechProbability: number
}

const MAX_ANSWER_TOKENS = 224
const SECONDS_PER_TIMESTAMP = 0.02
/** Limits of whisper's authors. Beyond them the model loops or guesses, and the window is decoded again, warmer. */
const MAX_COMPRESSION_RATIO = 2.4
const MIN_AVERAGE_LOGPROB = -1
const MIN_NO_SPEECH_PROBABILITY = 0.6
const ADDED_TEMPERATURES = [0, 0.4, 0.8]

/** Takes one decoder step and picks the most likely language token. */
export async function detectLanguage(
  decoder: InferenceSession,
  audio: Tensor,
  tokens: WhisperTokens,
  signal: AbortSignal,
): Promise<string> {
  const logits = await speechDecoder(decoder, audio).feed([tokens.start], signal)
  let best: [code: string, logit: number] = ['en', -Infinity]
  for (const [code, token] of tokens.languages) {
    const logit = logits[token] ?? -Infinity
    if (logit > best[1]) best = [code, logit]
  }
  return best[0]
}

/** Decodes again, warmer, while the answer looks bad. If all do, keeps the most confident one that came to an end. */
export async function decodeWindow(request: WindowRequest): Promise<WindowAnswer> {
  let best: WindowAnswer | undefined
  let bestLoops = true
  for (const added of ADDED_TEMPERATURES) {
    const answer = await decodeOnce({ ...request, temperature: Math.min(1, request.temperature + added) })
    const loops = isLooping(answer, request.tokens)
    const isSure = answer.averageLogprob > MIN_AVERAGE_LOGPROB
    if (!loops && (isSure || answer.noSpeechProbability > MIN_NO_SPEECH_PROBABILITY)) return answer
    if (!best || (!loops && (bestLoops || answer.averageLogprob > best.averageLogprob))) {
      best = answer
      bestLoops = loops
    }
  }
  if (!best) throw new Error('there was no temperature to decode at')
  return best
}

/** Whether the answer repeats itself without coming to an end. Speakers repeat themselves too, but they stop. */
function isLooping({ tokens }: WindowAnswer, whisper: WhisperTokens): boolean {
  if (tokens.length < MAX_ANSWER_TOKENS) return false
  const text = Buffer.from(whisper.decode(tokens))
  return text.length / Math.max(1, deflateSync(text).length) > MAX_COMPRESSION_RATIO
}

async function decodeOnce(request: WindowRequest): Promise<WindowAnswer> {
  const { tokens, previous, temperature, signal } = request
  const decoder = speechDecoder(request.decoder, request.audio)
  const choose = tokenChooser({ temperature, seed: 1, stop: [] })
  const prompt = previous.length > 0 ? [tokens.previous, ...previous] : []
  const languageToken = tokens.languages.get(request.language) ?? tokens.start
  const noSpeechLogits = await decoder.feed([...prompt, tokens.start], signal)
  const noSpeechProbability = Math.exp((noSpeechLogits[tokens.noSpeech] ?? -Infinity) - normaliserOf(noSpeechLogits))
  let logits = await decoder.feed([languageToken, tokens.task[request.task]], signal)
  const generated: number[] = []
  let logprobSum = 0
  while (generated.length < MAX_ANSWER_TOKENS) {
    applyTimestampRules(logits, generated, tokens)
    const { token, logprob } = choose(logits)
    logprobSum += logprob
    if (token === tokens.end) break
    generated.push(token)
    logits = await decoder.feed([token], signal)
  }
  return { tokens: generated, averageLogprob: logprobSum / (generated.length + 1), noSpeechProbability }
}

function normaliserOf(logits: Float32Array): number {
  return logSumExp(logits, logits[bestToken(logits)] ?? 0)
}

export function isSilent(answer: WindowAnswer): boolean {
  return answer.noSpeechProbability > MIN_NO_SPEECH_PROBABILITY && answer.averageLogprob < MIN_AVERAGE_LOGPROB
}

export interface WindowSegments {
  readonly segments: readonly SpeechSegment[]
  /** How far the window was understood. The next window starts there. */
  readonly advanceSeconds: number
}

/** Splits a window's tokens at its timestamps. A segment that was not closed belongs to the next window. */
export function splitSegments(
  answer: WindowAnswer,
  startSeconds: number,
  windowSeconds: number,
  whisper: WhisperTokens,
): WindowSegments {
  const { tokens } = answer
  const isTime = (token: number | undefined) => token !== undefined && token >= whisper.firstTimestamp
  const seconds = (token: number) => (token - whisper.firstTimestamp) * SECONDS_PER_TIMESTAMP
  const make = (part: readonly number[], from: number, to: number): SpeechSegment => ({
    startSeconds: round(startSeconds + from),
    endSeconds: round(startSeconds + Math.min(to, windowSeconds)),
    text: whisper.decode(part),
    tokens: part,
    averageLogprob: answer.averageLogprob,
    noSpeechProbability: answer.noSpeechProbability,
  })
  const cuts = tokens.flatMap((token, index) =>
    index > 0 && isTime(token) && isTime(tokens[index - 1]) ? [index] : [],
  )
  const endsWithOneTime = isTime(tokens.at(-1)) && !isTime(tokens.at(-2))
  if (cuts.length === 0) {
    const lastTime = tokens.findLast(isTime)
    const to = lastTime === undefined || lastTime === whisper.firstTimestamp ? windowSeconds : seconds(lastTime)
    return { segments: [make(tokens, 0, to)].filter(hasText), advanceSeconds: windowSeconds }
  }
  if (endsWithOneTime) cuts.push(tokens.length)
  const segments = cuts.map((cut, index) => {
    const part = tokens.slice(cuts[index - 1] ?? 0, cut)
    return make(part, seconds(part[0] ?? 0), seconds(part.at(-1) ?? 0))
  })
  const lastCut = tokens[(cuts.at(-1) ?? 1) - 1] ?? whisper.firstTimestamp
  const advanceSeconds = endsWithOneTime ? windowSeconds : Math.max(seconds(lastCut), 1)
  return { segments: segments.filter(hasText), advanceSeconds }
}

function hasText(segment: SpeechSegment): boolean {
  return segment.text.trim() !== ''
}

function round(seconds: number): number {
  return Math.round(seconds * 100) / 100
}
