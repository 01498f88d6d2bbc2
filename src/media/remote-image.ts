import { lookup } from 'node:dns'
import { BlockList, isIP } from 'node:net'
import { Agent } from 'undici'
import { ApiError } from '../core/errors.ts'
import { imageProblem, readImageHeader, type ImageLimits } from '../core/image-header.ts'

const TIMEOUT_MS = 10_000

interface RemoteImage {
  readonly url: string
  /** Where it stands in the request. */
  readonly param: string
}

/**
 * Fetches images at hosts that the operator allows and hands them on as data URLs, so that no engine ever
 * gets an address to fetch (SSRF). No redirects; a name that leads to a private address is refused, after
 * DNS too. An address that the operator lists itself, such as 10.0.0.5:9000, is meant; one that is listed
 * without a port is meant with the usual one.
 */
export function remoteImages(allowedHosts: readonly string[], limits: ImageLimits) {
  const allowed = new Set(allowedHosts.map((host) => host.toLowerCase()))
  const agent = new Agent({ connect: { lookup: publicLookup, timeout: 5000 }, headersTimeout: TIMEOUT_MS })

  /** All of a request's images at once; together they may be as large as one alone. */
  async function fetchImages(images: readonly RemoteImage[]): Promise<string[]> {
    const addresses = images.map(requireAllowed)
    const room = { left: limits.maxBytes }
    return Promise.all(images.map(({ param }, index) => fetchImage(addresses[index]!, param, room)))
  }

  function requireAllowed({ url, param }: RemoteImage): URL {
    const address = URL.canParse(url) ? new URL(url) : undefined
    if (address && allowed.has(address.host)) return address
    throw new ApiError(
      'unsupported_content',
      'Images at this address are not fetched. Send the image as a data: URL.',
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
      if (room.left < 0) throw new Error(`the images of the request are larger than ${limits.maxBytes} bytes`)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks)
  }

  /** By content: a server's own word for it is a claim. */
  function toDataUrl(image: Buffer, param: string): string {
    const read = (offset: number, length: number): Buffer => image.subarray(offset, offset + length)
    const problem = imageProblem(read, image.length, limits)
    if (problem !== undefined) {
      throw new ApiError('invalid_value', `What was fetched is no image to use: it must be ${problem}.`, { param })
    }
    return `data:${readImageHeader(read)?.type};base64,${image.toString('base64')}`
  }

  return { fetchImages, close: (): Promise<void> => agent.close() }
}

const privateRanges = new BlockList()
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const) {
  privateRanges.addSubnet(network, prefix, 'ipv4')
  privateRanges.addSubnet(`::ffff:${network}`, 96 + prefix, 'ipv6')
}
for (const [network, prefix] of [
  // Those that carry an IPv4 address inside, whichever it is, and those that are nobody's.
  ['::', 96],
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['100::', 64],
  ['2001::', 32],
  ['2002::', 16],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
] as const) {
  privateRanges.addSubnet(network, prefix, 'ipv6')
}

export function isPrivateAddress(address: string): boolean {
  return privateRanges.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

/** DNS that answers with public addresses only; the connection is made to exactly what was checked. */
const publicLookup: NonNullable<import('node:net').TcpNetConnectOpts['lookup']> = (name, options, callback) => {
  lookup(name, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error, [])
    const open = addresses.filter(({ address }) => !isPrivateAddress(address))
    const [first] = open
    if (!first) return callback(new Error(`${name} leads to a private address`), [])
    return options.all ? callback(null, open) : callback(null, first.address, first.family)
  })
}
