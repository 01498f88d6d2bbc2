import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { jsonBytes } from '../../src/core/json/json-bytes.ts'
import { finish } from '../../src/core/sliced-work.ts'

fc.configureGlobal({ seed: 1 })

describe('JSON written in slices', () => {
  it('is what JSON.stringify writes, wherever the slices end', () => {
    const words = fc.oneof(fc.constantFrom('😀😀😀😀😀', '\ud83d', '"\\"', '\u0000', ''), fc.string({ unit: 'binary' }))
    const values = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        words,
        fc.double(),
        fc.constantFrom(true, null, undefined),
        fc.array(tie('value')),
        fc.dictionary(words, tie('value')),
      ),
    })).value
    fc.assert(
      fc.property(values, fc.integer({ min: 2, max: 40 }), (value, size) => {
        const written = finish(jsonBytes({ value, list: [value] }, size))
        assert.equal(written.toString(), Buffer.from(JSON.stringify({ value, list: [value] })).toString())
      }),
      { numRuns: 3000 },
    )
  })

  it('pauses often in a large text', () => {
    const pauses = [
      ...jsonBytes({ texts: ['x'.repeat(5_000_000), ...Array.from({ length: 500 }, () => 'y'.repeat(1000))] }),
    ]
    assert.ok(pauses.length > 80, `${pauses.length} pauses`)
  })
})
