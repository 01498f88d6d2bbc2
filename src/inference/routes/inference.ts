import { ApiError } from '../../shared/errors.ts'
import type { Job } from '../../engines/job.ts'
import type { Caller } from '../../workspaces/workspace.ts'
import { readJson, parsedObject } from '../../server/body.ts'
import { textSchema } from '../../server/common-schema.ts'
import type { Exchange } from '../../server/exchange.ts'
import { jsonEndpoints, type InferenceParts, type JsonEndpoint } from './json-endpoints.ts'
import { jsonResponse } from '../../server/route.ts'
import { belowV1, keyRoute, type KeyRoute } from '../../server/key-route.ts'
import {
  type FindModel,
  prepareInThread,
  type Preparation,
  type Prepared,
  type RequestClient,
} from './prepare-in-thread.ts'
import { inferenceErrors, leftOutHeaders, queueHeaders, resolveFor, runJob } from './run-job.ts'
import { modelName } from '../request/parameters.ts'
import type { RequestFacts, MissingInput } from '../request/prepared-request.ts'

/** The inference endpoints that take JSON: body → model → endpoint check → job → pipeline. */

export function inferenceRoutes(parts: InferenceParts): readonly KeyRoute[] {
  return jsonEndpoints.flatMap((endpoint) => {
    const { path, id, summary, description, request, response, example, errorShape } = endpoint
    const route = keyRoute({
      method: 'POST',
      path,
      endpoint: path,
      id,
      summary,
      description,
      request: { contentType: 'application/json', schema: request, example: example.request },
      response: {
        status: 200,
        content: {
          ...jsonResponse(response).content,
          ...(example.stream ? { 'text/event-stream': { schema: textSchema, example: example.stream } } : {}),
        },
        headers: endpoint.formOf ? { ...queueHeaders, ...leftOutHeaders } : queueHeaders,
      },
      errors: inferenceErrors,
      errorShape,
      answer: async ({ exchange, caller }) => {
        const streamed: StreamedModel = { model: undefined }
        try {
          await runJob(parts, exchange, caller, await readJob(parts, endpoint, exchange, caller, streamed))
        } catch (error) {
          if (!refuseInStream(endpoint, exchange, error, streamed)) throw error
        }
      },
    })
    return endpoint.isAlsoBelowV1 ? [route, belowV1(route)] : [route]
  })
}

/** The model of a request for a stream, once it is known. */
interface StreamedModel {
  model: string | undefined
}

/** False if the refusal has to be an ordinary response. */
function refuseInStream(
  { streamedRefusal }: JsonEndpoint,
  exchange: Exchange,
  error: unknown,
  { model }: StreamedModel,
): boolean {
  if (!(error instanceof ApiError) || model === undefined || exchange.hasReplied) return false
  const head = { id: exchange.requestId, created: Math.floor(Date.now() / 1000), model }
  const events = streamedRefusal?.(error, head)
  if (events === undefined) return false
  exchange.refusal = error
  exchange.openStream({})
  exchange.end(Buffer.from(events).toString('latin1'))
  return true
}

/** A separate function, so that the request body is not retained while the job is queued, which may take minutes. */
async function readJob(
  parts: InferenceParts,
  endpoint: JsonEndpoint,
  exchange: Exchange,
  caller: Caller,
  streamed: StreamedModel,
): Promise<Job> {
  const bytes = await readJson(exchange, parts.limits.maxBodyBytes)
  const { length } = bytes
  const find: FindModel = (name, isStream) => {
    const found = resolveFor(parts, exchange, endpoint, name, caller)
    if (isStream) streamed.model = found.model.id
    return found
  }
  const { model, deployment, result } = await prepareRequest(parts, endpoint, exchange, bytes, find)
  const job = endpoint.makeJob(result, model, deployment, parts, caller.workspace.id)
  exchange.holdRequest(Math.max(length, bytesToSend(job)))
  return job
}

/** The parsed body is released before its job is queued. The bodies for the engine are kept. */
function bytesToSend({ calls }: Job): number {
  return calls.reduce(
    (sum, { body, repeatsInput }) => sum + (Buffer.isBuffer(body) && !repeatsInput ? body.length : 0),
    0,
  )
}

/**
 * Larger bodies are processed in a thread, so that no body delays other callers for more than 50 ms:
 * docs/decisions/2026-11-17-big-bodies.md has the figures.
 */
const MAX_BYTES_HERE = 524_288

export async function prepareRequest<Result extends object>(
  parts: InferenceParts,
  endpoint: Preparation<Result>,
  client: RequestClient,
  body: Buffer,
  find: FindModel,
): Promise<Prepared<Result>> {
  let bytes = body
  let images: RequestFacts['images'] = new Map()
  let isInThread = needsThread(bytes)
  for (;;) {
    const made = await prepareOnce(parts, endpoint, client, bytes, { images, isInThread }, find)
    const { result, ...destination } = made
    if (!('missing' in result)) return { ...destination, result }
    isInThread = true
    bytes = made.bytes ?? bytes
    if (result.missing !== 'thread') {
      const urls = await parts.fetchImages(result.missing)
      images = new Map(result.missing.map(({ url }, index) => [url, urls[index] ?? '']))
    }
  }
}

/** Whether a body is processed in the thread for large ones from the beginning. */
export const needsThread = (body: Buffer): boolean => body.length > MAX_BYTES_HERE

/** Prepares a request as far as that is possible with these images. */
export async function prepareOnce<Result extends object>(
  { imageLimits, changingLines, files }: InferenceParts,
  endpoint: Preparation<Result>,
  client: RequestClient,
  bytes: Buffer,
  given: Pick<RequestFacts, 'images' | 'isInThread'>,
  find: FindModel,
): Promise<Prepared<Result | MissingInput> & { readonly bytes?: Buffer | undefined }> {
  const facts: RequestFacts = { imageLimits, changingLines, offersLinks: files !== undefined, ...given }
  return given.isInThread
    ? prepareInThread(client, endpoint, bytes, facts, find)
    : prepareHere(client, endpoint, bytes, facts, find)
}

function prepareHere<Result>(
  client: RequestClient,
  endpoint: Preparation<Result>,
  bytes: Buffer,
  facts: RequestFacts,
  find: FindModel,
): Prepared<Result | MissingInput> {
  const body = parsedObject(client, bytes)
  const destination = find(modelName(body.value), body.value['stream'] === true)
  return { ...destination, result: endpoint.prepare(body, destination.model, destination.deployment, facts) }
}
