import { createHash, hash, randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { AwsV4Signer } from 'aws4fetch'
import { Agent } from 'undici'
import { ApiError, isNotFound } from '../../shared/errors.ts'
import { withoutTrailing } from '../../shared/without-trailing.ts'
import type { Clock } from '../../shared/clock.ts'
import type { FileStore } from './files.ts'
import { fileName } from './file-name.ts'
import { missing, piecesOf, type StoredFiles } from './stored-files.ts'

interface S3Options {
  readonly endpoint: string
  readonly bucket: string
  readonly region: string
  readonly accessKey: string
  readonly secretKey: string
  /** Prepended to every name, such as `images/`. */
  readonly prefix: string
  /** The address at which callers reach the endpoint, if it differs from Weir's. */
  readonly publicUrl: string | undefined
  readonly linkTtlSeconds: number
}

const TIMEOUT_MS = 30_000
const MAX_ERROR_CHARACTERS = 10_000

/** Requests to a bucket with path-style addresses. */
function openBucket(options: S3Options, clock: Clock) {
  const { accessKey, secretKey, region, bucket } = options
  // The cache has the key that signs the requests of a day.
  const credentials = { accessKeyId: accessKey, secretAccessKey: secretKey, region, service: 's3', cache: new Map() }
  const agent = new Agent({ connect: { timeout: 5000 }, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS })

  const addressOf = (base: string, key: string): URL => new URL(`${withoutTrailing(base, '/')}/${bucket}/${key}`)

  /** Resolves with the body of an answer with status 200, 204 or 206, which must be read or destroyed. Throws `not_found`. */
  async function send(
    method: 'PUT' | 'GET' | 'DELETE',
    url: URL,
    given: Record<string, string>,
    body: { readonly sha256: string; readonly bytes?: Buffer | Readable; readonly length?: number },
  ): Promise<Readable> {
    const { headers } = await new AwsV4Signer({
      ...credentials,
      method,
      url: url.href,
      headers: { ...given, 'x-amz-content-sha256': body.sha256 },
      allHeaders: true,
      datetime: stamp(clock.now()),
    }).sign()
    const { origin, pathname } = url
    const length = body.length === undefined ? {} : { 'content-length': String(body.length) }
    const response = await agent.request({
      origin,
      path: pathname,
      method,
      headers: { ...Object.fromEntries(headers), ...length },
      body: body.bytes ?? null,
    })
    if ([200, 204, 206].includes(response.statusCode)) return response.body
    // The status and the code are enough. The message may name buckets and keys.
    const answer = await startOf(response.body)
    // A bucket that is missing, or a wrong address, has the same status.
    if (answer.includes('<Code>NoSuchKey</Code>')) throw missing()
    throw new Error(`the file storage answered with status ${response.statusCode}`)
  }

  return { agent, credentials, addressOf, send }
}

/** Errors of S3 are short. The rest of a long answer, which another server sent, is not read. */
async function startOf(body: Readable): Promise<string> {
  let text = ''
  for await (const piece of body) {
    text += String(piece)
    if (text.length > MAX_ERROR_CHARACTERS) break
  }
  return text
}

const NO_BODY = { sha256: hash('sha256', '') }

/** Stores files for links. A lifecycle rule of the bucket deletes them. */
export function s3Files(options: S3Options, clock: Clock): FileStore {
  const { prefix, linkTtlSeconds } = options
  const { agent, credentials, addressOf, send } = openBucket(options, clock)

  async function attempt(url: URL, bytes: Buffer, contentType: string): Promise<void> {
    const answer = await send('PUT', url, { 'content-type': contentType }, { sha256: hash('sha256', bytes), bytes })
    answer.resume()
  }

  /** A link that anyone can open with GET until it expires. */
  async function linkTo(url: URL): Promise<string> {
    url.searchParams.set('X-Amz-Expires', String(linkTtlSeconds))
    const datetime = stamp(clock.now())
    const { url: link } = await new AwsV4Signer({ ...credentials, url: url.href, signQuery: true, datetime }).sign()
    return link.href
  }

  return {
    async put(bytes, contentType) {
      const key = prefix + fileName(randomBytes(16), contentType)
      const address = addressOf(options.endpoint, key)
      const once = (): Promise<void> => attempt(address, bytes, contentType)
      await once().catch(once).catch(refuse)
      return linkTo(addressOf(options.publicUrl ?? options.endpoint, key))
    },
    close: () => agent.close(),
  }
}

/** Stores files until they are removed. */
export function storedInS3(options: S3Options, clock: Clock): StoredFiles {
  const { agent, addressOf, send } = openBucket(options, clock)
  const address = (name: string): URL => addressOf(options.endpoint, `${options.prefix}batches/${name}`)
  return {
    place: `s3 ${options.endpoint}/${options.bucket}/${options.prefix}`,
    room: async () => Number.MAX_SAFE_INTEGER,
    async write(name, source) {
      const sum = createHash('sha256')
      for await (const piece of piecesOf(source)) sum.update(piece)
      const sha256 = sum.digest('hex')
      const once = async (): Promise<void> => {
        const bytes = Readable.from(piecesOf(source), { objectMode: false })
        const answer = await send(
          'PUT',
          address(name),
          { 'content-type': 'application/jsonl' },
          { sha256, bytes, length: source.length },
        )
        answer.resume()
      }
      await once()
        .catch(once)
        .catch((cause: unknown) => {
          throw new ApiError('service_unavailable', 'The file could not be stored. Try again later.', { cause })
        })
    },
    async read(name, start, end) {
      if (start >= end) return Readable.from([])
      return send('GET', address(name), { range: `bytes=${start}-${end - 1}` }, NO_BODY)
    },
    async remove(name) {
      try {
        const answer = await send('DELETE', address(name), {}, NO_BODY)
        answer.resume()
      } catch (error) {
        if (!isNotFound(error)) throw error
      }
    },
    close: () => agent.close(),
  }
}

function refuse(cause: unknown): never {
  throw new ApiError('service_unavailable', 'The file could not be stored. Try again, or ask for b64_json.', { cause })
}

/** 20130524T000000Z */
function stamp(now: number): string {
  return new Date(now).toISOString().replaceAll(/[-:]|\.\d+/g, '')
}
