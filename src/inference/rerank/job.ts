import type { Deployment, Model } from '../../catalog/model.ts'
import { ApiError } from '../../shared/errors.ts'
import { expectedCount, USUAL_PAIR_TEMPLATE_TOKENS, inputBounds, type InputSize } from '../metering/usage-bounds.ts'
import type { EngineRequest, Job } from '../../engines/job.ts'
import type { JsonBody } from '../../shared/json/json-body.ts'
import { requireValid } from '../../shared/json/schema-check.ts'
import { requireBudget } from '../metering/token-budget.ts'
import { firstTokens, sumOf, textTokens, type TokenEstimate } from '../../shared/tokens/token-estimate.ts'
import type { RankingDialect, RankingInput } from '../../engines/dialects/dialect.ts'
import { bytesIn, inBatches, jsonBodies, jsonRequest, operationOf } from '../request/engine-operation.ts'
import { tierOf } from '../request/parameters.ts'
import type { PreparedRequest } from '../request/prepared-request.ts'
import { rankingAnswer, renderRerank, renderReranking } from './answer.ts'
import { rerankingRequestSchema, rerankRequestSchema, type RerankingRequest, type RerankRequest } from './schema.ts'

/** The names of an endpoint's parameters. */
interface RankingNames {
  readonly endpoint: '/rerank' | '/reranking'
  readonly query: string
  readonly documents: string
}

/** What the job of a ranking needs besides its terms and its bodies. */
interface RankingPlan {
  readonly names: RankingNames
  readonly path: string
  /** With the documents as sent to the engine. */
  readonly input: RankingInput
  readonly query: TokenEstimate
  readonly top: number | undefined
  /** The documents to return with their scores. */
  readonly returned: readonly string[] | undefined
}

/** POST /rerank, Cohere's schema. Documents that are too long are truncated. */
export function prepareRerank(body: JsonBody, model: Model, deployment: Deployment): PreparedRequest<RankingPlan> {
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
  return prepareRanking({ endpoint: '/rerank', query: 'query', documents: 'documents' }, input, model, deployment, {
    tier: tierOf(request.service_tier, model),
    top: request.top_n ?? undefined,
    returned: request.return_documents ? documents : undefined,
  })
}

/** POST /reranking, NVIDIA's schema. Passages that are too long are refused, or truncated with truncate: "END". */
export function prepareReranking(body: JsonBody, model: Model, deployment: Deployment): PreparedRequest<RankingPlan> {
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
  const names: RankingNames = { endpoint: '/reranking', query: 'query.text', documents: 'passages' }
  return prepareRanking(names, input, model, deployment, {
    tier: tierOf(request.service_tier, model),
    top: request.top_n ?? undefined,
    returned: undefined,
  })
}

function prepareRanking(
  names: RankingNames,
  given: RankingInput,
  model: Model,
  deployment: Deployment,
  { tier, ...answer }: Pick<RankingPlan, 'top' | 'returned'> & Pick<Job, 'tier'>,
): PreparedRequest<RankingPlan> {
  const dialect = operationOf(model, deployment, 'ranking')
  // Checked before the calls are built, because each of them repeats the query.
  const query = textTokens(given.query, model.tokenizer)
  requireShortQuery(query, names.query, model)
  const tokens = inputTokens(given, query, model)
  requireBudget({ model, deployment, cost: tokens.charged, maxTokens: 0 })
  const input = { ...given, documents: documentsFor(dialect, given, model) }
  const batches = inBatches(input.documents, dialect.batchSize)
  const { path, bodies } = jsonBodies(batches.map((documents) => dialect.request({ ...input, documents })))
  return {
    terms: {
      tier,
      cost: tokens.charged,
      maxTokens: 0,
      ...inputBounds(sizeOf(given, bodies), model.contextLength),
      likelyInputTokens: tokens.likely,
      expectedInput: expectedCount(tokens, given.documents.length, USUAL_PAIR_TEMPLATE_TOKENS),
    },
    bodies,
    plan: { names, path, input, query, ...answer },
  }
}

/** For both endpoints. */
export function rankingJob(
  { terms, bodies, plan }: PreparedRequest<RankingPlan>,
  model: Model,
  deployment: Deployment,
): Job {
  const { names, path, input, query, top, returned } = plan
  const dialect = operationOf(model, deployment, 'ranking')
  const batches = inBatches(input.documents, dialect.batchSize)
  return {
    ...terms,
    endpoint: names.endpoint,
    model,
    deployment,
    calls: bodies.map((body, index) => ({
      ...jsonRequest(path, body, names.documents),
      fallback: fallbackOf(dialect, { ...input, documents: batches[index] ?? [] }, names.documents, query, model),
    })),
    answer: rankingAnswer(
      dialect,
      batches.map(({ length }) => length),
      deployment.engine?.scores,
      names.endpoint === '/rerank' ? renderRerank(top, returned) : renderReranking(top),
    ),
  }
}

/** A call contains the query once, but the model reads it with every document. */
function sizeOf({ query, documents }: RankingInput, bodies: readonly Buffer[]): InputSize {
  const repeated = Buffer.byteLength(query) * (documents.length - bodies.length)
  return { bytes: bytesIn(bodies) + repeated, contexts: documents.length }
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

/** Another call after the engine refused one. */
function fallbackOf(
  dialect: RankingDialect,
  input: RankingInput,
  inputName: string,
  query: TokenEstimate,
  model: Model,
): NonNullable<EngineRequest['fallback']> {
  return ({ code, message }) => {
    let other = dialect.fallback?.(input, message)
    if (!other && code === 'context_length_exceeded' && input.truncate) {
      const documents = cutToFit(input.documents, message, query, model)
      other = documents && dialect.request({ ...input, documents })
    }
    return other && jsonRequest(other.path, Buffer.from(JSON.stringify(other.body)), inputName)
  }
}

/** The special tokens that an engine adds around a query and a document. */
const SPECIAL_TOKENS = 8
/** "… context size (512 tokens)", "(current batch size: 512)", "maximum context length is 512". */
const STATED_LIMIT =
  /(?:batch size|context (?:size|length|window)|less than|token size)(?: \(|:? (?:is |of |only ){0,2})(\d{2,9})/i

/**
 * The documents, truncated so that each fits into the limit that the engine reported, or into the model's context;
 * undefined if the query leaves no room. Tokens are counted by the high estimate.
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
function inputTokens(input: RankingInput, query: TokenEstimate, model: Model): TokenEstimate {
  const { contextLength, tokenizer } = model
  const limit = input.maxTokensPerDocument ?? Infinity
  const documents = input.documents.map((text) => textTokens(text, tokenizer))
  return sumOf(
    documents.map((document) => ({
      charged: Math.min(query.charged + Math.min(document.charged, limit), contextLength),
      likely: Math.min(query.likely + Math.min(document.likely, limit), contextLength),
    })),
  )
}
