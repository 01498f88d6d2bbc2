import type { TObject, TSchema } from 'typebox'
import type { Deployment, Model } from '../../core/catalog.ts'
import { ApiError } from '../../core/errors.ts'
import type { Job } from '../../core/job.ts'
import type { JsonBody } from '../../core/json/json-body.ts'
import type { WaitingWork } from '../../core/sliced-work.ts'
import { invalidParameter } from '../../core/parameter-errors.ts'
import { chatJob } from '../../endpoints/chat/job.ts'
import type { ImageParts } from '../../endpoints/chat/messages.ts'
import { chatExample, chatRequestSchema, chatResponseSchema } from '../../endpoints/chat/schema.ts'
import { completionsJob } from '../../endpoints/completions/job.ts'
import {
  completionsExample,
  completionsRequestSchema,
  completionsResponseSchema,
} from '../../endpoints/completions/schema.ts'
import { embeddingsJob } from '../../endpoints/embeddings/job.ts'
import {
  embeddingsExample,
  embeddingsRequestSchema,
  embeddingsResponseSchema,
} from '../../endpoints/embeddings/schema.ts'
import { imagesJob } from '../../endpoints/images/job.ts'
import { imagesExample, imagesRequestSchema, imagesResponseSchema } from '../../endpoints/images/schema.ts'
import { rerankingJob, rerankJob } from '../../endpoints/rerank/job.ts'
import {
  rerankExample,
  rerankingExample,
  rerankingRequestSchema,
  rerankingResponseSchema,
  rerankRequestSchema,
  rerankResponseSchema,
} from '../../endpoints/rerank/schema.ts'
import type { Caller } from '../../ports/accounts.ts'
import type { FileStore } from '../../ports/files.ts'
import { parsedObject, readJson } from '../body.ts'
import type { Exchange } from '../exchange.ts'
import { inSlices } from '../slices.ts'
import { textSchema } from '../common-schema.ts'
import { keyRoute, type KeyRoute } from './key-route.ts'
import { inferenceErrors, queueHeaders, resolveFor, runJob, type InferenceEndpoint, type JobParts } from './run-job.ts'

/** The inference endpoints that take JSON: body → model → endpoint fits → job → pipeline. */

export interface InferenceParts extends JobParts, ImageParts {
  /** Keeps the images that callers ask for as links. undefined: links are not offered. */
  readonly files: FileStore | undefined
  readonly limits: { readonly maxBodyBytes: number }
}

/** Makes a job in slices, or at once if that never takes long. */
type MakeJob = (body: JsonBody, model: Model, deployment: Deployment, parts: InferenceParts) => WaitingWork<Job> | Job

interface JsonEndpoint extends InferenceEndpoint {
  readonly id: string
  readonly summary: string
  readonly description: string
  readonly request: TObject
  readonly response: TSchema
  /** With a stream: the answer is an event stream if the request says so. */
  readonly example: { readonly request: object; readonly answer: object; readonly stream?: string }
  readonly repeatsErrorMessage?: boolean
  readonly makeJob: MakeJob
}

const jsonEndpoints: readonly JsonEndpoint[] = [
  {
    path: '/chat/completions',
    id: 'chatCompletions',
    summary: 'Chat completion',
    description:
      'Answers a conversation. With stream: true, the tokens arrive as server-sent events that end with data: [DONE]. While the model is busy, the request waits in its queue with the connection open and silent; X-Queue-Wait-Ms says how long it waited.',
    request: chatRequestSchema,
    response: chatResponseSchema,
    example: chatExample,
    makeJob: chatJob,
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
    // @ai-sdk/cohere reads only that one.
    repeatsErrorMessage: true,
    makeJob: rerankJob,
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
    makeJob: rerankingJob,
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
    makeJob: imagesJob,
  },
]

export function inferenceRoutes(parts: InferenceParts): readonly KeyRoute[] {
  return jsonEndpoints.map((endpoint) => {
    const { path, id, summary, description, request, response, example, repeatsErrorMessage = false } = endpoint
    return keyRoute({
      method: 'POST',
      path,
      id,
      summary,
      description,
      request: { contentType: 'application/json', schema: request, example: example.request },
      response: {
        status: 200,
        content: {
          'application/json': { schema: response, example: example.answer },
          ...(example.stream ? { 'text/event-stream': { schema: textSchema, example: example.stream } } : {}),
        },
        headers: queueHeaders,
      },
      errors: inferenceErrors,
      repeatsErrorMessage,
      answer: async ({ exchange, caller }) => {
        await runJob(parts, exchange, caller, await readJob(parts, endpoint, exchange, caller))
      },
    })
  })
}

/** A separate function, so that the request body is not retained while the job waits, which may take minutes. */
async function readJob(
  parts: InferenceParts,
  endpoint: JsonEndpoint,
  exchange: Exchange,
  caller: Caller,
): Promise<Job> {
  const bytes = await readJson(exchange, parts.limits.maxBodyBytes)
  return inSlices(exchange, jobFrom(parts, endpoint, exchange, caller, bytes))
}

function* jobFrom(
  parts: InferenceParts,
  endpoint: JsonEndpoint,
  exchange: Exchange,
  caller: Caller,
  bytes: Buffer,
): WaitingWork<Job> {
  const body = yield* parsedObject(exchange, bytes)
  const { model, deployment } = resolveFor(parts, endpoint, modelName(body.value), caller)
  const made = endpoint.makeJob(body, model, deployment, parts)
  const job = 'next' in made ? yield* made : made
  exchange.holdRequest(Math.max(bytes.length, bytesToSend(job)))
  return job
}

/** The parsed body is gone when its job waits and runs. What the job sends to the engine stays. */
function bytesToSend({ calls }: Job): number {
  return calls.reduce(
    (sum, { body, repeatsInput }) => sum + (Buffer.isBuffer(body) && !repeatsInput ? body.length : 0),
    0,
  )
}

function modelName(body: Readonly<Record<string, unknown>>): string {
  const { model } = body
  if (model === undefined || model === null) {
    throw new ApiError('missing_required_parameter', "Missing required parameter: 'model', the slug of a model.", {
      param: 'model',
    })
  }
  if (typeof model !== 'string') throw invalidParameter('invalid_type', 'model', 'a string, the slug of a model')
  return model
}
