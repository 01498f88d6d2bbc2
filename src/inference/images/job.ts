import type { Deployment, Model } from '../../catalog/model.ts'
import { ApiError } from '../../shared/errors.ts'
import type { Job } from '../../engines/job.ts'
import type { JsonBody } from '../../shared/json/json-body.ts'
import { imageKind } from '../../billing/rating/price-kinds.ts'
import { inputBounds } from '../metering/usage-bounds.ts'
import { requireValid } from '../../shared/json/schema-check.ts'
import { sumOf, textTokens, type TokenEstimate } from '../../shared/tokens/token-estimate.ts'
import type { DialectRequest, ImagesDialect } from '../../engines/dialects/dialect.ts'
import type { SupportByName } from '../../engines/dialects/parameter-support.ts'
import type { FileStore } from '../../server/files/files.ts'
import { bytesIn, jsonBodies, jsonRequest, operationOf, supportOf } from '../request/engine-operation.ts'
import { acceptedParameters, forwardedParameters } from '../request/parameters.ts'
import type { PreparedRequest, RequestFacts } from '../request/prepared-request.ts'
import { imagesAnswer } from './answer.ts'
import { imagesRequestSchema, type ImagesRequest } from './schema.ts'

const alwaysAccepted = new Set(['prompt', 'n', 'size', 'response_format'])

/** What admission charges for an image, since images have no tokens. */
const TOKENS_PER_IMAGE = 1000

/** What the job needs besides its terms and its bodies. */
interface ImagesPlan {
  readonly path: string
  readonly count: number
  readonly isLinked: boolean
}

/** POST /images/generations: one admission, and several calls if the engine generates fewer images at a time. */
export function prepareImages(
  body: JsonBody,
  model: Model,
  deployment: Deployment,
  { offersLinks }: RequestFacts,
): PreparedRequest<ImagesPlan> {
  const dialect = operationOf(model, deployment, 'images')
  requireValid(imagesRequestSchema, body.value)
  const request = body.value as ImagesRequest
  const support = supportOf(deployment, 'images')
  const accepted = acceptedParameters(request, imagesRequestSchema.properties, alwaysAccepted, model, support)
  if (request.stream) throw unsupported('stream', 'Images cannot be streamed. Leave out stream.')
  const isLinked = request.response_format === 'url'
  if (isLinked && !offersLinks) {
    throw unsupported('response_format', 'This service does not offer links to images. Ask for b64_json.')
  }
  const count = request.n ?? 1
  const input = sumOf([inputTokens(request, 'prompt', model), inputTokens(request, 'negative_prompt', model)])
  const parameters = sentParameters(request, accepted, support)
  const { path, bodies } = jsonBodies(
    requestsFor(request, count, parameters, dialect, deployment.engine?.model ?? model.id),
  )
  return {
    terms: {
      tier: 'default',
      // The model cannot read more than its context, even if the estimate is higher.
      cost: Math.min(input.charged, model.contextLength) + count * TOKENS_PER_IMAGE,
      maxTokens: 0,
      ...inputBounds({ bytes: bytesIn(bodies), contexts: bodies.length }, model.contextLength),
      likelyInputTokens: input.likely,
      media: { images: count, imageKind: imageKind(request.size ?? undefined, request.quality ?? undefined) },
    },
    bodies,
    plan: { path, count, isLinked },
  }
}

export function imagesJob(
  { terms, bodies, plan: { path, count, isLinked } }: PreparedRequest<ImagesPlan>,
  model: Model,
  deployment: Deployment,
  { files }: { readonly files: FileStore | undefined },
  owner: string,
): Job {
  return {
    ...terms,
    endpoint: '/images/generations',
    model,
    deployment,
    calls: bodies.map((body) => jsonRequest(path, body, 'prompt')),
    answer: imagesAnswer(operationOf(model, deployment, 'images'), count, isLinked ? files : undefined, owner),
  }
}

/** Engines read the prompt and the negative prompt separately, so each must fit by itself. */
function inputTokens(request: ImagesRequest, name: 'prompt' | 'negative_prompt', model: Model): TokenEstimate {
  const tokens = textTokens(request[name] ?? '', model.tokenizer)
  if (tokens.likely <= model.contextLength) return tokens
  throw new ApiError(
    'context_length_exceeded',
    `This model's maximum context length is ${model.contextLength} tokens, but the ${name} has about ${tokens.likely}. Shorten it.`,
    { param: name },
  )
}

function unsupported(param: string, message: string): ApiError {
  return new ApiError('unsupported_value', message, { param })
}

/** By the engine's names. */
function sentParameters(
  request: ImagesRequest,
  accepted: ReadonlySet<string>,
  support: SupportByName,
): Readonly<Record<string, unknown>> {
  const { keeps, translated } = forwardedParameters(request, accepted, support)
  return { ...Object.fromEntries(Object.entries(request).filter(([name]) => keeps(name))), ...translated }
}

function requestsFor(
  { prompt, size: requestedSize }: ImagesRequest,
  count: number,
  parameters: Readonly<Record<string, unknown>>,
  dialect: ImagesDialect,
  model: string,
): readonly DialectRequest[] {
  const { seed } = parameters
  const size = requestedSize && requestedSize !== 'auto' ? requestedSize : undefined
  const requests: DialectRequest[] = []
  for (let made = 0; made < count; made += dialect.batchSize) {
    // Engines add 1 to the seed for each image of a call. Each further call continues from there.
    const seeded = typeof seed === 'number' && seed >= 0 ? { seed: seed + made } : {}
    requests.push(
      dialect.request({
        model,
        prompt,
        count: Math.min(dialect.batchSize, count - made),
        size,
        parameters: { ...parameters, ...seeded },
      }),
    )
  }
  return requests
}
