import type { Deployment, Model } from '../../core/catalog.ts'
import { ApiError } from '../../core/errors.ts'
import { expectedCount, PAIR_TEMPLATE_TOKENS } from '../../core/expected-count.ts'
import type { EngineRequest, Job } from '../../core/job.ts'
import type { JsonBody } from '../../core/json/json-body.ts'
import { jsonBytes } from '../../core/json/json-bytes.ts'
import { inputBounds, type InputSize } from '../../core/money/usage-bounds.ts'
import { requireValid } from '../../core/parameter-errors.ts'
import type { SlicedWork } from '../../core/sliced-work.ts'
import { requireBudget } from '../../core/token-budget.ts'
import { firstTokens, sumOf, type TokenEstimate } from '../../core/token-estimate.ts'
import type { RankingDialect, RankingInput } from '../../dialects/dialect.ts'
import { bytesIn, inBatches, jsonRequest, operationOf } from '../engine-operation.ts'
import { tokensIn, tokensOfEach } from '../text-in-slices.ts'
import { rankingAnswer, renderRerank, renderReranking, type RenderRanking } from './answer.ts'
import { rerankingRequestSchema, rerankRequestSchema, type RerankingRequest, type RerankRequest } from './schema.ts'

/** POST /rerank, Cohere's schema. Documents that are too long are truncated. */
export function* rerankJob(body: JsonBody, model: Model, deployment: Deployment): SlicedWork<Job> {
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
  return yield* rankingJob('/rerank', { query: 'query', documents: 'documents' }, input, model, deployment, render)
}

/** POST /reranking, NVIDIA's schema. Passages that are too long are refused, or truncated with truncate: "END". */
export function* rerankingJob(body: JsonBody, model: Model, deployment: Deployment): SlicedWork<Job> {
  requireValid(rerankingRequestSchema, body.value)
  const request = body.value as RerankingRequest
  const input: RankingInput = {
    model: deployment.engine?.model ?? model.id,
    query: request.query.text,
    documents: request.passages.map(({ text }) => text),
    truncate: request.truncate === 'END',
    maxTokensPerDocument: undefined,
  }
  if (!input.truncate) yield* requireFit(input, model)
  const render = renderReranking(request.top_n ?? undefined)
  return yield* rankingJob(
    '/reranking',
    { query: 'query.text', documents: 'passages' },
    input,
    model,
    deployment,
    render,
  )
}

function* rankingJob(
  endpoint: string,
  /** What the parameters are called. */
  names: { readonly query: string; readonly documents: string },
  input: RankingInput,
  model: Model,
  deployment: Deployment,
  render: RenderRanking,
): SlicedWork<Job> {
  const dialect = operationOf(model, deployment, 'ranking')
  // Checked before the calls are made, because each of them repeats the query.
  const query = yield* tokensIn(input.query, model.tokenizer)
  requireShortQuery(query, names.query, model)
  const tokens = yield* inputTokens(input, query, model)
  requireBudget({ model, deployment, cost: tokens.charged, maxTokens: 0 })
  const batches = inBatches(yield* documentsFor(dialect, input, model), dialect.batchSize)
  const calls: EngineRequest[] = []
  for (const documents of batches) {
    calls.push(yield* engineCall(dialect, { ...input, documents }, names.documents, query, model))
  }
  return {
    endpoint,
    model,
    deployment,
    cost: tokens.charged,
    maxTokens: 0,
    ...inputBounds(sizeOf(input, calls), model.contextLength),
    likelyInputTokens: tokens.likely,
    expectedInput: expectedCount(tokens, input.documents.length, PAIR_TEMPLATE_TOKENS),
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
function* documentsFor(
  dialect: RankingDialect,
  { documents, maxTokensPerDocument: limit }: RankingInput,
  model: Model,
): SlicedWork<readonly string[]> {
  if (limit === undefined || dialect.cutsDocuments) return documents
  const shortened: string[] = []
  for (const text of documents) {
    shortened.push(firstTokens(text, limit, model.tokenizer))
    yield
  }
  return shortened
}

function* engineCall(
  dialect: RankingDialect,
  input: RankingInput,
  inputName: string,
  query: TokenEstimate,
  model: Model,
): SlicedWork<EngineRequest> {
  const { path, body } = dialect.request(input)
  return {
    ...jsonRequest(path, yield* jsonBytes(body), inputName),
    fallback({ code, message }) {
      let other = dialect.fallback?.(input, message)
      if (!other && code === 'context_length_exceeded' && input.truncate) {
        const documents = cutToFit(input.documents, message, query, model)
        other = documents && dialect.request({ ...input, documents })
      }
      return other && jsonRequest(other.path, Buffer.from(JSON.stringify(other.body)), inputName)
    },
  }
}

/** The special tokens that an engine puts around a query and a document. */
const SPECIAL_TOKENS = 8
/** "… context size (512 tokens)", "(current batch size: 512)", "maximum context length is 512". */
const STATED_LIMIT =
  /(?:batch size|context (?:size|length|window)|less than|token size)(?: \(|:? (?:is |of |only ){0,2})(\d{2,9})/i

/**
 * The documents, so short that each fits into what the engine said it can read, or into the model's context; undefined
 * when the query leaves no room. Tokens are counted by the high estimate.
 */
function cutToFit(
  documents: readonly string[],
  refusal: string,
  query: TokenEstimate,
  { contextLength, tokenizer }: Model,
): readonly string[] | undefined {
  const stated = Number(STATED_LIMIT.exec(refusal)?.[1] ?? contextLength)
  const room = Math.min(stated, contextLength) - query.charged - SPECIAL_TOKENS
  return room < 1 ? undefined : documents.map((text) => firstTokens(text, room, tokenizer))
}

/** Throws for a passage that does not fit into the model's context. */
function* requireFit(input: RankingInput, model: Model): SlicedWork<void> {
  const query = yield* tokensIn(input.query, model.tokenizer)
  for (const [index, document] of input.documents.entries()) {
    const tokens = query.likely + (yield* tokensIn(document, model.tokenizer)).likely
    yield
    if (tokens <= model.contextLength) continue
    throw new ApiError(
      'context_length_exceeded',
      `This model's maximum context length is ${model.contextLength} tokens, but the query and passage ${index} have about ${tokens}. Shorten the passage or send truncate: "END".`,
      { param: `passages[${index}].text` },
    )
  }
}

/** Throws for a query that leaves no room for a document. */
function requireShortQuery({ likely: tokens }: TokenEstimate, param: string, { contextLength }: Model): void {
  if (tokens <= contextLength) return
  throw new ApiError(
    'context_length_exceeded',
    `This model's maximum context length is ${contextLength} tokens, but the query has about ${tokens}. Shorten the query.`,
    { param },
  )
}

/** The model reads the query with every document: no more of a document than the limit, and no more than its context. */
function* inputTokens(input: RankingInput, query: TokenEstimate, model: Model): SlicedWork<TokenEstimate> {
  const { contextLength, tokenizer } = model
  const limit = input.maxTokensPerDocument ?? Infinity
  const documents = yield* tokensOfEach(input.documents, tokenizer)
  return sumOf(
    documents.map((document) => ({
      charged: Math.min(query.charged + Math.min(document.charged, limit), contextLength),
      likely: Math.min(query.likely + Math.min(document.likely, limit), contextLength),
    })),
  )
}
