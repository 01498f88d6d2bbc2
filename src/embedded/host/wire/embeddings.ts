import { EngineError } from '../runtime/engine-model.ts'
import { readJson } from './body.ts'
import { ability } from './exchange.ts'
import type { Exchange } from './exchange.ts'
import { optionalInteger, optionalString, required, requiredString } from './fields.ts'
import type { Fields } from './fields.ts'
import { sendJson } from './reply.ts'

const inputsMax = 2048

/** POST /v1/embeddings */
export async function embeddings({ request, response, signal, models }: Exchange): Promise<void> {
  const body = await readJson(request)
  const slug = requiredString(body, 'model')
  const texts = readInputs(body)
  const dimensions = optionalInteger(body, 'dimensions', 1, 65_536)
  const base64 = optionalString(body, 'encoding_format') === 'base64'
  const result = await models.use(slug, (model) =>
    ability(model, 'embed', slug)({ texts, ...(dimensions === undefined ? {} : { dimensions }) }, signal),
  )
  sendJson(response, 200, {
    object: 'list',
    data: result.vectors.map((vector, index) => ({
      object: 'embedding',
      index,
      embedding: base64 ? encodeVector(vector) : [...vector],
    })),
    model: slug,
    usage: { prompt_tokens: result.promptTokens, total_tokens: result.promptTokens },
  })
}

function readInputs(body: Fields): string[] {
  const input = required(body['input'] ?? undefined, 'input')
  const texts = typeof input === 'string' ? [input] : input
  if (!Array.isArray(texts) || texts.length === 0 || texts.length > inputsMax || !texts.every(isText)) {
    throw new EngineError(400, 'invalid_value', `'input' must be 1 to ${inputsMax} non-empty strings.`, 'input')
  }
  return texts
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** Little-endian float32, as SDKs expect it. Every platform Node runs on is little-endian. */
function encodeVector(vector: Float32Array): string {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64')
}
