import type { Deployment, Model } from '../../catalog/model.ts'
import { ApiError } from '../../shared/errors.ts'
import { expectedCount, inputBounds } from '../metering/usage-bounds.ts'
import type { Job } from '../../engines/job.ts'
import type { JsonBody } from '../../shared/json/json-body.ts'
import { requireValid } from '../../shared/json/schema-check.ts'
import { requireBudget } from '../metering/token-budget.ts'
import { sumOf, textTokens, type TokenEstimate } from '../../shared/tokens/token-estimate.ts'
import { bytesIn, inBatches, jsonBodies, jsonRequest, operationOf, supportOf } from '../request/engine-operation.ts'
import { acceptedParameters, tierOf } from '../request/parameters.ts'
import type { MissingInput, PreparedRequest, RequestFacts } from '../request/prepared-request.ts'
import { embeddingsAnswer } from './answer.ts'
import { embeddingsRequestSchema, type EmbeddingsRequest } from './schema.ts'
import { createRequire } from 'node:module'

const alwaysAccepted = new Set(['input', 'encoding_format'])

/** What the job needs besides its terms and its bodies. */
interface EmbeddingsPlan {
  readonly path: string
  readonly encoding: 'base64' | 'float'
  /** How many texts each call has. */
  readonly counts: readonly number[]
}

/** POST /embeddings: one vector for each text, in several calls if the engine accepts fewer texts at a time. */
export function prepareEmbeddings(
  body: JsonBody,
  model: Model,
  deployment: Deployment,
  { isInThread }: RequestFacts,
): PreparedRequest<EmbeddingsPlan> | MissingInput {
  const dialect = operationOf(model, deployment, 'embeddings')
  requireValid(embeddingsRequestSchema, body.value)
  const request = body.value as EmbeddingsRequest
  const support = supportOf(deployment, 'embeddings')
  acceptedParameters(request, embeddingsRequestSchema.properties, alwaysAccepted, model, support)
  const given = textsIn(request.input)
  if (!given && !isInThread) return { missing: 'thread' }
  const texts = given ?? textsOfTokens(request.input as number[] | number[][])
  const input = inputTokens(texts, model)
  requireBudget({ model, deployment, cost: input.charged, maxTokens: 0 })
  const encoding = request.encoding_format ?? 'float'
  const batches = inBatches(texts, dialect.batchSize)
  const { path, bodies } = jsonBodies(
    batches.map((batch) =>
      dialect.request({
        model: deployment.engine?.model ?? model.id,
        texts: batch,
        dimensions: request.dimensions ?? undefined,
        base64: encoding === 'base64',
      }),
    ),
  )
  return {
    terms: {
      tier: tierOf(request.service_tier, model),
      cost: input.charged,
      maxTokens: 0,
      ...inputBounds({ bytes: bytesIn(bodies), contexts: texts.length }, model.contextLength),
      likelyInputTokens: input.likely,
      expectedInput: expectedCount(input, texts.length),
    },
    bodies,
    plan: { path, encoding, counts: batches.map(({ length }) => length) },
  }
}

export function embeddingsJob(
  { terms, bodies, plan: { path, encoding, counts } }: PreparedRequest<EmbeddingsPlan>,
  model: Model,
  deployment: Deployment,
): Job {
  return {
    ...terms,
    endpoint: '/embeddings',
    model,
    deployment,
    calls: bodies.map((body) => jsonRequest(path, body, 'input')),
    answer: embeddingsAnswer(operationOf(model, deployment, 'embeddings'), counts, encoding),
  }
}

/** undefined: the input is token ids. */
function textsIn(input: EmbeddingsRequest['input']): readonly string[] | undefined {
  if (typeof input === 'string') return [input]
  return typeof input[0] === 'string' ? (input as string[]) : undefined
}

/** The tokens of all texts together. Each text by itself must fit into the model's context. */
function inputTokens(texts: readonly string[], model: Model): TokenEstimate {
  const estimates = texts.map((text) => textTokens(text, model.tokenizer))
  for (const [index, { likely: tokens }] of estimates.entries()) {
    if (tokens > model.contextLength) {
      throw new ApiError(
        'context_length_exceeded',
        `This model's maximum context length is ${model.contextLength} tokens, but input ${index} has about ${tokens}. Split the text.`,
        { param: 'input' },
      )
    }
  }
  return sumOf(estimates)
}

const require = createRequire(import.meta.url)

/**
 * The texts of token ids of cl100k_base, the tokenizer that SDKs use. Its table takes 42 MB and a tenth of a second to load,
 * and a list of the largest size almost as long to decode. So it is loaded on demand, and only in the thread for large bodies.
 */
function textsOfTokens(input: readonly number[] | readonly (readonly number[])[]): readonly string[] {
  const { decode } =
    require('gpt-tokenizer/encoding/cl100k_base') as typeof import('gpt-tokenizer/encoding/cl100k_base')
  const lists = typeof input[0] === 'number' ? [input as readonly number[]] : (input as readonly (readonly number[])[])
  return lists.map((tokens, index) => {
    try {
      return decode(tokens)
    } catch {
      // The decoder's own message quotes the input, which must not be logged.
      throw new ApiError('invalid_value', 'The input has a number that is not a token id of cl100k_base.', {
        param: lists.length === 1 ? 'input' : `input[${index}]`,
      })
    }
  })
}
