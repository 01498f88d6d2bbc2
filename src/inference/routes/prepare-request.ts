import { modelName } from '../request/model-name.ts'
import type { RequestFacts, MissingInput } from '../request/prepared-request.ts'
import { parsedObject } from '../../server/body.ts'
import type { Exchange } from '../../server/exchange.ts'
import type { InferenceParts } from './json-endpoints.ts'
import { prepareInThread, type FindModel, type Preparation, type Prepared } from './prepare-in-thread.ts'

/**
 * Larger bodies are processed in a thread, so that no body delays other callers for more than 50 ms:
 * docs/decisions/2026-11-17-big-bodies.md has the figures.
 */
const MAX_BYTES_HERE = 524_288

export async function prepareRequest<Result extends object>(
  parts: InferenceParts,
  endpoint: Preparation<Result>,
  exchange: Exchange,
  body: Buffer,
  find: FindModel,
): Promise<Prepared<Result>> {
  const { imageLimits, changingLines, files } = parts
  let bytes = body
  let images: RequestFacts['images'] = new Map()
  let isInThread = bytes.length > MAX_BYTES_HERE
  for (;;) {
    const facts: RequestFacts = { imageLimits, changingLines, images, offersLinks: files !== undefined, isInThread }
    const made: Prepared<Result | MissingInput> & { readonly bytes?: Buffer | undefined } = isInThread
      ? await prepareInThread(exchange, endpoint, bytes, facts, find)
      : prepareHere(exchange, endpoint, bytes, facts, find)
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

function prepareHere<Result>(
  exchange: Exchange,
  endpoint: Preparation<Result>,
  bytes: Buffer,
  facts: RequestFacts,
  find: FindModel,
): Prepared<Result | MissingInput> {
  const body = parsedObject(exchange, bytes)
  const destination = find(modelName(body.value), body.value['stream'] === true)
  return { ...destination, result: endpoint.prepare(body, destination.model, destination.deployment, facts) }
}
