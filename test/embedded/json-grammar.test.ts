import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { integerRange } from '../../src/embedded/host/llama/integer-range-grammar.ts'
import { jsonSchemaGrammar } from '../../src/embedded/host/llama/json-grammar.ts'

/** These expressions are regular: without spaces and quotes they are regular expressions. */
function pattern(expression: string): RegExp {
  return new RegExp(`^(?:${expression.replaceAll(/[ "]/g, '')})$`)
}

describe('grammars', () => {
  it('allow exactly the numbers of a range', () => {
    const bound = fc.integer({ min: -2000, max: 2000 })
    fc.assert(
      fc.property(bound, bound, bound, (a, b, probe) => {
        const [min, max] = [Math.min(a, b), Math.max(a, b)]
        assert.equal(pattern(integerRange(min, max)).test(String(probe)), probe >= min && probe <= max)
      }),
      { numRuns: 2000 },
    )
    assert.ok(pattern(integerRange(18, Infinity)).test('123456789'))
    assert.ok(!pattern(integerRange(0, Infinity)).test('-1'))
    assert.ok(!pattern(integerRange(0, 100)).test('007'))
  })

  it('require the required members and allow the others, in order', () => {
    const grammar = jsonSchemaGrammar({
      type: 'object',
      properties: { a: { type: 'string' }, b: { type: 'boolean' }, c: { type: 'null' } },
      required: ['b'],
    })
    assert.match(grammar, /^root ::= r3$/m)
    assert.match(grammar, /^r0 ::= "\\"b\\"" ":" ws boolean$/m)
    assert.match(grammar, /^r3 ::= "\{" ws r0 \( ws "," ws r1 \)\? \( ws "," ws r2 \)\? ws "\}"$/m)
  })

  it('follow references, even to themselves', () => {
    const grammar = jsonSchemaGrammar({
      $ref: '#/$defs/node',
      $defs: {
        node: { type: 'object', properties: { next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } } },
      },
    })
    assert.match(grammar, /^r0 ::= r3$/m)
    assert.match(grammar, /r0 \| null/)
  })

  it('refuse what they cannot enforce', () => {
    for (const schema of [
      { type: 'string', pattern: '^a' },
      { type: 'number', minimum: 0.5 },
      { not: { type: 'string' } },
      { $ref: 'https://example.org/schema' },
      { $ref: '#/$defs/missing' },
      { type: 'imaginary' },
    ]) {
      assert.throws(() => jsonSchemaGrammar(schema), { code: 'invalid_value' }, JSON.stringify(schema))
    }
  })

  it('quote names and values as JSON does', () => {
    assert.match(jsonSchemaGrammar({ enum: ['a"b', 1, null] }), /r0 ::= "\\"a\\\\\\"b\\"" \| "1" \| "null"/)
  })
})
