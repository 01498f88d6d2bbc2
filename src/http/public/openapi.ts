import type { TSchema } from 'typebox'
import { exportFormats } from '../../billing/usage-export.ts'
import { ownGroupings } from '../../billing/usage-report.ts'
import { categories, modes } from '../../core/catalog.ts'
import { errorTable, type ErrorCode } from '../../core/errors.ts'
import { audioFormSchema, audioResponseSchema } from '../../endpoints/audio/schema.ts'
import { chatRequestSchema, chatResponseSchema } from '../../endpoints/chat/schema.ts'
import { completionsRequestSchema, completionsResponseSchema } from '../../endpoints/completions/schema.ts'
import { embeddingsRequestSchema, embeddingsResponseSchema } from '../../endpoints/embeddings/schema.ts'
import { imagesRequestSchema, imagesResponseSchema } from '../../endpoints/images/schema.ts'
import {
  rerankingRequestSchema,
  rerankingResponseSchema,
  rerankRequestSchema,
  rerankResponseSchema,
} from '../../endpoints/rerank/schema.ts'
import { usageListSchema, usageRowSchema } from '../usage-schema.ts'
import { errorSchema, modelDetailSchema, modelListSchema, queueStatusSchema } from './wire-schemas.ts'

/** The public API as data: OpenAPI and the docs page are both made from this. */
export interface Operation {
  readonly method: 'get' | 'post'
  /** Below /api/v1. */
  readonly path: string
  readonly summary: string
  readonly description: string
  readonly parameters?: readonly Parameter[]
  readonly request?: TSchema
  /** The request is a form with a file, and no JSON. */
  readonly isForm?: boolean
  readonly response: TSchema
  readonly streams?: boolean
  /** What the answer may be besides JSON. */
  readonly otherTypes?: readonly string[]
  readonly errors: readonly ErrorCode[]
}

export interface Parameter {
  readonly name: string
  readonly in?: 'query' | 'path'
  readonly required?: boolean
  readonly description: string
  readonly values?: readonly string[]
}

const everywhere: readonly ErrorCode[] = [
  'missing_api_key',
  'invalid_api_key',
  'rate_limit_exceeded',
  'internal_error',
  'service_unavailable',
]
const inference: readonly ErrorCode[] = [
  'invalid_json',
  'missing_required_parameter',
  'invalid_type',
  'invalid_value',
  'unsupported_parameter',
  'unsupported_value',
  'unsupported_content',
  'wrong_endpoint',
  'context_length_exceeded',
  'token_budget_exceeded',
  'spend_limit_exceeded',
  'model_access_denied',
  'model_not_found',
  'request_timeout',
  'request_too_large',
  'unsupported_media_type',
  'queue_full',
  'upstream_error',
  'upstream_timeout',
  'model_overloaded',
  'model_not_configured',
  'service_unavailable',
]

const audioRules =
  'Every model takes file, model, and response_format json or text; language, prompt, temperature, timestamp_granularities and the other formats where its supported_parameters list them (response_format for srt, vtt and verbose_json). Speakers are not told apart. Billed by the length of the recording, which is measured before it is queued; admission charges 15 tokens for each second. A file over the limit (25 MiB unless the operator says otherwise) gets 413: split long recordings, preferably at silence.'
const audioShapes = {
  request: audioFormSchema,
  isForm: true,
  response: audioResponseSchema,
  otherTypes: ['text/plain', 'text/vtt'],
  errors: inference.filter((code) => code !== 'invalid_json'),
} satisfies Partial<Operation>

export const operations: readonly Operation[] = [
  {
    method: 'post',
    path: '/chat/completions',
    summary: 'Chat completion',
    description:
      'Answers a conversation. With stream: true the tokens come as server-sent events, ending in data: [DONE]. A busy model holds the request in its queue with the connection open and silent; X-Queue-Wait-Ms tells how long it waited.',
    request: chatRequestSchema,
    response: chatResponseSchema,
    streams: true,
    errors: inference,
  },
  {
    method: 'post',
    path: '/completions',
    summary: 'Text completion (legacy)',
    description: 'Continues a text, or several. Chat completion is what current models are made for.',
    request: completionsRequestSchema,
    response: completionsResponseSchema,
    streams: true,
    errors: inference,
  },
  {
    method: 'post',
    path: '/embeddings',
    summary: 'Embeddings',
    description: 'A vector for each text, in the order of the input. base64 is little-endian float32.',
    request: embeddingsRequestSchema,
    response: embeddingsResponseSchema,
    errors: inference,
  },
  {
    method: 'post',
    path: '/rerank',
    summary: 'Rerank documents',
    description:
      'Orders documents by relevance to a query, best first, with scores from 0 to 1. For models whose endpoints say /rerank. Errors here carry a top-level message too.',
    request: rerankRequestSchema,
    response: rerankResponseSchema,
    errors: inference,
  },
  {
    method: 'post',
    path: '/reranking',
    summary: 'Rerank passages',
    description:
      'Orders passages by relevance to query.text, best first, with raw logits. For models whose endpoints say /reranking.',
    request: rerankingRequestSchema,
    response: rerankingResponseSchema,
    errors: inference,
  },
  {
    method: 'post',
    path: '/images/generations',
    summary: 'Generate images',
    description:
      'Makes images from a prompt, as base64 or, where the operator has set up file storage, as links that expire. Billed for each image delivered; an engine may make fewer than were asked for. In the queue each counts as 1000 tokens.',
    request: imagesRequestSchema,
    response: imagesResponseSchema,
    errors: inference,
  },
  {
    method: 'post',
    path: '/audio/transcriptions',
    summary: 'Transcription',
    description: `What was said in a recording, in the language it was said in. ${audioRules}`,
    ...audioShapes,
  },
  {
    method: 'post',
    path: '/audio/translations',
    summary: 'Translation of speech',
    description: `What was said in a recording, in English, whatever the spoken language. ${audioRules}`,
    ...audioShapes,
  },
  {
    method: 'get',
    path: '/models',
    summary: 'List models',
    description: 'The models this key can call now, with the prices that apply to its workspace.',
    parameters: [
      {
        name: 'scope',
        description: 'callable (default), or catalog for every model with its availability.',
        values: ['callable', 'catalog'],
      },
      { name: 'category', description: 'Only models of this category.', values: categories },
      { name: 'mode', description: 'Only models served in this mode.', values: modes },
      { name: 'supported_parameters', description: 'Comma list: only models that take all of them.' },
    ],
    response: modelListSchema,
    errors: ['invalid_value'],
  },
  {
    method: 'get',
    path: '/models/detail',
    summary: 'One model',
    description: 'A single model with its description, short ids and queue limits.',
    parameters: [{ name: 'slug', required: true, description: 'The slug or a short id.' }],
    response: modelDetailSchema,
    errors: ['missing_required_parameter', 'model_not_found'],
  },
  {
    method: 'get',
    path: '/models/{slug}',
    summary: 'One model, by its path',
    description: "The same for SDKs' retrieve(): /models/meta/x and /models/meta%2Fx both name meta/x.",
    parameters: [{ name: 'slug', in: 'path', required: true, description: 'The slug or a short id.' }],
    response: modelDetailSchema,
    errors: ['model_not_found'],
  },
  {
    method: 'get',
    path: '/queue/status',
    summary: 'Queue status',
    description: 'How busy the models of this workspace are. Never queued itself.',
    response: queueStatusSchema,
    errors: [],
  },
  {
    method: 'get',
    path: '/usage',
    summary: 'Usage',
    description:
      'What the keys of this workspace used and what it cost, row by row or summed up. Dates are days in Sydney. With format=csv or jsonl the rows come as one file.',
    parameters: [
      { name: 'from', description: 'A date such as 2026-11-01, or a time such as 2026-11-01T00:00:00Z.' },
      { name: 'to', description: 'A date, which is included, or a time, which is not.' },
      { name: 'group_by', description: 'Sums instead of rows.', values: ownGroupings },
      { name: 'limit', description: 'How many on a page: 1 to 10000, by default 100.' },
      { name: 'after', description: "The 'next' of the page before." },
      { name: 'model', description: 'Only rows of this model.' },
      { name: 'price_versions', description: 'Comma list: only rows at these price versions.' },
      { name: 'credit_note', description: 'Only rows of this adjustment note.' },
      { name: 'format', description: 'json (default), or rows as a file.', values: ['json', ...exportFormats] },
    ],
    response: usageListSchema,
    errors: ['invalid_value'],
  },
  {
    method: 'get',
    path: '/usage/{request_id}',
    summary: 'Usage of one request',
    description: 'One row, by the X-Request-Id of its response.',
    parameters: [{ name: 'request_id', in: 'path', required: true, description: 'The X-Request-Id of a response.' }],
    response: usageRowSchema,
    errors: ['not_found'],
  },
]

const rateHeaders = {
  'X-RateLimit-Limit': { description: 'Requests permitted per minute.', schema: { type: 'integer' } },
  'X-RateLimit-Remaining': { description: 'Requests left in the current window.', schema: { type: 'integer' } },
  'X-RateLimit-Reset': { description: 'When the window resets, in Unix seconds.', schema: { type: 'integer' } },
  'X-Request-Id': { description: 'Names the request in logs and in the ledger.', schema: { type: 'string' } },
}

export function openApiDocument(): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const operation of operations) {
    paths[operation.path] = { ...paths[operation.path], [operation.method]: toOperation(operation) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Weir',
      version: '1',
      description: 'One HTTP API in front of a catalog of open-weight models. Prices are in AUD, excluding GST.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/api/v1' }],
    security: [{ key: [] }],
    paths,
    components: {
      securitySchemes: { key: { type: 'http', scheme: 'bearer' } },
      schemas: { Error: errorSchema },
    },
  }
}

function toOperation(operation: Operation): object {
  const inferenceHeaders = operation.request
    ? { 'X-Queue-Wait-Ms': { description: 'Milliseconds in the queue.', schema: { type: 'integer' } } }
    : {}
  return {
    summary: operation.summary,
    description: operation.description,
    operationId: operation.path.slice(1).replaceAll(/[^a-z]+(\w?)/g, (_match, letter: string) => letter.toUpperCase()),
    ...(operation.parameters ? { parameters: operation.parameters.map(toParameter) } : {}),
    ...(operation.request
      ? { requestBody: { required: true, content: { [requestType(operation)]: { schema: operation.request } } } }
      : {}),
    responses: {
      200: {
        description: operation.summary,
        headers: { ...rateHeaders, ...inferenceHeaders },
        content: {
          'application/json': { schema: operation.response },
          ...Object.fromEntries(otherTypes(operation).map((type) => [type, { schema: { type: 'string' } }])),
        },
      },
      ...errorResponses([...operation.errors, ...everywhere]),
    },
  }
}

function requestType(operation: Operation): string {
  return operation.isForm ? 'multipart/form-data' : 'application/json'
}

function otherTypes(operation: Operation): readonly string[] {
  return operation.streams ? ['text/event-stream'] : (operation.otherTypes ?? [])
}

function toParameter(parameter: Parameter): object {
  const { name, in: place = 'query', required = false, description, values } = parameter
  return { name, in: place, required, description, schema: { type: 'string', ...(values ? { enum: values } : {}) } }
}

function errorResponses(codes: readonly ErrorCode[]): Record<number, object> {
  const byStatus = Map.groupBy(new Set(codes), (code) => errorTable[code].status)
  return Object.fromEntries(
    [...byStatus].map(([status, group]) => [
      status,
      {
        description: group.join(', '),
        headers: {
          ...rateHeaders,
          ...(group.some((code) => errorTable[code].retryAfter !== null)
            ? { 'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer' } } }
            : {}),
        },
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    ]),
  )
}
