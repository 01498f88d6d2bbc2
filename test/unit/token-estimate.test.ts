import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { chargedTokens, likelyOutputTokens, likelyTokens } from '../../src/core/token-estimate.ts'

fc.configureGlobal({ seed: 1 })

const sizes = fc.record({ textBytes: fc.nat(50_000_000), messages: fc.nat(10_000), images: fc.nat(1000) })

describe('tokens guessed from bytes', () => {
  it('[Q1] count the text, something for each message, and more for each image', () => {
    const nothing = { textBytes: 0, messages: 0, images: 0 }
    assert.equal(chargedTokens(nothing), 0)
    assert.equal(chargedTokens({ ...nothing, textBytes: 300 }), 100)
    assert.equal(chargedTokens({ ...nothing, textBytes: 301 }), 101)
    assert.equal(likelyTokens({ ...nothing, textBytes: 400 }), 100)
    assert.ok(chargedTokens({ ...nothing, messages: 1 }) > 0)
    assert.ok(chargedTokens({ ...nothing, images: 1 }) > chargedTokens({ ...nothing, messages: 1 }))
    assert.equal(likelyOutputTokens(0), 0)
    assert.equal(likelyOutputTokens(5), 2)
  })

  it('[Q1] charge at least what is likely, and more for more input', () => {
    fc.assert(
      fc.property(sizes, sizes, (size, more) => {
        assert.ok(Number.isSafeInteger(chargedTokens(size)))
        assert.ok(chargedTokens(size) >= likelyTokens(size))
        const larger = {
          textBytes: size.textBytes + more.textBytes,
          messages: size.messages + more.messages,
          images: size.images + more.images,
        }
        assert.ok(chargedTokens(larger) >= chargedTokens(size))
        assert.ok(likelyTokens(larger) >= likelyTokens(size))
      }),
    )
  })
})
