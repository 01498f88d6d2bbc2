import type { Deployment, Model } from '../../core/catalog.ts'
import { ApiError } from '../../core/errors.ts'
import { expectedCount } from '../../core/expected-count.ts'
import type { EngineRequest, Job } from '../../core/job.ts'
import type { JsonBody } from '../../core/json/json-body.ts'
import { jsonBytes } from '../../core/json/json-bytes.ts'
import { inputBounds } from '../../core/money/usage-bounds.ts'
import { requireValid } from '../../core/parameter-errors.ts'
import { resultOf, type SlicedWork, type WaitingWork } from '../../core/sliced-work.ts'
import { requireBudget } from '../../core/token-budget.ts'
import { sumOf, type TokenEstimate } from '../../core/token-estimate.ts'
import { bytesIn, inBatches, jsonRequest, operationOf, supportOf } from '../engine-operation.ts'
import { acceptedParameters } from '../parameters.ts'
import { tokensOfEach } from '../text-in-slices.ts'
import { embeddingsAnswer } from './answer.ts'
import { embeddingsRequestSchema, type EmbeddingsRequest } from './schema.ts'

const alwaysAccepted = new Set(['input', 'encoding_format'])

/** POST /embeddings: one vector for each text, in several calls when the engine takes fewer texts at a time. */
export function* embeddingsJob(body: JsonBody, model: Model, deployment: Deployment): WaitingWork<Job> {
  const dialect = operationOf(model, deployment, 'embeddings')
  requireValid(embeddingsRequestSchema, body.value)
  yield
  const request = body.value as EmbeddingsRequest
  const support = supportOf(deployment, 'embeddings')
  acceptedParameters(request, embeddingsRequestSchema.properties, alwaysAccepted, model, support)
  const texts = textsIn(request.input) ?? (yield* resultOf(decodedTexts(request.input)))
  yield
  const input = yield* inputTokens(texts, model)
  requireBudget({ model, deployment, cost: input.charged, maxTokens: 0 })
  const encoding = request.encoding_format ?? 'float'
  const batches = inBatches(texts, dialect.batchSize)
  const calls: EngineRequest[] = []
  for (const batch of batches) {
    const call = dialect.request({
      model: deployment.engine?.model ?? model.id,
      texts: batch,
      dimensions: request.dimensions ?? undefined,
      base64: encoding === 'base64',
    })
    calls.push(jsonRequest(call.path, yield* jsonBytes(call.body), 'input'))
  }
  return {
    endpoint: '/embeddings',
    model,
    deployment,
    cost: input.charged,
    maxTokens: 0,
    ...inputBounds({ bytes: bytesIn(calls), contexts: texts.length }, model.contextLength),
    likelyInputTokens: input.likely,
    expectedInput: expectedCount(input, texts.length),
    calls,
    answer: embeddingsAnswer(
      dialect,
      batches.map(({ length }) => length),
      encoding,
    ),
  }
}

/** undefined: the input is token ids. */
function textsIn(input: EmbeddingsRequest['input']): readonly string[] | undefined {
  if (typeof input === 'string') return [input]
  return typeof input[0] === 'string' ? (input as string[]) : undefined
}

/** Token ids are decoded to text with cl100k_base, the tokenizer that SDKs use. */
async function decodedTexts(input: EmbeddingsRequest['input']): Promise<readonly string[]> {
  // Imported on demand: its table takes two megabytes, and few callers send token ids.
  const { decode } = await import('gpt-tokenizer/encoding/cl100k_base')
  const lists = typeof input[0] === 'number' ? [input as number[]] : (input as number[][])
  return lists.map((tokens, index) => {
    try {
      return decode(tokens)
    } catch {
      // The decoder's own message quotes the input, which must not get into the log.
      throw new ApiError('invalid_value', 'The input has a number that is not a token id of cl100k_base.', {
        param: lists.length === 1 ? 'input' : `input[${index}]`,
      })
    }
  })
}

/** The tokens of all texts together. Each text by itself must fit into the model's context. */
function* inputTokens(texts: readonly string[], model: Model): SlicedWork<TokenEstimate> {
  const estimates = yield* tokensOfEach(texts, model.tokenizer)
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
