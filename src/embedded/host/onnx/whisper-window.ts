import { deflateSync } from 'node:zlib'
import type { InferenceSession, Tensor } from 'onnxruntime-node'
import type { Segment } from '../runtime/engine-model.ts'
import { applyTimestampRules } from './timestamp-rules.ts'
import { bestToken, logSumExp, tokenChooser } from './token-choice.ts'
import { whisperDecoder } from './whisper-decoder.ts'
import type { WhisperTokens } from './whisper-tokens.ts'

export interface WindowRequest {
  decoder: InferenceSession
  audio: Tensor
  tokens: WhisperTokens
  task: 'transcribe' | 'translate'
  language: string
  /** Tokens of what came before, or of the caller's prompt. */
  previous: readonly number[]
  temperature: number
  signal: AbortSignal
}

export interface WindowAnswer {
  tokens: readonly number[]
  averageLogprob: number
  noSpeechProbability: number
}

const answerTokensMax = 224
const secondsPerTimestamp = 0.02
/** Signs of a loop or of guessing, as whisper's authors set them; the window is then tried again, warmer. */
const compressionRatioMax = 2.4
const averageLogprobMin = -1
const noSpeechMin = 0.6
const warmer = [0, 0.4, 0.8]

/** One decoder step over the language tokens: the library's English default would mangle everything else. */
export async function detectLanguage(
  decoder: InferenceSession,
  audio: Tensor,
  tokens: WhisperTokens,
  signal: AbortSignal,
): Promise<string> {
  const logits = await whisperDecoder(decoder, audio).feed([tokens.start], signal)
  let best: [code: string, logit: number] = ['en', -Infinity]
  for (const [code, token] of tokens.languages) {
    const logit = logits[token] ?? -Infinity
    if (logit > best[1]) best = [code, logit]
  }
  return best[0]
}

/** Tries warmer while the answer looks bad; the most confident one that came to an end is kept. */
export async function decodeWindow(request: WindowRequest): Promise<WindowAnswer> {
  let best: WindowAnswer | undefined
  let bestLoops = true
  for (const added of warmer) {
    const answer = await decodeAt({ ...request, temperature: Math.min(1, request.temperature + added) })
    const loops = isLooping(answer, request.tokens)
    if (!loops && (answer.averageLogprob > averageLogprobMin || answer.noSpeechProbability > noSpeechMin)) return answer
    if (!best || (!loops && (bestLoops || answer.averageLogprob > best.averageLogprob)))
      [best, bestLoops] = [answer, loops]
  }
  if (!best) throw new Error('no decoding was tried')
  return best
}

/** Said over and over without coming to an end. Speakers repeat themselves too, but they stop. */
function isLooping({ tokens }: WindowAnswer, whisper: WhisperTokens): boolean {
  if (tokens.length < answerTokensMax) return false
  const text = Buffer.from(whisper.decode(tokens))
  return text.length / Math.max(1, deflateSync(text).length) > compressionRatioMax
}

async function decodeAt({
  decoder,
  audio,
  tokens,
  task,
  language,
  previous,
  temperature,
  signal,
}: WindowRequest): Promise<WindowAnswer> {
  const state = whisperDecoder(decoder, audio)
  const choose = tokenChooser({ temperature, seed: 1, stop: [] })
  const prompt = previous.length > 0 ? [tokens.previous, ...previous] : []
  const languageToken = tokens.languages.get(language) ?? tokens.start
  const noSpeechLogits = await state.feed([...prompt, tokens.start], signal)
  const noSpeechProbability = Math.exp((noSpeechLogits[tokens.noSpeech] ?? -Infinity) - normaliser(noSpeechLogits))
  let logits = await state.feed([languageToken, tokens.task[task]], signal)
  const said: number[] = []
  let logprobSum = 0
  while (said.length < answerTokensMax) {
    applyTimestampRules(logits, said, tokens)
    const { token, logprob } = choose(logits)
    logprobSum += logprob
    if (token === tokens.end) break
    said.push(token)
    logits = await state.feed([token], signal)
  }
  return { tokens: said, averageLogprob: logprobSum / (said.length + 1), noSpeechProbability }
}

function normaliser(logits: Float32Array): number {
  return logSumExp(logits, logits[bestToken(logits)] ?? 0)
}

export function isSilent(answer: WindowAnswer): boolean {
  return answer.noSpeechProbability > noSpeechMin && answer.averageLogprob < averageLogprobMin
}

export interface WindowSegments {
  segments: Segment[]
  /** How far the window's speech was understood: the next window starts here. */
  advanceSeconds: number
}

/** Cuts a window's tokens at its timestamps. A segment that was not closed belongs to the next window. */
export function splitSegments(
  answer: WindowAnswer,
  startSeconds: number,
  windowSeconds: number,
  whisper: WhisperTokens,
): WindowSegments {
  const { tokens } = answer
  const isTime = (token: number | undefined) => token !== undefined && token >= whisper.firstTimestamp
  const seconds = (token: number) => (token - whisper.firstTimestamp) * secondsPerTimestamp
  const make = (part: readonly number[], from: number, to: number): Segment => ({
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

function hasText(segment: Segment): boolean {
  return segment.text.trim() !== ''
}

function round(seconds: number): number {
  return Math.round(seconds * 100) / 100
}
