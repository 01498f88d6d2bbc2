import { lookup } from 'node:dns'
import { BlockList, isIP } from 'node:net'
import { Agent } from 'undici'
import { ApiError } from '../core/errors.ts'

const MAX_BYTES = 20 * 1024 * 1024
const TIMEOUT_MS = 10_000

/**
 * Fetches images at hosts that the operator allows and hands them on as data URLs, so that no engine ever
 * gets an address to fetch (SSRF). No redirects; a name that leads to a private address is refused, after
 * DNS too. An address that the operator lists itself, such as 10.0.0.5:9000, is meant.
 */
export function remoteImages(allowedHosts: readonly string[]) {
  const allowed = new Set(allowedHosts.map((host) => host.toLowerCase()))
  const agent = new Agent({ connect: { lookup: publicLookup, timeout: 5000 }, headersTimeout: TIMEOUT_MS })

  async function fetchImage(url: string, param: string): Promise<string> {
    const address = URL.canParse(url) ? new URL(url) : undefined
    if (!address || !(allowed.has(address.host) || allowed.has(address.hostname))) {
      throw new ApiError(
        'unsupported_content',
        'Images at this address are not fetched. Send the image as a data: URL.',
        {
          param,
        },
      )
    }
    try {
      return await download(address)
    } catch (cause) {
      if (cause instanceof ApiError) throw cause
      throw new ApiError('invalid_value', 'The image could not be fetched. Send it as a data: URL.', { param, cause })
    }
  }

  async function download(address: URL): Promise<string> {
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
    let bytes = 0
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > MAX_BYTES) throw new Error('the image is larger than 20 MiB')
      chunks.push(chunk)
    }
    const image = Buffer.concat(chunks)
    const type = imageType(image)
    if (!type) throw new Error('it is no png, jpeg, webp or gif')
    return `data:${type};base64,${image.toString('base64')}`
  }

  return { fetchImage, close: (): Promise<void> => agent.close() }
}

/** By content: a server's own word for it is a claim. */
function imageType(bytes: Buffer): string | undefined {
  if (bytes.subarray(0, 8).equals(Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]))) return 'image/png'
  if (bytes.subarray(0, 3).equals(Buffer.from([0xff, 0xd8, 0xff]))) return 'image/jpeg'
  if (bytes.toString('latin1', 0, 4) === 'GIF8') return 'image/gif'
  if (bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP') return 'image/webp'
  return undefined
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
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const) {
  privateRanges.addSubnet(network, prefix, 'ipv4')
  privateRanges.addSubnet(`::ffff:${network}`, 96 + prefix, 'ipv6')
}
for (const [network, prefix] of [
  ['::', 127],
  ['64:ff9b::', 96],
  ['fc00::', 7],
  ['fe80::', 10],
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
