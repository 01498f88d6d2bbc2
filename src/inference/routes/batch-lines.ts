import type { LineClient, LineEndpoints } from '../../batches/line-endpoints.ts'
import type { LineRequest } from '../../batches/lines.ts'
import type { Model } from '../../catalog/model.ts'
import { ApiError } from '../../shared/errors.ts'
import type { Caller } from '../../workspaces/workspace.ts'
import { needsThread, prepareOnce, prepareRequest } from './inference.ts'
import { jsonEndpoints, type InferenceParts, type JsonEndpoint } from './json-endpoints.ts'
import type { FindModel } from './prepare-in-thread.ts'
import { resolveFor } from './run-job.ts'

/** Images are delivered as links that expire, or as large texts: both do not suit files of results. */
const endpoints: ReadonlyMap<string, JsonEndpoint> = new Map(
  jsonEndpoints.flatMap((it) => (it.path === '/images/generations' ? [] : [[`/v1${it.path}`, it] as const])),
)

export interface BatchLineParts extends InferenceParts {
  /** Stores the price of lines of batches, if there is none yet. */
  priceBatchLines(model: Model, workspaceId: string): Promise<void>
}

/** How lines of batches become jobs: like requests to the same endpoint, except that there are no streams. */
export function batchLines(parts: BatchLineParts): LineEndpoints {
  function endpointOf({ url }: Pick<LineRequest, 'url'>, { rules }: Caller): JsonEndpoint {
    const endpoint = endpoints.get(url)
    if (!endpoint) throw new ApiError('invalid_value', `${url} cannot be called in a batch.`, { param: 'url' })
    if (rules?.allowsEndpoint(endpoint.path) === false) {
      throw new ApiError('key_not_allowed', `This API key may not be used on ${endpoint.path}.`)
    }
    return endpoint
  }

  function finder(endpoint: JsonEndpoint, caller: Caller): FindModel {
    return (name, isStream) => {
      if (isStream) {
        throw new ApiError('unsupported_value', "Lines of a batch cannot be streamed: leave out 'stream'.", {
          param: 'stream',
        })
      }
      return resolveFor(parts, { notes: {} }, endpoint, name, caller)
    }
  }

  return {
    urls: [...endpoints.keys()],
    async check(request, caller, client: LineClient) {
      const endpoint = endpointOf(request, caller)
      const { body } = request
      const given = { images: new Map(), isInThread: needsThread(body) }
      await prepareOnce(parts, endpoint, client, body, given, finder(endpoint, caller))
    },
    async jobOf(request, caller, client) {
      const endpoint = endpointOf(request, caller)
      const prepared = await prepareRequest(parts, endpoint, client, request.body, finder(endpoint, caller))
      await parts.priceBatchLines(prepared.model, caller.workspace.id).catch((cause: unknown) => {
        throw new ApiError('service_unavailable', 'The price of the line cannot be stored now.', { cause })
      })
      const job = endpoint.makeJob(prepared.result, prepared.model, prepared.deployment, parts, caller.workspace.id)
      return { ...job, tier: 'batch' }
    },
    errorBody(url, error, requestId) {
      return endpoints.get(url)?.errorShape?.body(error, requestId) ?? error.body()
    },
  }
}
