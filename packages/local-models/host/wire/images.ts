import { randomInt } from 'node:crypto'
import { parameterError } from '../runtime/host-error.ts'
import type { ImageRequest } from '../runtime/engine-model.ts'
import type { JsonObject } from '../runtime/json-value.ts'
import { readRequestJson } from './body.ts'
import { optionalInteger, optionalNumber, optionalString, requiredString } from './fields.ts'
import { abilityOf, unixSeconds, type HostCall } from './host-call.ts'
import { sendJson } from './reply.ts'

const MAX_IMAGES = 10
const MAX_STEPS = 100
const MIN_SIDE_PIXELS = 16
const MAX_SIDE_PIXELS = 2048

/** POST /v1/images/generations */
export async function imageGenerations({ request, response, signal, models }: HostCall): Promise<void> {
  const body = await readRequestJson(request)
  const slug = requiredString(body, 'model')
  const imageRequest = readImageRequest(body)
  const images = await models.use(slug, (model) => abilityOf(model, 'drawImages', slug)(imageRequest, signal))
  sendJson(response, 200, {
    created: unixSeconds(),
    data: images.map((image) => ({ b64_json: image.toString('base64') })),
  })
}

function readImageRequest(body: JsonObject): ImageRequest {
  const negativePrompt = optionalString(body, 'negative_prompt')
  const steps = optionalInteger(body, 'steps', 1, MAX_STEPS)
  const guidance = optionalNumber(body, 'guidance_scale')
  return {
    prompt: requiredString(body, 'prompt'),
    count: optionalInteger(body, 'n', 1, MAX_IMAGES) ?? 1,
    seed: optionalInteger(body, 'seed', Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER) ?? randomInt(2 ** 31),
    ...readSize(body),
    ...(negativePrompt === undefined ? {} : { negativePrompt }),
    ...(steps === undefined ? {} : { steps }),
    ...(guidance === undefined ? {} : { guidance }),
  }
}

function readSize(body: JsonObject): Pick<ImageRequest, 'width' | 'height'> {
  const size = optionalString(body, 'size') ?? 'auto'
  if (size === 'auto') return {}
  const [, width, height] = (/^(\d{1,4})x(\d{1,4})$/.exec(size) ?? []).map(Number)
  if (isSide(width) && isSide(height)) return { width, height }
  const expected = `auto or WIDTHxHEIGHT, each side from ${MIN_SIDE_PIXELS} to ${MAX_SIDE_PIXELS}`
  throw parameterError('invalid_value', 'size', expected)
}

function isSide(pixels: number | undefined): pixels is number {
  return pixels !== undefined && pixels >= MIN_SIDE_PIXELS && pixels <= MAX_SIDE_PIXELS
}
