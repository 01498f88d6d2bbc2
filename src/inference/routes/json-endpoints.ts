import type { TObject, TSchema } from 'typebox'
import type { Deployment, Model } from '../../catalog/model.ts'
import type { ApiError } from '../../shared/errors.ts'
import type { AnswerHead, Job } from '../../engines/job.ts'
import type { JsonBody } from '../../shared/json/json-body.ts'
import { chatJob, prepareChat } from '../chat/job.ts'
import { chatExample, chatRequestSchema, chatResponseSchema } from '../chat/schema.ts'
import { completionsJob, prepareCompletions } from '../completions/job.ts'
import { completionsExample, completionsRequestSchema, completionsResponseSchema } from '../completions/schema.ts'
import { embeddingsJob, prepareEmbeddings } from '../embeddings/job.ts'
import { embeddingsExample, embeddingsRequestSchema, embeddingsResponseSchema } from '../embeddings/schema.ts'
import { imagesJob, prepareImages } from '../images/job.ts'
import { imagesExample, imagesRequestSchema, imagesResponseSchema } from '../images/schema.ts'
import { messagesError } from '../messages/errors.ts'
import { messagesJob, prepareMessages } from '../messages/job.ts'
import {
  messagesErrorSchema,
  messagesExample,
  messagesRequestSchema,
  messagesResponseSchema,
} from '../messages/schema.ts'
import { responsesError } from '../responses/errors.ts'
import { responsesJob, prepareResponses } from '../responses/job.ts'
import { responsesExample, responsesRequestSchema, responsesResponseSchema } from '../responses/schema.ts'
import { refusedStream } from '../responses/stream.ts'
import { prepareRerank, prepareReranking, rankingJob } from '../rerank/job.ts'
import {
  rerankExample,
  rerankingExample,
  rerankingRequestSchema,
  rerankingResponseSchema,
  rerankRequestSchema,
  rerankResponseSchema,
} from '../rerank/schema.ts'
import type { PreparedRequest, RemoteImage, RequestFacts, MissingInput } from '../request/prepared-request.ts'
import type { FileStore } from '../../server/files/files.ts'
import type { ErrorShape } from '../../server/route.ts'
import type { InferenceEndpoint, JobParts } from './run-job.ts'

/** The inference endpoints that take JSON, as data. */

export interface InferenceParts extends JobParts, Pick<RequestFacts, 'imageLimits' | 'changingLines'> {
  /** Fetches images from hosts that the operator allows, and returns data URLs in the same order. */
  readonly fetchImages: (images: readonly RemoteImage[]) => Promise<string[]>
  /** Stores images that callers want as links. undefined: links are not offered. */
  readonly files: FileStore | undefined
  readonly limits: { readonly maxBodyBytes: number }
}

export interface JsonEndpoint extends InferenceEndpoint {
  readonly id: string
  readonly summary: string
  readonly description: string
  readonly request: TObject
  readonly response: TSchema
  /** Whether it supports streaming: the answer is an event stream if the request has stream: true. */
  readonly example: { readonly request: object; readonly stream?: string }
  /** The format of errors, if the API has its own. */
  readonly errorShape?: ErrorShape
  /** Some clients require the path below /v1 as well. */
  readonly isAlsoBelowV1?: boolean
  /** A stream with the error for a refused streaming request, if clients expect it there; otherwise undefined. */
  readonly streamedRefusal?: (error: ApiError, head: AnswerHead) => string | undefined
  /** Checks a request and builds the bodies for its engine. Large ones are prepared in a thread of their own. */
  prepare(
    body: JsonBody,
    model: Model,
    deployment: Deployment,
    facts: RequestFacts,
  ): PreparedRequest<unknown> | MissingInput
  /** Makes the job from what this endpoint has prepared. Files of its answer belong to `owner`, a workspace. */
  makeJob(
    prepared: PreparedRequest<unknown>,
    model: Model,
    deployment: Deployment,
    parts: InferenceParts,
    owner: string,
  ): Job
}

/** The id of the endpoint that only counts. */
export const COUNT_TOKENS = 'countTokens'

export const jsonEndpoints: readonly JsonEndpoint[] = [
  {
    path: '/chat/completions',
    id: 'chatCompletions',
    summary: 'Chat completion',
    description:
      'Answers a conversation. With stream: true, the tokens arrive as server-sent events that end with data: [DONE]. While the model is busy, the request waits in its queue with the connection open and silent; X-Queue-Wait-Ms says how long it waited.',
    request: chatRequestSchema,
    response: chatResponseSchema,
    example: chatExample,
    prepare: prepareChat,
    makeJob: chatJob,
  },
  {
    path: '/responses',
    formOf: '/chat/completions',
    isAlsoBelowV1: true,
    id: 'responses',
    summary: 'Responses',
    description:
      'A chat in the form of the OpenAI Responses API, whole or streamed, which Codex uses. It is validated, queued, limited and billed like a chat completion. Nothing is stored: send the whole conversation as input. Custom tools become functions with one string; tools of other types are left out and named in X-Left-Out. A stream whose prompt is too long is answered with response.failed and the code context_length_exceeded. Also at /v1/responses.',
    request: responsesRequestSchema,
    response: responsesResponseSchema,
    example: responsesExample,
    errorShape: { body: (error) => responsesError(error).body() },
    streamedRefusal: (error, head) =>
      error.code === 'context_length_exceeded' ? refusedStream(head, error) : undefined,
    prepare: prepareResponses,
    makeJob: responsesJob,
  },
  {
    path: '/messages',
    formOf: '/chat/completions',
    isAlsoBelowV1: true,
    id: 'messages',
    summary: 'Messages, for clients of the Anthropic API',
    description:
      'A chat in the form of the Anthropic Messages API, whole or streamed. It is validated, queued, limited and billed like a chat completion. The key may also be in the header x-api-key; anthropic-version, anthropic-beta and ?beta=true are accepted and change nothing. Tools other than functions are left out and named in X-Left-Out. Errors have the shape of that API. Also at /v1/messages.',
    request: messagesRequestSchema,
    response: messagesResponseSchema,
    example: messagesExample,
    errorShape: { schema: messagesErrorSchema, body: messagesError },
    prepare: prepareMessages,
    makeJob: messagesJob,
  },
  {
    path: '/completions',
    // The older form of text completion has no category of its own.
    alsoServes: 'llm',
    id: 'completions',
    summary: 'Text completion (legacy)',
    description: 'Continues one or several texts. Current models are made for chat completion instead.',
    request: completionsRequestSchema,
    response: completionsResponseSchema,
    example: completionsExample,
    prepare: prepareCompletions,
    makeJob: completionsJob,
  },
  {
    path: '/embeddings',
    id: 'embeddings',
    summary: 'Embeddings',
    description: 'Returns one vector per text, in the order of the input. base64 is little-endian float32.',
    request: embeddingsRequestSchema,
    response: embeddingsResponseSchema,
    example: embeddingsExample,
    prepare: prepareEmbeddings,
    makeJob: embeddingsJob,
  },
  {
    path: '/rerank',
    id: 'rerank',
    summary: 'Rerank documents',
    description:
      'Sorts documents by relevance to a query, best first, with scores from 0 to 1. For models that list the endpoint /rerank. Errors carry their message at the top level, too.',
    request: rerankRequestSchema,
    response: rerankResponseSchema,
    example: rerankExample,
    // @ai-sdk/cohere reads only the message at the top level.
    errorShape: { body: (error) => ({ message: error.message, ...error.body() }) },
    prepare: prepareRerank,
    makeJob: rankingJob,
  },
  {
    path: '/reranking',
    id: 'reranking',
    summary: 'Rerank passages',
    description:
      'Sorts passages by relevance to query.text, best first, with raw logits. For models that list the endpoint /reranking.',
    request: rerankingRequestSchema,
    response: rerankingResponseSchema,
    example: rerankingExample,
    prepare: prepareReranking,
    makeJob: rankingJob,
  },
  {
    path: '/images/generations',
    id: 'imagesGenerations',
    summary: 'Generate images',
    description:
      'Makes images from a prompt. They are returned as base64, or as links that expire if the operator has set up file storage. Each delivered image is billed; an engine may make fewer than requested. In the queue, each image counts as 1000 tokens.',
    request: imagesRequestSchema,
    response: imagesResponseSchema,
    example: imagesExample,
    prepare: prepareImages,
    makeJob: imagesJob,
  },
]
