import { Agent } from 'undici'
import { ApiError } from '../../shared/errors.ts'
import { imageProblem, readImageHeader, type ImageLimits } from '../../shared/image-header.ts'
import { publicLookup } from '../../delivery/public-address.ts'

const TIMEOUT_MS = 10_000
/** Parsing an address takes a second if it is as long as a body may be. */
const MAX_URL_LENGTH = 8192

interface RemoteImage {
  readonly url: string
  /** Its place in the request. */
  readonly param: string
}

/**
 * Fetches images from hosts that the operator allows and returns them as data URLs, so that no engine ever
 * gets an address to fetch (SSRF). Redirects are not followed, and names that resolve to a private address
 * are refused. A private IP address works only if the operator lists it, such as 10.0.0.5:9000. A host
 * listed without a port is allowed on the default port only.
 */
export function remoteImages(allowedHosts: readonly string[], limits: ImageLimits) {
  const allowed = new Set(allowedHosts.map((host) => host.toLowerCase()))
  const agent = new Agent({ connect: { lookup: publicLookup } })

  /** Fetches all images of a request at once. Together they may be as large as a single one. */
  async function fetchImages(images: readonly RemoteImage[]): Promise<string[]> {
    const addresses = images.map(requireAllowed)
    const room = { left: limits.maxBytes }
    return Promise.all(images.map(({ param }, index) => fetchImage(addresses[index]!, param, room)))
  }

  function requireAllowed({ url, param }: RemoteImage): URL {
    if (url.length > MAX_URL_LENGTH) {
      throw new ApiError(
        'invalid_value',
        `The address of this image is too long: at most ${MAX_URL_LENGTH} characters are allowed.`,
        { param },
      )
    }
    const address = URL.canParse(url) ? new URL(url) : undefined
    if (address && allowed.has(address.host)) return address
    throw new ApiError(
      'unsupported_content',
      'Images from this address are not allowed. Send the image as a data: URL.',
      { param },
    )
  }

  async function fetchImage(address: URL, param: string, room: { left: number }): Promise<string> {
    try {
      return toDataUrl(await download(address, room), param)
    } catch (cause) {
      if (cause instanceof ApiError) throw cause
      throw new ApiError('invalid_value', 'The image could not be fetched. Send it as a data: URL.', { param, cause })
    }
  }

  async function download(address: URL, room: { left: number }): Promise<Buffer> {
    const response = await agent.request({
      origin: address.origin,
      path: address.pathname + address.search,
      method: 'GET',
      headers: { accept: 'image/png,image/jpeg,image/webp,image/gif' },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    if (response.statusCode !== 200) {
      await response.body.dump()
      throw new Error(`status ${response.statusCode}`)
    }
    const chunks: Buffer[] = []
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      room.left -= chunk.length
      if (room.left < 0) throw new Error(`the images of the request exceed ${limits.maxBytes} bytes`)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks)
  }

  /** The type is detected from the content, because a server may declare a wrong one. */
  function toDataUrl(image: Buffer, param: string): string {
    const read = (offset: number, length: number): Buffer => image.subarray(offset, offset + length)
    const problem = imageProblem(read, image.length, limits)
    if (problem !== undefined) {
      throw new ApiError('invalid_value', `The fetched image cannot be used: it must be ${problem}.`, { param })
    }
    return `data:${readImageHeader(read)?.type};base64,${image.toString('base64')}`
  }

  return { fetchImages, close: (): Promise<void> => agent.close() }
}
