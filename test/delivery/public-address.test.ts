import assert from 'node:assert/strict'
import dns, { type LookupAddress, type LookupOptions } from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'
import { after, before, describe, it, mock } from 'node:test'
import { isPrivateAddress, publicLookup } from '../../src/delivery/public-address.ts'

/** The first and last address of each range, and the public ones next to it. */
const ranges4: readonly (readonly [first: string, last: string, ...publicNext: string[]])[] = [
  ['0.0.0.0', '0.255.255.255', '1.0.0.0'],
  ['10.0.0.0', '10.255.255.255', '9.255.255.255', '11.0.0.0'],
  ['100.64.0.0', '100.127.255.255', '100.63.255.255', '100.128.0.0'],
  ['127.0.0.0', '127.255.255.255', '126.255.255.255', '128.0.0.0'],
  ['169.254.0.0', '169.254.255.255', '169.253.255.255', '169.255.0.0'],
  ['172.16.0.0', '172.31.255.255', '172.15.255.255', '172.32.0.0'],
  ['192.0.0.0', '192.0.0.255', '191.255.255.255', '192.0.1.0'],
  ['192.88.99.0', '192.88.99.255', '192.88.98.255', '192.88.100.0'],
  ['192.168.0.0', '192.168.255.255', '192.167.255.255', '192.169.0.0'],
  ['198.18.0.0', '198.19.255.255', '198.17.255.255', '198.20.0.0'],
  ['224.0.0.0', '255.255.255.255', '223.255.255.255'],
]
const ranges6: typeof ranges4 = [
  ['::', '::ffff:ffff', '::1:0:0'],
  ['64:ff9b::', '64:ff9b::ffff:ffff', '64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff', '64:ff9b::1:0:0'],
  ['64:ff9b:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff', '64:ff9b:0:ffff:ffff:ffff:ffff:ffff', '64:ff9b:2::'],
  ['100::', '100::ffff:ffff:ffff:ffff', 'ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '100:0:0:1::'],
  ['2001::', '2001:0:ffff:ffff:ffff:ffff:ffff:ffff', '2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2001:1::'],
  ['2002::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2003::'],
  ['fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'fe00::'],
  ['fe80::', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['fec0::', 'feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['ff00::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
]

describe('an address that must not be fetched from', () => {
  for (const [first, last, ...publicNext] of [...ranges4, ...ranges6]) {
    it(`is in a range from its first to its last address: ${first}`, () => {
      for (const address of [first, last]) assert.equal(isPrivateAddress(address), true, address)
      for (const address of publicNext) assert.equal(isPrivateAddress(address), false, address)
    })
  }

  it('is private as well if it is written as IPv6', () => {
    for (const [first, last, ...publicNext] of ranges4) {
      for (const address of [first, last]) assert.equal(isPrivateAddress(`::ffff:${address}`), true, address)
      for (const address of publicNext) assert.equal(isPrivateAddress(`::ffff:${address}`), false, address)
    }
    for (const address of ['::ffff:a00:1', '::FFFF:7f00:1', '0:0:0:0:0:ffff:c0a8:ffff']) {
      assert.equal(isPrivateAddress(address), true, address)
    }
    assert.equal(isPrivateAddress('::ffff:808:808'), false)
  })
})

describe('a lookup of public addresses', () => {
  const found: Record<string, readonly LookupAddress[]> = {
    'mixed.example': [
      { address: '10.0.0.1', family: 4 },
      { address: '8.8.8.8', family: 4 },
      { address: '2606:4700::1', family: 6 },
    ],
    'private.example': [{ address: '127.0.0.1', family: 4 }],
  }
  const asked: unknown[] = []
  before(() => {
    mock.method(dns, 'lookup', (name: string, options: object, callback: (...all: unknown[]) => void) => {
      asked.push(options)
      const addresses = found[name]
      callback(addresses ? null : new Error('unknown host'), addresses)
    })
    syncBuiltinESMExports()
  })
  after(() => {
    mock.restoreAll()
    syncBuiltinESMExports()
  })

  const lookup = (name: string, options: LookupOptions) =>
    new Promise((resolve) => {
      publicLookup(name, options, (...all) => resolve(all))
    })

  it('leaves private ones out, and asks for all in any case', async () => {
    assert.deepEqual(await lookup('mixed.example', { all: true, family: 0 }), [null, found['mixed.example']?.slice(1)])
    assert.deepEqual(await lookup('mixed.example', { hints: 1 }), [null, '8.8.8.8', 4])
    assert.deepEqual(asked, [
      { all: true, family: 0 },
      { all: true, hints: 1 },
    ])
  })

  it('fails where there is none, and where the name is not known', async () => {
    const [refused] = (await lookup('private.example', {})) as [Error]
    assert.match(refused.message, /private\.example resolves to a private address/)
    const [unknown, none] = (await lookup('unknown.example', {})) as [Error, unknown]
    assert.deepEqual([unknown.message, none], ['unknown host', []])
  })
})
