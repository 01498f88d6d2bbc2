import { randomUUID } from 'node:crypto'
import { EngineError, invalidValue } from '../runtime/engine-model.ts'
import type { ScoreRequest, Scores } from '../runtime/engine-model.ts'
import { readJson } from './body.ts'
import { ability } from './exchange.ts'
import type { Exchange } from './exchange.ts'
import { isObject, optionalBoolean, optionalInteger, optionalObject, optionalString } from './fields.ts'
import { required, requiredArray, requiredString } from './fields.ts'
import type { Fields } from './fields.ts'
import { sendJson } from './reply.ts'

/** POST /v1/rerank: query + documents, scores squeezed into 0–1. */
export async function rerank(exchange: Exchange): Promise<void> {
  const body = await readJson(exchange.request)
  const query = requiredString(body, 'query')
  const documents = requiredArray(body, 'documents').map((document, index) => readText(document, `documents[${index}]`))
  const maxTokensPerDocument = optionalInteger(body, 'max_tokens_per_doc', 1, Number.MAX_SAFE_INTEGER)
  const scores = await score(exchange, body, {
    query,
    documents,
    truncate: true,
    ...(maxTokensPerDocument === undefined ? {} : { maxTokensPerDocument }),
  })
  const withDocuments = optionalBoolean(body, 'return_documents') ?? false
  const results = ranked(scores, body).map(({ index, logit }) => {
    const result = { index, relevance_score: 1 / (1 + Math.exp(-logit)) }
    return withDocuments ? Object.assign(result, { document: { text: documents[index] } }) : result
  })
  sendJson(exchange.response, 200, {
    id: `rerank-${randomUUID()}`,
    model: requiredString(body, 'model'),
    results,
    usage: { prompt_tokens: scores.promptTokens, total_tokens: scores.promptTokens },
  })
}

/** POST /v1/ranking: query.text + passages, raw logits. */
export async function ranking(exchange: Exchange): Promise<void> {
  const body = await readJson(exchange.request)
  const query = requiredString(required(optionalObject(body, 'query'), 'query'), 'text')
  const documents = requiredArray(body, 'passages').map((passage, index) => readText(passage, `passages[${index}]`))
  const truncate = optionalString(body, 'truncate') ?? 'NONE'
  if (truncate !== 'NONE' && truncate !== 'END') throw invalidValue('truncate', "'truncate' must be NONE or END.")
  const scores = await score(exchange, body, { query, documents, truncate: truncate === 'END' })
  sendJson(exchange.response, 200, {
    rankings: ranked(scores, body),
    usage: { prompt_tokens: scores.promptTokens, total_tokens: scores.promptTokens },
  })
}

async function score({ models, signal }: Exchange, body: Fields, request: ScoreRequest): Promise<Scores> {
  const slug = requiredString(body, 'model')
  if (request.documents.length === 0) throw invalidValue('documents', 'There is nothing to rank.')
  return models.use(slug, (model) => ability(model, 'score', slug)(request, signal))
}

function readText(document: unknown, param: string): string {
  if (typeof document === 'string') return document
  if (isObject(document)) return requiredString(document, 'text')
  throw new EngineError(400, 'invalid_type', `'${param}' must be a string or an object with 'text'.`, param)
}

function ranked(scores: Scores, body: Fields): { index: number; logit: number }[] {
  const topN = optionalInteger(body, 'top_n', 1, Number.MAX_SAFE_INTEGER)
  return scores.logits
    .map((logit, index) => ({ index, logit }))
    .sort((a, b) => b.logit - a.logit || a.index - b.index)
    .slice(0, topN)
}
