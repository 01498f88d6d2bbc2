import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { formatKey, hashKey, isWellFormedKey } from '../../src/workspaces/keys/api-key.ts'

fc.configureGlobal({ seed: 1 })

const randomBytes = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes))
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Decodes the 256 random bits of a key. */
function bitsOf(key: string): string {
  let value = 0n
  for (const digit of key.slice('weir_'.length, -6)) value = value * 62n + BigInt(DIGITS.indexOf(digit))
  return value.toString(16).padStart(64, '0')
}

describe('an API key', () => {
  it('[K1] has a prefix that secret scanners can find, then only letters and digits', () => {
    fc.assert(
      fc.property(randomBytes, (bytes) => {
        const key = formatKey(bytes)
        assert.match(key, /^weir_[0-9A-Za-z]{49}$/)
        assert.ok(isWellFormedKey(key))
      }),
    )
  })

  it('carries all 256 random bits, including the extremes', () => {
    fc.assert(
      fc.property(randomBytes, (bytes) => assert.equal(bitsOf(formatKey(bytes)), bytes.toString('hex'))),
      { examples: [[Buffer.alloc(32, 0)], [Buffer.alloc(32, 0xff)]] },
    )
  })

  it('needs exactly 32 random bytes', () => {
    for (const length of [0, 16, 31, 33]) assert.throws(() => formatKey(Buffer.alloc(length)), RangeError)
  })

  it('[K1] is recognised as mistyped when any one character is changed', () => {
    fc.assert(
      fc.property(randomBytes, (bytes) => {
        const key = formatKey(bytes)
        for (let index = 0; index < key.length; index++) {
          for (const digit of `${DIGITS}_-`) {
            if (digit === key[index]) continue
            const changed = key.slice(0, index) + digit + key.slice(index + 1)
            assert.ok(!isWellFormedKey(changed), changed)
          }
        }
      }),
      { numRuns: 10 },
    )
  })

  it('[K1] is recognised as mistyped when a character is missing, doubled or swapped with the next one', () => {
    fc.assert(
      fc.property(randomBytes, fc.nat(53), (bytes, index) => {
        const key = formatKey(bytes)
        assert.ok(!isWellFormedKey(key.slice(0, index) + key.slice(index + 1)))
        assert.ok(!isWellFormedKey(key.slice(0, index + 1) + key.slice(index)))
        const swapped = key.slice(0, index) + (key[index + 1] ?? '') + (key[index] ?? '') + key.slice(index + 2)
        assert.ok(swapped === key || !isWellFormedKey(swapped))
      }),
    )
    for (const text of ['', 'weir_', 'sk-abc', 'WEIR_', ' weir_']) assert.ok(!isWellFormedKey(text))
    assert.ok(!isWellFormedKey(`${formatKey(Buffer.alloc(32, 7))}\n`))
  })

  it('is stored as its SHA-256 hash', () => {
    const key = formatKey(Buffer.alloc(32, 7))
    assert.equal(hashKey(key), createHash('sha256').update(key).digest('hex'))
  })
})
