import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { integerRange } from '../host/llama/integer-range-grammar.ts'
import { jsonSchemaGrammar } from '../host/llama/json-grammar.ts'

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

  /** The language of a grammar whose members are single letters, as a regular expression. */
  function lettersOf(grammar: string): RegExp {
    const rules = new Map([...grammar.matchAll(/^(\w+) ::= (.*)$/gm)].map(([, name = '', body = '']) => [name, body]))
    const expand = (body: string): string =>
      body
        .replaceAll(/"\\"(\w)\\"" ":" ws boolean/g, '$1')
        .replaceAll(' ws "," ws ', '')
        .replaceAll(/"[{}]"|\bws\b/g, '')
        .replaceAll(/\br\d+\b/g, (name) => `(?:${expand(rules.get(name) ?? '')})`)
        .replaceAll(' ', '')
    return new RegExp(`^${expand(rules.get('root') ?? '')}$`)
  }

  it('allow any of the optional members, in order, if none is required', () => {
    const letters = ['a', 'b', 'c', 'd', 'e']
    const properties = Object.fromEntries(letters.map((name) => [name, { type: 'boolean' }]))
    const allowed = lettersOf(jsonSchemaGrammar({ type: 'object', properties }))
    const subsets = Array.from({ length: 32 }, (_, bits) => letters.filter((_letter, at) => bits & (1 << at)).join(''))
    for (const text of subsets) assert.match(text, allowed)
    for (const text of ['ba', 'aa', 'abb', 'edcba', 'ca', 'acb']) assert.doesNotMatch(text, allowed)
  })

  it('grow with the number of optional members, not with its square', () => {
    const sizeOf = (count: number): number => {
      const names = Array.from({ length: count }, (_, index) => `property_${index}`)
      const properties = Object.fromEntries(names.map((name) => [name, { type: 'boolean' }]))
      return jsonSchemaGrammar({ type: 'object', properties }).length
    }
    assert.ok(sizeOf(500) < 2.5 * sizeOf(250), `${sizeOf(250)} and ${sizeOf(500)} characters`)
    for (const count of [501, 5000]) {
      assert.throws(() => sizeOf(count), { code: 'invalid_value', message: /more than 500 optional properties/ })
    }
  })

  it('refuse a schema that would make a grammar too large to load', () => {
    const many = (count: number, make: (index: number) => object): object[] =>
      Array.from({ length: count }, (_, at) => make(at))
    const wide = Object.fromEntries(
      many(400, (index) => ({ index })).map((_, index) => [`p${index}`, { type: 'string', maxLength: 1000 }]),
    )
    for (const schema of [
      { anyOf: many(3, () => ({ type: 'object', properties: wide })) },
      { enum: many(50_000, (index) => ({ index, text: 'some value' })) },
      { type: Array.from({ length: 10_000 }, () => 'object'), properties: wide },
      { anyOf: many(2000, () => ({ type: 'array', items: { type: 'null' }, maxItems: 1000 })) },
    ]) {
      assert.throws(() => jsonSchemaGrammar(schema as never), { code: 'invalid_value', message: /1000000 characters/ })
    }
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
