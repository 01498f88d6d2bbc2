import { hash, randomBytes } from 'node:crypto'
import { AwsV4Signer } from 'aws4fetch'
import { Agent } from 'undici'
import { ApiError } from '../../shared/errors.ts'
import { withoutTrailing } from '../../shared/without-trailing.ts'
import type { Clock } from '../../shared/clock.ts'
import type { FileStore } from './files.ts'
import { fileName } from './file-name.ts'

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

/** Stores files in a bucket with path-style addresses. A lifecycle rule of the bucket deletes them. */
export function s3Files(options: S3Options, clock: Clock): FileStore {
  const { accessKey, secretKey, region, bucket, prefix, linkTtlSeconds } = options
  const credentials = { accessKeyId: accessKey, secretAccessKey: secretKey, region, service: 's3' }
  const agent = new Agent({ connect: { timeout: 5000 }, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS })

  const addressOf = (base: string, key: string): URL => new URL(`${withoutTrailing(base, '/')}/${bucket}/${key}`)

  async function attempt(url: URL, bytes: Buffer, contentType: string): Promise<void> {
    const { headers } = await new AwsV4Signer({
      ...credentials,
      method: 'PUT',
      url: url.href,
      headers: { 'content-type': contentType, 'x-amz-content-sha256': hash('sha256', bytes) },
      allHeaders: true,
      datetime: stamp(clock.now()),
    }).sign()
    const { origin, pathname } = url
    const request = {
      origin,
      path: pathname,
      method: 'PUT',
      headers: Object.fromEntries(headers),
      body: bytes,
    } as const
    const response = await agent.request(request)
    // The status is enough. The message may name buckets and keys.
    await response.body.dump()
    if (response.statusCode !== 200) throw new Error(`the file storage answered with status ${response.statusCode}`)
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

function refuse(cause: unknown): never {
  throw new ApiError('service_unavailable', 'The file could not be stored. Try again, or ask for b64_json.', { cause })
}

/** 20130524T000000Z */
function stamp(now: number): string {
  return new Date(now).toISOString().replaceAll(/[-:]|\.\d+/g, '')
}
