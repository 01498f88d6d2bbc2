import { parameterError } from '../runtime/host-error.ts'
import type { JsonObject } from '../runtime/json-value.ts'
import { readRequestJson } from './body.ts'
import { optionalInteger, optionalString, required, requiredString } from './fields.ts'
import { abilityOf, type HostCall } from './host-call.ts'
import { sendJson } from './reply.ts'

const MAX_TEXTS = 2048
const MAX_DIMENSIONS = 65_536

/** POST /v1/embeddings */
export async function embeddings({ request, response, signal, models }: HostCall): Promise<void> {
  const body = await readRequestJson(request)
  const slug = requiredString(body, 'model')
  const texts = readTexts(body)
  const dimensions = optionalInteger(body, 'dimensions', 1, MAX_DIMENSIONS)
  const isBase64 = optionalString(body, 'encoding_format') === 'base64'
  const { vectors, promptTokens } = await models.use(slug, (model) =>
    abilityOf(model, 'embed', slug)({ texts, ...(dimensions === undefined ? {} : { dimensions }) }, signal),
  )
  sendJson(response, 200, {
    object: 'list',
    data: vectors.map((vector, index) => ({
      object: 'embedding',
      index,
      embedding: isBase64 ? toBase64(vector) : [...vector],
    })),
    model: slug,
    usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
  })
}

function readTexts(body: JsonObject): readonly string[] {
  const texts = [required(body['input'] ?? undefined, 'input')].flat()
  if (texts.length > 0 && texts.length <= MAX_TEXTS && texts.every(isText)) return texts
  throw parameterError('invalid_value', 'input', `1 to ${MAX_TEXTS} non-empty strings`)
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** Little-endian float32, as SDKs expect. Every platform that Node runs on is little-endian. */
function toBase64(vector: Float32Array): string {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64')
}
