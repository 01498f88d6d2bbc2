import type { Deployment, Model } from '../core/catalog.ts'
import { ApiError } from '../core/errors.ts'
import type { ReadAnswer } from '../core/job.ts'
import { noUsage } from '../core/rating.ts'
import { sumOf, textTokens, type TokenEstimate } from '../core/token-estimate.ts'
import type { EmbeddingsDialect } from '../dialects/dialect.ts'
import type { JsonBody } from './body.ts'
import { embeddingsRequestSchema, type EmbeddingsRequest } from './embeddings-schema.ts'
import type { UnpricedJob } from './inference.ts'
import { jsonRequest, operationOf, parsedJson } from './operation.ts'
import { acceptedParameters, requireValid } from './parameters.ts'

type Vector = readonly number[] | string

const always = new Set(['input', 'encoding_format'])

/** POST /embeddings: texts in, vectors out, in the same order; split where the engine takes fewer at a time. */
export async function embeddingsJob(body: JsonBody, model: Model, deployment: Deployment): Promise<UnpricedJob> {
  const dialect = operationOf(model, deployment, 'embeddings')
  requireValid(embeddingsRequestSchema, body.value)
  const request = body.value as EmbeddingsRequest
  acceptedParameters(request, embeddingsRequestSchema.properties, always, model)
  const texts = await textsOf(request.input)
  const input = measure(texts, model)
  const base64 = request.encoding_format === 'base64'
  const batches = split(texts, dialect.batchSize)
  return {
    endpoint: '/embeddings',
    model,
    deployment,
    cost: input.charged,
    maxTokens: 0,
    likelyInputTokens: input.likely,
    calls: batches.map((batch) => {
      const engineModel = deployment.engine?.model ?? model.id
      const call = dialect.request({
        model: engineModel,
        texts: batch,
        dimensions: request.dimensions ?? undefined,
        base64,
      })
      return jsonRequest(call.path, Buffer.from(JSON.stringify(call.body)))
    }),
    answer: {
      kind: 'whole',
      read: (bodies, head) => readEmbeddings(dialect, bodies, batches, base64, head.model),
    },
  }
}

function readEmbeddings(
  dialect: EmbeddingsDialect,
  bodies: readonly Buffer[],
  batches: readonly (readonly string[])[],
  base64: boolean,
  model: string,
): ReadAnswer | undefined {
  const vectors: Vector[] = []
  let inputTokens: number | undefined = 0
  for (const [position, body] of bodies.entries()) {
    const output = dialect.response(parsedJson(body))
    if (output?.vectors.length !== batches[position]?.length) return undefined
    vectors.push(...(output?.vectors ?? []))
    inputTokens = sum(inputTokens, output?.inputTokens)
  }
  return {
    usage: inputTokens === undefined ? undefined : { ...noUsage, inputTokens },
    outputBytes: () => 0,
    render(usage) {
      const data = vectors.map((vector, index) => {
        const embedding = base64 ? `"${toBase64(vector)}"` : JSON.stringify(toNumbers(vector))
        return `{"object":"embedding","index":${index},"embedding":${embedding}}`
      })
      const counts = { prompt_tokens: usage.inputTokens, total_tokens: usage.inputTokens }
      return `{"object":"list","data":[${data.join(',')}],"model":${JSON.stringify(model)},"usage":${JSON.stringify(counts)}}`
    },
  }
}

/** Token ids are text that somebody has tokenized already, with the tokenizer that SDKs assume. */
async function textsOf(input: EmbeddingsRequest['input']): Promise<readonly string[]> {
  if (typeof input === 'string') return [input]
  if (typeof input[0] === 'string') return input as string[]
  // Two megabytes of ranks, for the few who send ids.
  const { decode } = await import('gpt-tokenizer/encoding/cl100k_base')
  const lists = typeof input[0] === 'number' ? [input as number[]] : (input as number[][])
  return lists.map((tokens, index) => {
    try {
      return decode(tokens)
    } catch (cause) {
      throw new ApiError('invalid_value', 'The input holds a number that is no token of cl100k_base.', {
        param: lists.length === 1 ? 'input' : `input[${index}]`,
        cause,
      })
    }
  })
}

/** Tokens of all texts, each of which must fit into the model's context. */
function measure(texts: readonly string[], model: Model): TokenEstimate {
  const estimates = texts.map((text) => textTokens(text, model.tokenizer))
  for (const [index, { likely: tokens }] of estimates.entries()) {
    if (tokens > model.contextLength) {
      throw new ApiError(
        'context_length_exceeded',
        `This model's maximum context length is ${model.contextLength} tokens, but input ${index} comes to about ${tokens}. Split the text.`,
        { param: 'input' },
      )
    }
  }
  return sumOf(estimates)
}

function split(texts: readonly string[], size: number): readonly (readonly string[])[] {
  const batches: (readonly string[])[] = []
  for (let from = 0; from < texts.length; from += size) batches.push(texts.slice(from, from + size))
  return batches
}

function sum(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? undefined : one + other
}

/** Little-endian float32, as every SDK decodes it. */
function toBase64(vector: Vector): string {
  if (typeof vector === 'string') return vector
  const bytes = Buffer.allocUnsafe(vector.length * 4)
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4)
  return bytes.toString('base64')
}

function toNumbers(vector: Vector): readonly number[] {
  if (typeof vector !== 'string') return vector
  const bytes = Buffer.from(vector, 'base64')
  return Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readFloatLE(index * 4))
}
