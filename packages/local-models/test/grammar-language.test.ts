import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { jsonSchemaGrammar } from '../host/llama/json-grammar.ts'

/** The language of a grammar without recursion, as a regular expression. */
function languageOf(grammar: string): RegExp {
  const rules = new Map(
    [...grammar.matchAll(/^([a-z]\w*) ::= ?(.*)$/gm)].map(([, name = '', body = '']) => [name, body]),
  )
  const expand = (body: string): string =>
    body.replaceAll(/"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|[a-z]\w*|\s+/g, (token) => {
      if (token.startsWith('"')) return `(?:${RegExp.escape(JSON.parse(token) as string)})`
      if (token.startsWith('[')) return token
      return token.trim() === '' ? '' : `(?:${expand(rules.get(token) ?? assert.fail(token))})`
    })
  return new RegExp(`^(?:${expand('root')})$`)
}

const cases: readonly [what: string, schema: object, right: readonly unknown[], wrong: readonly unknown[]][] = [
  [
    'an array within its bounds',
    { type: 'array', items: { type: 'boolean' }, minItems: 2, maxItems: 3 },
    [
      [true, false],
      [true, true, true],
    ],
    [[], [true], [true, true, true, true], [1, 2]],
  ],
  ['an array that may be empty', { type: 'array', items: { type: 'null' }, maxItems: 1 }, [[], [null]], [[null, null]]],
  [
    'an array with a prefix',
    { type: 'array', prefixItems: [{ const: 1 }, { const: 2 }], items: { type: 'boolean' }, minItems: 3, maxItems: 4 },
    [
      [1, 2, true],
      [1, 2, true, false],
    ],
    [
      [1, 2],
      [1, 2, true, true, true],
      [2, 1, true],
    ],
  ],
  ['a string within its bounds', { type: 'string', minLength: 2, maxLength: 3 }, ['ab', 'abc'], ['a', 'abcd', 12]],
  [
    'whole numbers without their exclusive bounds',
    { type: 'integer', exclusiveMinimum: 2, exclusiveMaximum: 12 },
    [3, 9, 11],
    [2, 12, 0, 13, -3],
  ],
  ['whole numbers with their bounds', { type: 'integer', minimum: -12, maximum: 2 }, [-12, -1, 0, 2], [-13, 3, 12]],
  ['decimals with their bounds', { type: 'number', minimum: 1, maximum: 3 }, [1, 1.5, 2.99, 3], [0.9, 3.1, 4]],
  [
    'texts with quotes and backslashes',
    { enum: ['say "hi"', 'back\\slash', 'line\nend'] },
    ['say "hi"', 'back\\slash', 'line\nend'],
    ['say hi', 'backslash'],
  ],
  [
    'a name with a quote',
    { type: 'object', properties: { 'a"b': { type: 'null' } }, required: ['a"b'] },
    [{ 'a"b': null }],
    [{ ab: null }, {}],
  ],
  ['a date', { type: 'string', format: 'date' }, ['2026-12-31'], ['2026-13-01', '2026-1-1', '2026-00-10']],
]

describe('the grammar of a schema', () => {
  for (const [what, schema, right, wrong] of cases) {
    it(`allows exactly ${what}`, () => {
      const language = languageOf(jsonSchemaGrammar(schema as Parameters<typeof jsonSchemaGrammar>[0]))
      for (const value of right) assert.match(JSON.stringify(value), language)
      for (const value of wrong) assert.doesNotMatch(JSON.stringify(value), language)
    })
  }
})
