import { readFile } from 'node:fs/promises'
import type { Tensor } from 'onnxruntime-node'
import sharp from 'sharp'
import { HostError } from '../runtime/host-error.ts'
import { contextLengthExceeded } from '../runtime/context-length.ts'
import type {
  EngineChatMessage,
  EngineChatRequest,
  EngineModel,
  FinishReason,
  TextEvent,
} from '../runtime/engine-model.ts'
import { stopText } from '../runtime/stop-text.ts'
import type { OnnxLoading } from './model-loading.ts'
import { float32, floats, int64, output, run } from './session.ts'
import { loadStarterTokenizer } from './starter-tokenizer.ts'
import { tokenChooser, topAlternatives } from './token-choice.ts'

/** The largest picture that is decoded at all. */
const MAX_INPUT_PIXELS = 50_000_000

interface StarterVisionConfig {
  readonly size: number
  readonly max_tokens: number
  readonly stop: number
  readonly memory: readonly [number, number, number]
}

/** Answers one question about one picture. The decoder has no cache: its whole input is at most 44 tokens. */
export async function loadStarterVision({ open, path, memoryBytes }: OnnxLoading): Promise<EngineModel> {
  const config = JSON.parse(await readFile(path('config'), 'utf8')) as StarterVisionConfig
  const tokenizer = await loadStarterTokenizer(path('tokenizer'))
  const [encoder, decoder] = await Promise.all([open(path('encoder')), open(path('decoder'))])
  const imageTokens = config.memory[1]

  async function encodeImage(image: Buffer, signal: AbortSignal): Promise<Tensor> {
    const pixels = await letterbox(image, config.size)
    return output(await run(encoder, { image: float32(pixels, [1, 3, config.size, config.size]) }, signal), 'memory')
  }

  async function* chat(request: EngineChatRequest, signal: AbortSignal): AsyncGenerator<TextEvent> {
    const { sampling } = request
    const { image, question } = lastQuestion(request.messages)
    const ids = [tokenizer.begin, ...tokenizer.encode(question), tokenizer.answer]
    if (ids.length >= config.max_tokens) {
      throw contextLengthExceeded(imageTokens + config.max_tokens, imageTokens + ids.length)
    }
    const memory = await encodeImage(image, signal)
    yield { kind: 'prompt', promptTokens: imageTokens + ids.length, cachedTokens: 0 }

    const choose = tokenChooser(sampling)
    const stops = stopText(sampling.stop)
    const answerStart = ids.length
    const room = Math.min(sampling.maxTokens ?? Infinity, config.max_tokens - answerStart)
    let finishReason: FinishReason = 'length'
    let completionTokens = 0
    let written = ''
    while (completionTokens < room && stops.found() === undefined) {
      const logits = floats(output(await run(decoder, { ids: int64(ids, [1, ids.length]), memory }, signal), 'logits'))
      const { token, logprob } = choose(logits)
      completionTokens++
      if (token === config.stop) {
        finishReason = 'stop'
        break
      }
      ids.push(token)
      const whole = tokenizer.decode(ids.slice(answerStart))
      const fresh = whole.slice(written.length)
      written = whole
      const text = stops.push(fresh)
      if (sampling.topLogprobs !== undefined) {
        const top = topAlternatives(logits, sampling.topLogprobs, (other) => tokenizer.decode([other]))
        yield { kind: 'text', text, completionTokens, logprobs: [{ text: fresh, logprob, top }] }
      } else if (text !== '') {
        yield { kind: 'text', text, completionTokens }
      }
    }
    if (stops.found() !== undefined) finishReason = 'stop'
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

/** The model cannot hold a conversation: it answers the last question about the last picture. */
function lastQuestion(messages: readonly EngineChatMessage[]): { image: Buffer; question: string } {
  const image = messages.flatMap((message) => message.images).at(-1)
  const question = messages.findLast((message) => message.role === 'user' && message.text.trim() !== '')?.text
  if (!image) {
    throw new HostError('unsupported_content', 'This model needs an image: add an image_url part.', {
      param: 'messages',
    })
  }
  return { image, question: question ?? 'what is this?' }
}

/** Fits the picture into a white square. Returns red, green and blue planes, scaled to −1…1. */
async function letterbox(image: Buffer, size: number): Promise<Float32Array> {
  const white = { r: 255, g: 255, b: 255 }
  let pixels: Buffer
  try {
    pixels = await sharp(image, { limitInputPixels: MAX_INPUT_PIXELS })
      .flatten({ background: white })
      .resize(size, size, { fit: 'contain', background: white })
      .removeAlpha()
      .toColourspace('srgb')
      .raw()
      .toBuffer()
  } catch {
    throw new HostError('invalid_value', 'The image could not be decoded.', { param: 'messages' })
  }
  const area = size * size
  const planes = new Float32Array(3 * area)
  for (let channel = 0; channel < 3; channel++) {
    for (let index = 0; index < area; index++)
      planes[channel * area + index] = (pixels[index * 3 + channel] ?? 0) / 127.5 - 1
  }
  return planes
}
