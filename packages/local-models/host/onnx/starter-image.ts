import { readFile } from 'node:fs/promises'
import type { Tensor } from 'onnxruntime-node'
import sharp from 'sharp'
import type { EngineModel, ImageRequest } from '../runtime/engine-model.ts'
import type { OnnxLoading } from './model-loading.ts'
import { float32, floats, int64, output, run, scalar } from './session.ts'
import { loadStarterTokenizer } from './starter-tokenizer.ts'
import { seededSamples } from './seeded-samples.ts'

interface StarterImageConfig {
  readonly size: number
  readonly channels: number
  readonly text_len: number
  readonly steps: number
  readonly guidance: number
  readonly shift: number
}

/** Flow matching in pixel space. Guidance and the Euler step are part of the graph. */
export async function loadStarterImage({ open, path, memoryBytes }: OnnxLoading): Promise<EngineModel> {
  const config = JSON.parse(await readFile(path('config'), 'utf8')) as StarterImageConfig
  const tokenizer = await loadStarterTokenizer(path('tokenizer'))
  const [textEncoder, denoiseStep] = await Promise.all([open(path('text-encoder')), open(path('denoise-step'))])
  const { size, channels, text_len: textLength } = config

  async function encodePrompt(prompt: string, signal: AbortSignal): Promise<Tensor> {
    const ids = [tokenizer.begin, ...tokenizer.encode(prompt)].slice(0, textLength)
    const padded = [...ids, ...Array<number>(textLength - ids.length).fill(0)]
    return output(await run(textEncoder, { ids: int64(padded, [1, textLength]) }, signal), 'ctx')
  }

  async function draw(request: ImageRequest, seed: number, signal: AbortSignal): Promise<Buffer> {
    const [prompt, negativePrompt] = await Promise.all([
      encodePrompt(request.prompt, signal),
      encodePrompt(request.negativePrompt ?? '', signal),
    ])
    const steps = request.steps ?? config.steps
    const guidance = scalar(request.guidance ?? config.guidance)
    let x = float32(gaussianNoise(seed, channels * size * size), [1, channels, size, size])
    for (let step = 0; step < steps; step++) {
      const t = timeOfStep(step, steps, config.shift)
      const dt = timeOfStep(step + 1, steps, config.shift) - t
      const inputs = { x, t: scalar(t), dt: scalar(dt), guidance, ctx: prompt, null_ctx: negativePrompt }
      x = output(await run(denoiseStep, inputs, signal), 'x_next')
    }
    return encodePng(floats(x), size, request)
  }

  return {
    memoryBytes,
    async drawImages(request, signal) {
      const images: Buffer[] = []
      for (let index = 0; index < request.count; index++) images.push(await draw(request, request.seed + index, signal))
      return images
    },
    async close() {
      await Promise.all([textEncoder.release(), denoiseStep.release()])
    },
  }
}

function timeOfStep(step: number, steps: number, shift: number): number {
  const u = step / steps
  return u / (u + shift * (1 - u))
}

/** The model draws squares. For another shape, the whole square is set on a background of its corner's colour. */
async function encodePng(planes: Float32Array, size: number, { width, height }: ImageRequest): Promise<Buffer> {
  const pixels = Buffer.alloc(planes.length)
  const area = size * size
  for (let channel = 0; channel < 3; channel++) {
    for (let index = 0; index < area; index++) {
      const value = ((planes[channel * area + index] ?? 0) + 1) * 127.5
      pixels[index * 3 + channel] = Math.max(0, Math.min(255, Math.round(value)))
    }
  }
  const picture = sharp(pixels, { raw: { width: size, height: size, channels: 3 } })
  if (width !== undefined && height !== undefined) {
    const background = { r: pixels[0] ?? 255, g: pixels[1] ?? 255, b: pixels[2] ?? 255 }
    picture.resize(width, height, { fit: 'contain', background, kernel: 'lanczos3' })
  }
  return picture.png().toBuffer()
}

/** Normally distributed numbers that depend on the seed alone (Box–Muller). */
function gaussianNoise(seed: number, count: number): Float32Array {
  const random = seededSamples(seed)
  const noise = new Float32Array(count)
  for (let index = 0; index < count; index += 2) {
    const radius = Math.sqrt(-2 * Math.log(1 - random()))
    const angle = 2 * Math.PI * random()
    noise[index] = radius * Math.cos(angle)
    if (index + 1 < count) noise[index + 1] = radius * Math.sin(angle)
  }
  return noise
}
