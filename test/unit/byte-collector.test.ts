import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { byteCollector } from '../../src/core/byte-collector.ts'

describe('bytes that come in pieces', () => {
  it('are whole in the end, whatever was expected', () => {
    const pieces = fc.array(fc.integer({ min: 0, max: 900_000 }), { maxLength: 6 })
    const lengths = fc.oneof(fc.integer({ min: -1, max: 5_000_000 }), fc.constant(Number.NaN), fc.constant('right'))
    fc.assert(
      fc.property(pieces, lengths, (sizes, expected) => {
        const buffers = sizes.map((size, index) => Buffer.alloc(size, index))
        const all = Buffer.concat(buffers)
        const collected = byteCollector(4_000_000)
        collected.expect(typeof expected === 'number' ? expected : all.length)
        for (const buffer of buffers) collected.push(buffer)
        assert.ok(collected.whole().equals(all))
      }),
      { numRuns: 50 },
    )
  })

  it('one small piece is not copied', () => {
    const piece = Buffer.from('{}')
    const collected = byteCollector(1000)
    collected.expect(2)
    collected.push(piece)
    assert.equal(collected.whole(), piece)
  })

  it('the first takes no room for those that are expected', () => {
    const piece = Buffer.alloc(70_000)
    const collected = byteCollector(100_000_000)
    collected.expect(80_000_000)
    collected.push(piece)
    assert.equal(collected.whole(), piece)
  })
})
