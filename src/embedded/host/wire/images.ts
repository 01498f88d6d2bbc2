import { randomInt } from 'node:crypto'
import { invalidValue } from '../runtime/engine-model.ts'
import { readJson } from './body.ts'
import { ability, unixSeconds } from './exchange.ts'
import type { Exchange } from './exchange.ts'
import { optionalInteger, optionalNumber, optionalString, requiredString } from './fields.ts'
import type { Fields } from './fields.ts'
import { sendJson } from './reply.ts'

const sideMax = 2048

/** POST /v1/images/generations */
export async function imageGenerations({ request, response, signal, models }: Exchange): Promise<void> {
  const body = await readJson(request)
  const slug = requiredString(body, 'model')
  const given = {
    negativePrompt: optionalString(body, 'negative_prompt'),
    steps: optionalInteger(body, 'steps', 1, 100),
    guidance: optionalNumber(body, 'guidance_scale') ?? optionalNumber(body, 'guidance'),
  }
  const images = await models.use(slug, (model) =>
    ability(
      model,
      'drawImages',
      slug,
    )(
      {
        prompt: requiredString(body, 'prompt'),
        count: optionalInteger(body, 'n', 1, 10) ?? 1,
        seed: optionalInteger(body, 'seed', -Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER) ?? randomInt(2 ** 31),
        ...readSize(body),
        ...(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as object),
      },
      signal,
    ),
  )
  sendJson(response, 200, {
    created: unixSeconds(),
    data: images.map((image) => ({ b64_json: image.toString('base64') })),
  })
}

function readSize(body: Fields): { width?: number; height?: number } {
  const size = optionalString(body, 'size') ?? 'auto'
  if (size === 'auto') return {}
  const match = /^(\d{1,4})x(\d{1,4})$/.exec(size)
  const [width, height] = [Number(match?.[1]), Number(match?.[2])]
  if (!(width >= 16 && width <= sideMax && height >= 16 && height <= sideMax)) {
    throw invalidValue('size', `'size' must be auto or WxH, each side from 16 to ${sideMax}.`)
  }
  return { width, height }
}
