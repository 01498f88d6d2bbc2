import type { Deployment, Model } from '../../core/catalog.ts'
import { ApiError } from '../../core/errors.ts'
import type { EngineRequest, Job } from '../../core/job.ts'
import type { JsonBody } from '../../core/json/json-body.ts'
import { mostInputTokens, type InputSize } from '../../core/money/usage-bounds.ts'
import { requireValid } from '../../core/parameter-errors.ts'
import { firstTokens, sumOf, textTokens, type TokenEstimate } from '../../core/token-estimate.ts'
import type { RankingDialect, RankingInput } from '../../dialects/dialect.ts'
import { bytesIn, inBatches, jsonRequest, operationOf } from '../engine-operation.ts'
import { rankingAnswer, renderRerank, renderReranking, type RenderRanking } from './answer.ts'
import { rerankingRequestSchema, rerankRequestSchema, type RerankingRequest, type RerankRequest } from './schema.ts'

/** POST /rerank, Cohere's schema. Documents that are too long are truncated. */
export function rerankJob(body: JsonBody, model: Model, deployment: Deployment): Job {
  requireValid(rerankRequestSchema, body.value)
  const request = body.value as RerankRequest
  const documents = request.documents.map((it) => (typeof it === 'string' ? it : it.text))
  const input: RankingInput = {
    model: deployment.engine?.model ?? model.id,
    query: request.query,
    documents,
    truncate: true,
    maxTokensPerDocument: request.max_tokens_per_doc ?? undefined,
  }
  const render = renderRerank(request.top_n ?? undefined, request.return_documents ? documents : undefined)
  return rankingJob('/rerank', 'documents', input, model, deployment, render)
}

/** POST /reranking, NVIDIA's schema. Passages that are too long are refused, or truncated with truncate: "END". */
export function rerankingJob(body: JsonBody, model: Model, deployment: Deployment): Job {
  requireValid(rerankingRequestSchema, body.value)
  const request = body.value as RerankingRequest
  const input: RankingInput = {
    model: deployment.engine?.model ?? model.id,
    query: request.query.text,
    documents: request.passages.map(({ text }) => text),
    truncate: request.truncate === 'END',
    maxTokensPerDocument: undefined,
  }
  if (!input.truncate) requireFit(input, model)
  const render = renderReranking(request.top_n ?? undefined)
  return rankingJob('/reranking', 'passages', input, model, deployment, render)
}

function rankingJob(
  endpoint: string,
  inputName: string,
  input: RankingInput,
  model: Model,
  deployment: Deployment,
  render: RenderRanking,
): Job {
  const dialect = operationOf(model, deployment, 'ranking')
  const batches = inBatches(documentsFor(dialect, input, model), dialect.batchSize)
  const tokens = inputTokens(input, model)
  const calls = batches.map((documents) => engineCall(dialect, { ...input, documents }, inputName))
  return {
    endpoint,
    model,
    deployment,
    cost: tokens.charged,
    maxTokens: 0,
    maxInputTokens: mostInputTokens(sizeOf(input, calls), model.contextLength),
    likelyInputTokens: tokens.likely,
    calls,
    answer: rankingAnswer(
      dialect,
      batches.map(({ length }) => length),
      deployment.engine?.scores,
      render,
    ),
  }
}

/** A call has the query once, but the model reads it with every document. */
function sizeOf({ query, documents }: RankingInput, calls: readonly EngineRequest[]): InputSize {
  const repeated = Buffer.byteLength(query) * (documents.length - calls.length)
  return { bytes: bytesIn(calls) + repeated, contexts: documents.length }
}

/** Truncates the documents here when the engine has no limit per document. */
function documentsFor(
  dialect: RankingDialect,
  { documents, maxTokensPerDocument: limit }: RankingInput,
  model: Model,
): readonly string[] {
  if (limit === undefined || dialect.cutsDocuments) return documents
  return documents.map((text) => firstTokens(text, limit, model.tokenizer))
}

function engineCall(dialect: RankingDialect, input: RankingInput, inputName: string): EngineRequest {
  const { path, body } = dialect.request(input)
  return {
    ...jsonRequest(path, Buffer.from(JSON.stringify(body)), inputName),
    fallback({ message }) {
      const other = dialect.fallback?.(input, message)
      return other && jsonRequest(other.path, Buffer.from(JSON.stringify(other.body)), inputName)
    },
  }
}

/** Throws for a passage that does not fit into the model's context. */
function requireFit(input: RankingInput, model: Model): void {
  const query = textTokens(input.query, model.tokenizer)
  for (const [index, document] of input.documents.entries()) {
    const tokens = query.likely + textTokens(document, model.tokenizer).likely
    if (tokens <= model.contextLength) continue
    throw new ApiError(
      'context_length_exceeded',
      `This model's maximum context length is ${model.contextLength} tokens, but the query and passage ${index} have about ${tokens}. Shorten the passage or send truncate: "END".`,
      { param: `passages[${index}].text` },
    )
  }
}

/** The model reads the query with every document: no more of a document than the limit, and no more than its context. */
function inputTokens(input: RankingInput, model: Model): TokenEstimate {
  const { contextLength, tokenizer } = model
  const limit = input.maxTokensPerDocument ?? Infinity
  const query = textTokens(input.query, tokenizer)
  return sumOf(
    input.documents.map((text) => {
      const document = textTokens(text, tokenizer)
      return {
        charged: Math.min(query.charged + Math.min(document.charged, limit), contextLength),
        likely: Math.min(query.likely + Math.min(document.likely, limit), contextLength),
      }
    }),
  )
}
