import { readFile } from 'node:fs/promises'
import type { Tensor } from 'onnxruntime-node'
import sharp from 'sharp'
import { contextLengthExceeded, EngineError, invalidValue } from '../runtime/engine-model.ts'
import type { ChatMessage, ChatRequest, EngineModel, FinishReason, TextEvent } from '../runtime/engine-model.ts'
import { StopText } from '../runtime/stop-text.ts'
import type { OnnxLoading } from './model-loading.ts'
import { float32, floats, int64, output, run } from './session.ts'
import { loadStarterTokenizer } from './starter-tokenizer.ts'
import { tokenChooser, topAlternatives } from './token-choice.ts'

interface StarterVisionConfig {
  size: number
  max_tokens: number
  stop: number
  memory: [number, number, number]
}

/** One picture and one question to a short answer; the decoder has no cache, its whole input is at most 44 tokens. */
export async function loadStarterVision({ open, path, memoryBytes }: OnnxLoading): Promise<EngineModel> {
  const config = JSON.parse(await readFile(path('config'), 'utf8')) as StarterVisionConfig
  const tokenizer = await loadStarterTokenizer(path('tokenizer'))
  const [encoder, decoder] = await Promise.all([open(path('encoder')), open(path('decoder'))])
  const imageTokens = config.memory[1]

  async function look(image: Buffer, signal: AbortSignal): Promise<Tensor> {
    const pixels = await letterbox(image, config.size)
    return output(await run(encoder, { image: float32(pixels, [1, 3, config.size, config.size]) }, signal), 'memory')
  }

  async function* chat(request: ChatRequest, signal: AbortSignal): AsyncGenerator<TextEvent> {
    const { sampling } = request
    const { image, question } = lastQuestion(request.messages)
    const ids = [tokenizer.begin, ...tokenizer.encode(question), tokenizer.answer]
    if (ids.length >= config.max_tokens)
      throw contextLengthExceeded(imageTokens + config.max_tokens, imageTokens + ids.length)
    const memory = await look(image, signal)
    yield { kind: 'prompt', promptTokens: imageTokens + ids.length, cachedTokens: 0 }

    const choose = tokenChooser(sampling)
    const stops = new StopText(sampling.stop)
    const answerStart = ids.length
    const room = Math.min(sampling.maxTokens ?? Infinity, config.max_tokens - answerStart)
    let finishReason: FinishReason = 'length'
    let completionTokens = 0
    let said = ''
    while (completionTokens < room && !stops.stopped) {
      const logits = floats(output(await run(decoder, { ids: int64(ids, [1, ids.length]), memory }, signal), 'logits'))
      const { token, logprob } = choose(logits)
      completionTokens++
      if (token === config.stop) {
        finishReason = 'stop'
        break
      }
      ids.push(token)
      const whole = tokenizer.decode(ids.slice(answerStart))
      const fresh = whole.slice(said.length)
      said = whole
      const text = stops.push(fresh)
      if (sampling.topLogprobs !== undefined) {
        const top = topAlternatives(logits, sampling.topLogprobs, (other) => tokenizer.decode([other]))
        yield { kind: 'text', text, completionTokens, logprobs: [{ text: fresh, logprob, top }] }
      } else if (text !== '') {
        yield { kind: 'text', text, completionTokens }
      }
    }
    if (stops.stopped) finishReason = 'stop'
    const rest = stops.flush()
    if (rest !== '') yield { kind: 'text', text: rest, completionTokens }
    yield { kind: 'end', finishReason, completionTokens }
  }

  return {
    memoryBytes,
    chat,
    async close() {
      await Promise.all([encoder.release(), decoder.release()])
    },
  }
}

/** The model holds no conversation: it answers the last question about the last picture. */
function lastQuestion(messages: readonly ChatMessage[]): { image: Buffer; question: string } {
  const image = messages.flatMap((message) => message.images).at(-1)
  const question = messages.findLast((message) => message.role === 'user' && message.text.trim() !== '')?.text
  if (!image) throw new EngineError(400, 'unsupported_content', 'This model needs an image content part.', 'messages')
  return { image, question: question ?? 'what is this?' }
}

/** Fits the picture into a white square and scales RGB to −1…1, plane by plane. */
async function letterbox(image: Buffer, size: number): Promise<Float32Array> {
  const white = { r: 255, g: 255, b: 255 }
  let pixels: Buffer
  try {
    pixels = await sharp(image, { limitInputPixels: 50_000_000 })
      .flatten({ background: white })
      .resize(size, size, { fit: 'contain', background: white })
      .removeAlpha()
      .toColourspace('srgb')
      .raw()
      .toBuffer()
  } catch {
    throw invalidValue('messages', 'The image could not be decoded.')
  }
  const area = size * size
  const planes = new Float32Array(3 * area)
  for (let channel = 0; channel < 3; channel++) {
    for (let index = 0; index < area; index++)
      planes[channel * area + index] = (pixels[index * 3 + channel] ?? 0) / 127.5 - 1
  }
  return planes
}
