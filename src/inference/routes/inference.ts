import { ApiError } from '../../shared/errors.ts'
import type { Job } from '../../engines/job.ts'
import type { Caller } from '../../workspaces/workspace.ts'
import { readJson } from '../../server/body.ts'
import { textSchema } from '../../server/common-schema.ts'
import type { Exchange } from '../../server/exchange.ts'
import { jsonEndpoints, type InferenceParts, type JsonEndpoint } from './json-endpoints.ts'
import { belowV1, keyRoute, type KeyRoute } from '../../server/key-route.ts'
import type { FindModel } from './prepare-in-thread.ts'
import { prepareRequest } from './prepare-request.ts'
import { inferenceErrors, leftOutHeaders, queueHeaders, resolveFor, runJob } from './run-job.ts'

/** The inference endpoints that take JSON: body → model → endpoint check → job → pipeline. */

export function inferenceRoutes(parts: InferenceParts): readonly KeyRoute[] {
  return jsonEndpoints.flatMap((endpoint) => {
    const { path, id, summary, description, request, response, example, errorShape } = endpoint
    const route = keyRoute({
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
  const job = endpoint.makeJob(result, model, deployment, parts)
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
