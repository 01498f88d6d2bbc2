import { randomUUID } from 'node:crypto'
import { parameterError } from '../runtime/host-error.ts'
import type { ScoreRequest, Scores } from '../runtime/engine-model.ts'
import { isJsonObject, type JsonObject } from '../runtime/json-value.ts'
import { readRequestJson } from './body.ts'
import { optionalInteger, optionalObject, optionalString, required, requiredArray, requiredString } from './fields.ts'
import { abilityOf, type HostCall } from './host-call.ts'
import { sendJson } from './reply.ts'

/** POST /v1/rerank: query and documents in, scores from 0 to 1 out. */
export async function rerank(call: HostCall): Promise<void> {
  const body = await readRequestJson(call.request)
  const documents = requiredArray(body, 'documents')
  if (!documents.every((it) => typeof it === 'string')) throw parameterError('invalid_type', 'documents', 'strings')
  const maxTokensPerDocument = optionalInteger(body, 'max_tokens_per_doc', 1, Number.MAX_SAFE_INTEGER)
  const scores = await score(call, body, {
    query: requiredString(body, 'query'),
    documents,
    truncate: true,
    ...(maxTokensPerDocument === undefined ? {} : { maxTokensPerDocument }),
  })
  sendJson(call.response, 200, {
    id: `rerank-${randomUUID()}`,
    model: requiredString(body, 'model'),
    results: ranked(scores).map(({ index, logit }) => ({ index, relevance_score: 1 / (1 + Math.exp(-logit)) })),
    usage: usageOf(scores),
  })
}

/** POST /v1/ranking: query.text and passages in, raw logits out. */
export async function ranking(call: HostCall): Promise<void> {
  const body = await readRequestJson(call.request)
  const query = requiredString(required(optionalObject(body, 'query'), 'query'), 'text')
  const documents = requiredArray(body, 'passages').map((passage) => {
    if (isJsonObject(passage)) return requiredString(passage, 'text')
    throw parameterError('invalid_type', 'passages', "objects with 'text'")
  })
  const truncate = optionalString(body, 'truncate') ?? 'NONE'
  if (truncate !== 'NONE' && truncate !== 'END') throw parameterError('invalid_value', 'truncate', 'NONE or END')
  const scores = await score(call, body, { query, documents, truncate: truncate === 'END' })
  sendJson(call.response, 200, { rankings: ranked(scores), usage: usageOf(scores) })
}

async function score({ models, signal }: HostCall, body: JsonObject, request: ScoreRequest): Promise<Scores> {
  const slug = requiredString(body, 'model')
  if (request.documents.length === 0) throw parameterError('invalid_value', 'documents', 'at least one')
  return models.use(slug, (model) => abilityOf(model, 'score', slug)(request, signal))
}

function ranked({ logits }: Scores): { readonly index: number; readonly logit: number }[] {
  return logits
    .map((logit, index) => ({ index, logit }))
    .sort((one, other) => other.logit - one.logit || one.index - other.index)
}

function usageOf({ promptTokens }: Scores): object {
  return { prompt_tokens: promptTokens, total_tokens: promptTokens }
}
