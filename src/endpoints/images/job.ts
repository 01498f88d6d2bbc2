import { decodeBase64, isBase64 } from '../../core/base64.ts'
import type { Deployment, Model } from '../../core/catalog.ts'
import type { ByteCollector } from '../../core/byte-collector.ts'
import { ApiError } from '../../core/errors.ts'
import { readImageHeader } from '../../core/image-header.ts'
import { imageKind } from '../../core/money/image-prices.ts'
import type { EngineRequest, Job, ReadAnswer } from '../../core/job.ts'
import { parseWithLargeStrings } from '../../core/json/large-json-strings.ts'
import { noUsage } from '../../core/money/rating.ts'
import { sumOf, textTokens, type TokenEstimate } from '../../core/token-estimate.ts'
import type { ImagesDialect } from '../../dialects/dialect.ts'
import type { FileStore } from '../../ports/files.ts'
import type { JsonBody } from '../../core/json/json-body.ts'
import { imagesRequestSchema, type ImagesRequest } from './schema.ts'
import { jsonRequest, operationOf } from '../engine-operation.ts'
import { requireValid } from '../../core/parameter-errors.ts'
import { acceptedParameters } from '../parameters.ts'

const always = new Set(['prompt', 'n', 'size', 'response_format'])

/** What admission charges for each image, in tokens: a stand-in, since an image is made of none. */
const TOKENS_PER_IMAGE = 1000

interface Image {
  readonly base64: Buffer
  readonly revisedPrompt: string | undefined
}

/** POST /images/generations: one admission, split into calls where the engine makes fewer at a time. */
export function imagesJob(
  body: JsonBody,
  model: Model,
  deployment: Deployment,
  { files }: { readonly files: FileStore | undefined },
): Job {
  const dialect = operationOf(model, deployment, 'images')
  requireValid(imagesRequestSchema, body.value)
  const request = body.value as ImagesRequest
  const accepted = acceptedParameters(request, imagesRequestSchema.properties, always, model)
  if (request.stream) throw unsupported('stream', 'Images are not streamed; leave stream out.')
  const store = request.response_format === 'url' ? requireFiles(files) : undefined
  const count = request.n ?? 1
  const input = sumOf([measure(request, 'prompt', model), measure(request, 'negative_prompt', model)])
  return {
    endpoint: '/images/generations',
    model,
    deployment,
    // What the model reads cannot be more than its context, however careful the estimate.
    cost: Math.min(input.charged, model.contextLength) + count * TOKENS_PER_IMAGE,
    maxTokens: 0,
    likelyInputTokens: input.likely,
    media: { images: count, imageKind: imageKind(request.size ?? undefined, request.quality ?? undefined) },
    calls: callsFor(request, count, accepted, dialect, deployment.engine?.model ?? model.id),
    answer: {
      kind: 'whole',
      async read(bodies, head) {
        const images = imagesIn(bodies, dialect)?.slice(0, count)
        if (!images || images.length === 0) return undefined
        return store ? linked(images, store, head.created) : inlined(images, head.created)
      },
    },
  }
}

function requireFiles(files: FileStore | undefined): FileStore {
  if (files) return files
  throw unsupported('response_format', 'Links to images are not set up here; ask for b64_json.')
}

/** Engines read the two apart from each other: each has to fit by itself. */
function measure(request: ImagesRequest, name: 'prompt' | 'negative_prompt', model: Model): TokenEstimate {
  const tokens = textTokens(request[name] ?? '', model.tokenizer)
  if (tokens.likely <= model.contextLength) return tokens
  throw new ApiError(
    'context_length_exceeded',
    `This model's maximum context length is ${model.contextLength} tokens, but the ${name} comes to about ${tokens.likely}. Shorten it.`,
    { param: name },
  )
}

function unsupported(param: string, message: string): ApiError {
  return new ApiError('unsupported_value', message, { param })
}

function callsFor(
  request: ImagesRequest,
  count: number,
  accepted: ReadonlySet<string>,
  dialect: ImagesDialect,
  model: string,
): readonly EngineRequest[] {
  const parameters = Object.fromEntries(Object.entries(request).filter(([name]) => accepted.has(name)))
  const { prompt, seed } = request
  const size = request.size && request.size !== 'auto' ? request.size : undefined
  const calls: EngineRequest[] = []
  for (let made = 0; made < count; made += dialect.batchSize) {
    // One seed gives one image: the calls go on where the one before them stopped, as engines do inside a call.
    const seeded = accepted.has('seed') && typeof seed === 'number' && seed >= 0 ? { seed: seed + made } : {}
    const call = dialect.request({
      model,
      prompt,
      count: Math.min(dialect.batchSize, count - made),
      size,
      parameters: { ...parameters, ...seeded },
    })
    calls.push(jsonRequest(call.path, Buffer.from(JSON.stringify(call.body)), 'prompt'))
  }
  return calls
}

/**
 * What the engine made, in order. Fewer than were asked for are delivered, and billed, as they are; an
 * answer without any, or with something else in an image's place, is none.
 */
function imagesIn(bodies: readonly ByteCollector[], dialect: ImagesDialect): readonly Image[] | undefined {
  const images: Image[] = []
  for (const body of bodies) {
    const lifted = parseWithLargeStrings(body.whole())
    const output = lifted && dialect.response(lifted.value)
    if (!output) return undefined
    for (const { base64, revisedPrompt: text } of output.images) {
      const revisedPrompt = text === undefined ? undefined : lifted.bytesOf(text).toString('utf8')
      images.push({ base64: lifted.bytesOf(base64), revisedPrompt })
    }
  }
  return images
}

/** The images' bytes go on as the engine sent them, without a copy. */
function inlined(images: readonly Image[], created: number): ReadAnswer | undefined {
  if (!images.every(({ base64 }) => isBase64(base64))) return undefined
  return {
    usage: { ...noUsage, images: images.length },
    outputBytes: () => 0,
    render() {
      const pieces: Buffer[] = []
      let before = `{"created":${created},"data":[`
      for (const { base64, revisedPrompt } of images) {
        pieces.push(Buffer.from(`${before}{"b64_json":"`), base64)
        before = `"${revised(revisedPrompt)}},`
      }
      pieces.push(Buffer.from(`${before.slice(0, -1)}]}`))
      return pieces
    },
  }
}

/** One after the other, so that only one is decoded at a time. */
async function linked(images: readonly Image[], store: FileStore, created: number): Promise<ReadAnswer | undefined> {
  const data: string[] = []
  for (const { base64, revisedPrompt } of images) {
    const bytes = decodeBase64(base64)
    if (!bytes) return undefined
    const header = readImageHeader((offset, length) => bytes.subarray(offset, offset + length))
    const url = await store.put(bytes, header?.type ?? 'application/octet-stream')
    data.push(`{"url":${JSON.stringify(url)}${revised(revisedPrompt)}}`)
  }
  return {
    usage: { ...noUsage, images: images.length },
    outputBytes: () => 0,
    render: () => `{"created":${created},"data":[${data.join(',')}]}`,
  }
}

function revised(prompt: string | undefined): string {
  return prompt === undefined ? '' : `,"revised_prompt":${JSON.stringify(prompt)}`
}
