import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { byteCollector } from '../../src/shared/byte-collector.ts'

describe('a byte collector', () => {
  it('returns all bytes, whatever length was announced', () => {
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

  it('does not copy a single small piece', () => {
    const piece = Buffer.from('{}')
    const collected = byteCollector(1000)
    collected.expect(2)
    collected.push(piece)
    assert.equal(collected.whole(), piece)
  })

  it('copies into a buffer of the announced length after 1 MiB, up to the largest length', () => {
    const bytesBehind = (announced: number, first: number): number => {
      const collected = byteCollector(2_097_152)
      collected.expect(announced)
      collected.push(Buffer.alloc(first))
      collected.push(Buffer.alloc(1))
      return collected.whole().buffer.byteLength
    }
    assert.equal(bytesBehind(2_097_152, 1_048_576), 2_097_152)
    assert.equal(bytesBehind(2_097_153, 1_048_576), 1_048_577, 'a larger length is ignored')
    assert.equal(bytesBehind(2_097_152, 1_048_575), 1_048_576, 'too little has arrived')
  })

  it('keeps the order of the pieces when more bytes arrive than were announced', () => {
    const pieces = [1_100_000, 100_000, 10].map((size, index) => Buffer.alloc(size, index + 1))
    const collected = byteCollector(4_000_000)
    collected.expect(1_150_000)
    for (const piece of pieces) collected.push(piece)
    assert.ok(collected.whole().equals(Buffer.concat(pieces)))
  })

  it('allocates nothing for an announced length when the first piece arrives', () => {
    const piece = Buffer.alloc(70_000)
    const collected = byteCollector(100_000_000)
    collected.expect(80_000_000)
    collected.push(piece)
    assert.equal(collected.whole(), piece)
  })
})
