import { hash, randomBytes } from 'node:crypto'
import { Agent } from 'undici'
import { ApiError } from '../core/errors.ts'
import { withoutTrailing } from '../core/without-trailing.ts'
import type { Clock } from '../ports/clock.ts'
import type { FileStore } from '../ports/files.ts'
import { fileName } from './file-name.ts'
import { presignedUrl, signedHeaders, type Signer } from './signature-v4.ts'

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
  const signer: Signer = { accessKey, secretKey, region, service: 's3' }
  const agent = new Agent({ connect: { timeout: 5000 }, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS })

  const addressOf = (base: string, key: string): URL => new URL(`${withoutTrailing(base, '/')}/${bucket}/${key}`)

  async function attempt(url: URL, bytes: Buffer, contentType: string): Promise<void> {
    const headers = signedHeaders(signer, {
      method: 'PUT',
      url,
      headers: { 'content-type': contentType },
      payloadHash: hash('sha256', bytes),
      now: clock.now(),
    })
    const { origin, pathname } = url
    const response = await agent.request({ origin, path: pathname, method: 'PUT', headers, body: bytes })
    // The status is enough. The message may name buckets and keys.
    await response.body.dump()
    if (response.statusCode !== 200) throw new Error(`the file storage answered with status ${response.statusCode}`)
  }

  return {
    async put(bytes, contentType) {
      const key = prefix + fileName(randomBytes(16), contentType)
      const address = addressOf(options.endpoint, key)
      const once = (): Promise<void> => attempt(address, bytes, contentType)
      await once().catch(once).catch(refuse)
      return presignedUrl(signer, addressOf(options.publicUrl ?? options.endpoint, key), clock.now(), linkTtlSeconds)
    },
    close: () => agent.close(),
  }
}

function refuse(cause: unknown): never {
  throw new ApiError('service_unavailable', 'The file could not be stored. Try again, or ask for b64_json.', { cause })
}
