import { lookup } from 'node:dns'
import { BlockList, isIP, type TcpNetConnectOpts } from 'node:net'

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
  // These also match addresses that are written as IPv6, such as ::ffff:10.0.0.1.
  privateRanges.addSubnet(network, prefix, 'ipv4')
}
for (const [network, prefix] of [
  // Ranges that embed an IPv4 address, and ranges that are not public.
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

/** Whether an address must not be fetched from, because it is not on the public internet. */
export function isPrivateAddress(address: string): boolean {
  return privateRanges.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

/** Resolves to public addresses only. The connection uses exactly the addresses that were checked. */
export const publicLookup: NonNullable<TcpNetConnectOpts['lookup']> = (name, options, callback) => {
  lookup(name, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error, [])
    const allowed = addresses.filter(({ address }) => !isPrivateAddress(address))
    const [first] = allowed
    if (!first) return callback(new Error(`${name} resolves to a private address`), [])
    return options.all ? callback(null, allowed) : callback(null, first.address, first.family)
  })
}
