import assert from 'node:assert/strict'
import type { Deployment, Model } from '../../src/catalog/model.ts'
import type { Job } from '../../src/engines/job.ts'
import { HEADROOM, parseJsonObject, scanJson, type JsonBody } from '../../src/shared/json/json-body.ts'
import type { RequestFacts } from '../../src/inference/request/prepared-request.ts'
import { jsonEndpoints, type InferenceParts } from '../../src/inference/routes/json-endpoints.ts'

/** A body as the endpoints get it. */
export function parsedBody(text: string): JsonBody {
  const bytes = Buffer.concat([Buffer.alloc(HEADROOM), Buffer.from(text)])
  return parseJsonObject(bytes, scanJson(bytes))
}

/** A service without remote images, links and changing lines. */
export const plainFacts: RequestFacts = {
  imageLimits: { maxBytes: 20_000_000, maxSidePx: 10_000 },
  changingLines: [],
  images: new Map(),
  offersLinks: false,
  isInThread: false,
}

/** The job of a request to an endpoint. Rejects if the request is refused. */
export async function madeJob(path: string, body: JsonBody, model: Model, deployment: Deployment): Promise<Job> {
  const endpoint = jsonEndpoints.find((it) => it.path === path) ?? assert.fail(path)
  const prepared = endpoint.prepare(body, model, deployment, plainFacts)
  assert.ok(!('missing' in prepared), 'nothing has to be fetched')
  return endpoint.makeJob(prepared, model, deployment, { files: undefined } as InferenceParts, 'acme')
}
