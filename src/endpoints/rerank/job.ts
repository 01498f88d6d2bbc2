import type { Deployment, Model } from '../../core/catalog.ts'
import type { ByteCollector } from '../../core/byte-collector.ts'
import { ApiError } from '../../core/errors.ts'
import type { AnswerHeaders, EngineRequest, Job, ReadAnswer } from '../../core/job.ts'
import { noUsage } from '../../core/money/rating.ts'
import { firstTokens, sumOf, textTokens, times, type TokenEstimate } from '../../core/token-estimate.ts'
import type { RankingDialect, RankingInput, RankingOutput, ScoreScale } from '../../dialects/dialect.ts'
import type { JsonBody } from '../../core/json/json-body.ts'
import { jsonRequest, operationOf, parsedJson, split, sum } from '../engine-operation.ts'
import { requireValid } from '../../core/parameter-errors.ts'
import { rankingRequestSchema, rerankRequestSchema, type RankingRequest, type RerankRequest } from './schema.ts'

/** The two schemas of reranking; a model takes exactly one of them. Scores leave as that schema defines them. */

interface Ranked {
  readonly index: number
  readonly probability: number
  readonly logit: number
}

/** POST /rerank: query and documents in, relevance from 0 to 1 out. */
export function rerankJob(body: JsonBody, model: Model, deployment: Deployment): Job {
  requireValid(rerankRequestSchema, body.value)
  const request = body.value as RerankRequest
  const documents = request.documents.map((it) => (typeof it === 'string' ? it : it.text))
  const input: RankingInput = {
    model: deployment.engine?.model ?? model.id,
    query: request.query,
    documents,
    // Documents that are too long are cut, as this schema always did.
    truncate: true,
    maxTokensPerDocument: request.max_tokens_per_doc ?? undefined,
  }
  return rankJob('/rerank', input, model, deployment, request.top_n ?? undefined, (ranked, id, inputTokens) => ({
    id: `rerank-${id}`,
    model: model.id,
    results: ranked.map(({ index, probability }) => ({
      index,
      relevance_score: probability,
      ...(request.return_documents ? { document: { text: documents[index] } } : {}),
    })),
    meta: { api_version: { version: '1' }, billed_units: { search_units: 1 } },
    usage: { prompt_tokens: inputTokens, total_tokens: inputTokens },
  }))
}

/** POST /reranking: query.text and passages in, raw logits out. */
export function rankingJob(body: JsonBody, model: Model, deployment: Deployment): Job {
  requireValid(rankingRequestSchema, body.value)
  const request = body.value as RankingRequest
  const input: RankingInput = {
    model: deployment.engine?.model ?? model.id,
    query: request.query.text,
    documents: request.passages.map(({ text }) => text),
    truncate: request.truncate === 'END',
    maxTokensPerDocument: undefined,
  }
  if (!input.truncate) requireRoom(input, model)
  return rankJob('/reranking', input, model, deployment, request.top_n ?? undefined, (ranked, _id, inputTokens) => ({
    rankings: ranked.map(({ index, logit }) => ({ index, logit })),
    usage: { prompt_tokens: inputTokens, total_tokens: inputTokens },
  }))
}

function rankJob(
  endpoint: string,
  input: RankingInput,
  model: Model,
  deployment: Deployment,
  top: number | undefined,
  render: (ranked: readonly Ranked[], id: string, inputTokens: number) => object,
): Job {
  const dialect = operationOf(model, deployment, 'ranking')
  const batches = split(documentsFor(dialect, input, model), dialect.batchSize)
  const tokens = tokensOf(input, model)
  return {
    endpoint,
    model,
    deployment,
    cost: tokens.charged,
    maxTokens: 0,
    likelyInputTokens: tokens.likely,
    calls: batches.map((documents) =>
      engineCall(dialect, { ...input, documents }, endpoint === '/rerank' ? 'documents' : 'passages'),
    ),
    answer: {
      kind: 'whole',
      read(bodies, head, headers): ReadAnswer | undefined {
        const output = joinedScores(dialect, bodies, headers, batches)
        const ranked = output && rank(output.scores, deployment.engine?.scores ?? scaleOf(output, dialect))
        if (!ranked) return undefined
        const { inputTokens } = output
        return {
          usage: inputTokens === undefined ? undefined : { ...noUsage, inputTokens },
          outputBytes: () => 0,
          render: ({ inputTokens }) => JSON.stringify(render(ranked.slice(0, top), head.id, inputTokens)),
        }
      },
    },
  }
}

/** Where the engine knows no limit for a document, Weir keeps to it: no document is left with more tokens than asked for. */
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
    instead({ message }) {
      const other = dialect.instead?.(input, message)
      return other && jsonRequest(other.path, Buffer.from(JSON.stringify(other.body)), inputName)
    },
  }
}

/** The scores of all calls, by the places of all documents; undefined where one was not scored exactly once. */
function joinedScores(
  dialect: RankingDialect,
  bodies: readonly ByteCollector[],
  headers: readonly AnswerHeaders[],
  batches: readonly (readonly string[])[],
): RankingOutput | undefined {
  const scores: { index: number; score: number }[] = []
  let inputTokens: number | undefined = 0
  let scale: ScoreScale | undefined
  for (const [position, documents] of batches.entries()) {
    const body = bodies[position]
    const output = body && dialect.response(parsedJson(body.whole()), headers[position] ?? {})
    if (!output || !coversAll(output.scores, documents.length)) return undefined
    const before = position * dialect.batchSize
    for (const { index, score } of output.scores) scores.push({ index: before + index, score })
    inputTokens = sum(inputTokens, output.inputTokens)
    scale ??= output.scale
  }
  return { scores, inputTokens, ...(scale ? { scale } : {}) }
}

/**
 * A server gives what its model does, and not every model ends in probabilities: a score beyond ±1 is no
 * probability and no cosine either. Cut to 0 and 1, logits would be in no order at all.
 */
function scaleOf({ scores, scale }: RankingOutput, dialect: RankingDialect): ScoreScale {
  const told = scale ?? dialect.scale
  return told === 'probability' && scores.some(({ score }) => Math.abs(score) > 1) ? 'logit' : told
}

function coversAll(scores: RankingOutput['scores'], count: number): boolean {
  const seen = new Set(scores.map(({ index }) => index))
  return seen.size === count && scores.length === count && scores.every(({ index }) => index < count)
}

/** Best first, both scales known. */
function rank(scores: RankingOutput['scores'], scale: ScoreScale): readonly Ranked[] {
  const ranked = scores.map(({ index, score }) => {
    const probability = scale === 'probability' ? clamp(score) : 1 / (1 + Math.exp(-score))
    // A probability of exactly 0 or 1 has no finite logit; JSON has no infinity.
    const logit = scale === 'logit' ? score : Math.log(within(probability) / (1 - within(probability)))
    return { index, probability, logit }
  })
  return ranked.toSorted((one, other) => other.logit - one.logit || one.index - other.index)
}

function clamp(score: number): number {
  return Math.min(1, Math.max(0, score))
}

function within(probability: number): number {
  return Math.min(1 - 1e-15, Math.max(1e-15, probability))
}

/** With truncate NONE, a passage that cannot fit is refused and not cut. */
function requireRoom(input: RankingInput, model: Model): void {
  const query = textTokens(input.query, model.tokenizer)
  for (const [index, document] of input.documents.entries()) {
    const tokens = query.likely + textTokens(document, model.tokenizer).likely
    if (tokens <= model.contextLength) continue
    throw new ApiError(
      'context_length_exceeded',
      `This model's maximum context length is ${model.contextLength} tokens, but the query and passage ${index} come to about ${tokens}. Shorten the passage or send truncate: "END".`,
      { param: `passages[${index}].text` },
    )
  }
}

/** The query is read once for each document, and of a document no more than the limit. */
function tokensOf(input: RankingInput, model: Model): TokenEstimate {
  const most = input.maxTokensPerDocument ?? Infinity
  const documents = input.documents.map((text) => {
    const { charged, likely } = textTokens(text, model.tokenizer)
    return { charged: Math.min(charged, most), likely: Math.min(likely, most) }
  })
  return sumOf([...documents, times(textTokens(input.query, model.tokenizer), documents.length)])
}
