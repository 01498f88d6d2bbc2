import type { Deployment, Model } from '../../core/catalog.ts'
import type { ByteCollector } from '../../core/byte-collector.ts'
import { embeddingList, isBase64Vector, listInBytes, type EmbeddingList } from '../../core/json/embedding-list.ts'
import { ApiError } from '../../core/errors.ts'
import type { AnswerHeaders, Job, PassThrough, ReadAnswer, WholeAnswer } from '../../core/job.ts'
import { noUsage, type Usage } from '../../core/money/rating.ts'
import { sumOf, textTokens, type TokenEstimate } from '../../core/token-estimate.ts'
import type { EmbeddingsDialect } from '../../dialects/dialect.ts'
import type { JsonBody } from '../../core/json/json-body.ts'
import { embeddingsRequestSchema, type EmbeddingsRequest } from './schema.ts'
import { jsonRequest, operationOf, parsedJson, split, sum } from '../engine-operation.ts'
import { requireValid } from '../../core/parameter-errors.ts'
import { acceptedParameters } from '../parameters.ts'

type Vector = readonly number[] | string

const always = new Set(['input', 'encoding_format'])

/** POST /embeddings: texts in, vectors out, in the same order; split where the engine takes fewer at a time. */
export async function embeddingsJob(body: JsonBody, model: Model, deployment: Deployment): Promise<Job> {
  const dialect = operationOf(model, deployment, 'embeddings')
  requireValid(embeddingsRequestSchema, body.value)
  const request = body.value as EmbeddingsRequest
  acceptedParameters(request, embeddingsRequestSchema.properties, always, model)
  const texts = await textsOf(request.input)
  const input = measure(texts, model)
  const encoding = request.encoding_format ?? 'float'
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
        base64: encoding === 'base64',
      })
      return jsonRequest(call.path, Buffer.from(JSON.stringify(call.body)), 'input')
    }),
    answer: answerOf(
      dialect,
      batches.map(({ length }) => length),
      encoding,
    ),
  }
}

/** Apart, so that what reads the answer keeps nothing of the request while it waits. */
function answerOf(dialect: EmbeddingsDialect, counts: readonly number[], encoding: 'base64' | 'float'): WholeAnswer {
  const [only] = counts.length === 1 ? counts : []
  return {
    kind: 'whole',
    passThrough: only ? (head) => passThroughOf(dialect, embeddingList(only, encoding), head.model) : undefined,
    read(bodies, head, headers) {
      const read = readAll(dialect, bodies, headers, counts, encoding === 'base64')
      return read && toAnswer(read, head.model)
    },
  }
}

/** An engine's whole answer, as far as it has been looked at. */
interface Read {
  readonly inputTokens: number | undefined
  /** `[{"object":"embedding",…},…]`: as it came, where it came as it has to leave. */
  data(): Buffer
}

const BEFORE_DATA = '{"object":"list","data":'

function toAnswer({ inputTokens, data }: Read, model: string): ReadAnswer {
  return {
    usage: usageOf(inputTokens),
    outputBytes: () => 0,
    render: (usage) => [Buffer.from(BEFORE_DATA), data(), Buffer.from(afterData(model, usage))],
  }
}

function afterData(model: string, { inputTokens }: Usage): string {
  const counts = JSON.stringify({ prompt_tokens: inputTokens, total_tokens: inputTokens })
  return `,"model":${JSON.stringify(model)},"usage":${counts}}`
}

/** One call, and the engine words it as Weir does: what comes around the list is ours. */
function passThroughOf(dialect: EmbeddingsDialect, list: EmbeddingList, model: string): PassThrough {
  let isOpen = false
  return {
    push(chunk) {
      const bytes = list.push(chunk)
      if (!bytes || isOpen) return bytes
      isOpen = true
      return Buffer.concat([Buffer.from(BEFORE_DATA), bytes])
    },
    end(headers) {
      const rest = list.rest()
      const output = rest === undefined ? undefined : dialect.response(rest, headers)
      return (
        output && {
          usage: usageOf(output.inputTokens),
          outputBytes: () => 0,
          render: (usage) => afterData(model, usage),
        }
      )
    },
  }
}

function usageOf(inputTokens: number | undefined): Usage | undefined {
  return inputTokens === undefined ? undefined : { ...noUsage, inputTokens }
}

function readAll(
  dialect: EmbeddingsDialect,
  bodies: readonly ByteCollector[],
  headers: readonly AnswerHeaders[],
  counts: readonly number[],
  base64: boolean,
): Read | undefined {
  const vectors: Vector[] = []
  let inputTokens: number | undefined = 0
  let asItCame: Buffer | undefined
  for (const [position, collected] of bodies.entries()) {
    const body = collected.whole()
    const parsed = parsedJson(body)
    const output = dialect.response(parsed, headers[position] ?? {})
    if (output?.vectors.length !== counts[position]) return undefined
    for (const vector of output?.vectors ?? []) {
      if (!isVector(vector)) return undefined
      vectors.push(vector)
    }
    inputTokens = sum(inputTokens, output?.inputTokens)
    if (bodies.length === 1 && vectors.every((it) => (typeof it === 'string') === base64)) {
      asItCame = listInBytes(body, parsed)
    }
  }
  return { inputTokens, data: () => asItCame ?? Buffer.from(written(vectors, base64)) }
}

function written(vectors: readonly Vector[], base64: boolean): string {
  const items = vectors.map((vector, index) => {
    const embedding = base64 ? `"${toBase64(vector)}"` : JSON.stringify(toNumbers(vector))
    return `{"object":"embedding","index":${index},"embedding":${embedding}}`
  })
  return `[${items.join(',')}]`
}

/** Numbers, or float32 in base64; an engine that leaves a place empty has not answered. */
function isVector(vector: Vector | undefined): boolean {
  if (typeof vector === 'string') return isBase64Vector(vector)
  return vector !== undefined && vector.length > 0 && vector.every((it) => Number.isFinite(it))
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
