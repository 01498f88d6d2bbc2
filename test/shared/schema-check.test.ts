import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import Type, { type TSchema } from 'typebox'
import { modelsSchema, priceListSchema } from '../../src/catalog/file.ts'
import { describeSchema, findSchemaProblem, formatPath } from '../../src/shared/json/schema-check.ts'
import { chatRequestSchema } from '../../src/inference/chat/schema.ts'
import { everyAdminRoute, everyPublicRoute } from '../support/openapi.ts'

/** The problem in one line: `path kind expected`. */
function problem(schema: TSchema, value: unknown): string {
  const found = findSchemaProblem(schema, value)
  return found ? `${formatPath(found.path) || '.'} ${found.kind}: ${found.expected}` : 'fine'
}

describe('a value against its type', () => {
  const wrong: readonly [TSchema, unknown, string][] = [
    [Type.String(), 5, '. type: a string'],
    [Type.String({ minLength: 1 }), '', '. value: a non-empty string'],
    [Type.String({ maxLength: 3 }), 'four', '. value: a string of 0 to 3 characters'],
    [Type.String({ pattern: '^a+$', expected: 'some a' }), 'b', '. value: some a'],
    [Type.Boolean(), 'true', '. type: true or false'],
    [Type.Integer(), 1.5, '. type: an integer'],
    [Type.Integer(), '1', '. type: an integer'],
    [Type.Integer({ minimum: 1, maximum: 128 }), 129, '. value: an integer from 1 to 128'],
    [Type.Integer({ minimum: 1 }), 0, '. value: an integer of at least 1'],
    [Type.Number(), Number.NaN, '. type: a number'],
    [Type.Number(), Infinity, '. type: a number'],
    [Type.Number({ minimum: -2, maximum: 2 }), -2.01, '. value: a number from -2 to 2'],
    [Type.Number({ exclusiveMinimum: 0 }), 0, '. value: a number above 0'],
    [Type.Literal('list'), 'lists', '. value: "list"'],
    [Type.Literal('list'), 1, '. type: "list"'],
    [Type.Enum(['a', 'b']), 'c', '. value: one of a, b'],
    [Type.Enum(['a', 'b']), 3, '. type: one of a, b'],
    [Type.Array(Type.String()), {}, '. type: an array'],
    [Type.Array(Type.String(), { minItems: 1 }), [], '. value: a non-empty array'],
    [Type.Array(Type.String(), { maxItems: 1 }), ['a', 'b'], '. value: an array of 0 to 1 items'],
    [Type.Array(Type.String()), ['a', 5], '[1] type: a string'],
    [Type.Object({}), [], '. type: an object'],
    [Type.Object({}), 'text', '. type: an object'],
    [Type.Object({}, { maxProperties: 1 }), { a: 1, b: 2 }, '. value: an object with at most 1 fields'],
    [
      Type.Object({}, { propertyNames: { maxLength: 2 } }),
      { abc: 1 },
      '. value: an object with names of at most 2 characters',
    ],
    [
      Type.Object({}, { maxProperties: 2, propertyNames: { maxLength: 2 } }),
      { abc: 1 },
      '. value: an object with at most 2 fields and names of at most 2 characters',
    ],
    [Type.Object({}, { additionalProperties: false }), { ['é'.repeat(101)]: 1 }, `${'é'.repeat(100)}… unknown: `],
  ]
  for (const [schema, value, expected] of wrong) {
    it(`${JSON.stringify(value)} is refused: ${expected}`, () => assert.equal(problem(schema, value), expected))
  }

  it('is valid up to and including the bounds', () => {
    assert.equal(problem(Type.Integer({ minimum: 1, maximum: 128 }), 128), 'fine')
    assert.equal(problem(Type.Number({ minimum: -2, maximum: 2 }), -2), 'fine')
    assert.equal(problem(Type.Number({ exclusiveMinimum: 0 }), 0.001), 'fine')
    assert.equal(problem(Type.String({ minLength: 1, maxLength: 3 }), 'abc'), 'fine')
    assert.equal(problem(Type.Array(Type.String(), { minItems: 1, maxItems: 1 }), ['']), 'fine')
    assert.equal(
      problem(Type.Object({}, { maxProperties: 2, propertyNames: { maxLength: 2 } }), { ab: 1, b: 2 }),
      'fine',
    )
  })
})

describe('the fields of an object', () => {
  const schema = Type.Object({
    a: Type.String(),
    b: Type.Optional(Type.Object({ c: Type.Array(Type.Object({ d: Type.Integer() })) })),
  })
  const closed = Type.Object({ a: Type.Optional(Type.String()) }, { additionalProperties: false })

  it('are named with their full path', () => {
    assert.equal(problem(schema, { a: 'x', b: { c: [{ d: 1 }, { d: 'x' }] } }), 'b.c[1].d type: an integer')
    assert.equal(problem(schema, { a: 'x', b: { c: [{}] } }), 'b.c[0].d missing: an integer')
    assert.equal(problem(schema, { b: null }), 'a missing: a string')
  })

  it('count as absent when they are null', () => {
    assert.equal(problem(schema, { a: 'x', b: null }), 'fine')
    assert.equal(problem(schema, { a: null }), 'a missing: a string')
    assert.equal(problem(closed, { unknown: null }), 'fine')
  })

  it('may be unknown, unless the schema is closed: then the problem lists the known ones', () => {
    assert.equal(problem(schema, { a: 'x', z: 1 }), 'fine')
    assert.equal(problem(closed, { b: 1 }), 'b unknown: a')
  })

  it('are never taken from the prototype', () => {
    for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
      const value = JSON.parse(`{"a":"x","${name}":{"a":5}}`) as unknown
      assert.equal(problem(schema, value), 'fine')
      assert.equal(problem(closed, value), `${name} unknown: a`)
    }
  })

  it('may all share one schema', () => {
    const record = Type.Object({}, { additionalProperties: Type.Number({ minimum: 0, maximum: 1 }) })
    assert.equal(problem(record, { one: 0.5, two: 1 }), 'fine')
    assert.equal(problem(record, { one: 0.5, two: 2 }), 'two value: a number from 0 to 1')
  })
})

describe('one of several schemas', () => {
  const stop = Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: 2 })])
  const part = Type.Union([
    Type.Object({ type: Type.Literal('text'), text: Type.String() }),
    Type.Object({ type: Type.Literal('image'), url: Type.String() }),
  ])
  const choice = Type.Union([
    Type.Enum(['none', 'auto']),
    Type.Object({ type: Type.Literal('function'), name: Type.String() }),
  ])

  it('reports problems of the one that was meant', () => {
    assert.equal(problem(stop, 'x'), 'fine')
    assert.equal(problem(stop, ['x', 'y']), 'fine')
    assert.equal(problem(stop, ['x', 5]), '[1] type: a string')
    assert.equal(problem(stop, ['x', 'y', 'z']), '. value: an array of 0 to 2 items')
    assert.equal(problem(part, { type: 'image', url: 5 }), 'url type: a string')
    assert.equal(problem(choice, { type: 'function' }), 'name missing: a string')
  })

  it('lists all of them when none was meant', () => {
    assert.equal(problem(stop, 5), '. type: a string, or an array of 0 to 2 items')
    assert.equal(problem(part, { type: 'audio' }), 'type value: one of text, image')
    assert.equal(problem(part, { text: 'x' }), 'type missing: one of text, image')
    assert.equal(problem(choice, 'maybe'), '. value: one of none, auto')
    assert.equal(problem(choice, 5), '. type: one of none, auto, or an object')
  })
})

describe('every schema that values are checked with', () => {
  const supported = new Set(
    `type const enum anyOf properties required additionalProperties maxProperties propertyNames items minItems maxItems minLength maxLength
     pattern minimum maximum exclusiveMinimum expected description example format=binary`.split(/\s+/),
  )

  function keywordsOf(schema: unknown): string[] {
    if (typeof schema !== 'object' || schema === null) return []
    const { properties = {}, items, anyOf = [], additionalProperties } = schema as Record<string, object>
    return [
      ...Object.entries(schema).map(([name, value]) => (name === 'format' ? `format=${String(value)}` : name)),
      ...[...Object.values(properties), items, ...(anyOf as object[]), additionalProperties].flatMap(keywordsOf),
    ]
  }

  it('uses only supported keywords, because any other would be ignored silently', () => {
    assert.deepEqual(
      keywordsOf(Type.Record(Type.String(), Type.Number())).filter((it) => !supported.has(it)),
      ['patternProperties'],
    )
    const requests = [...everyPublicRoute(), ...everyAdminRoute()].flatMap(({ operation }) => [
      ...(operation?.request ? [operation.request.schema] : []),
      ...(operation?.query ? [operation.query] : []),
    ])
    assert.ok(requests.length > 10)
    for (const schema of [...requests, modelsSchema, priceListSchema]) {
      assert.deepEqual(
        keywordsOf(schema).filter((keyword) => !supported.has(keyword)),
        [],
      )
    }
  })

  it('can be described in words', () => {
    for (const schema of Object.values(chatRequestSchema.properties)) {
      assert.notEqual(describeSchema(schema), 'any value')
      assert.ok(!describeSchema(schema).includes('undefined'))
    }
  })
})

describe('a value with several alternatives', () => {
  const text = Type.Object({ type: Type.Literal('text'), text: Type.String() })
  const image = Type.Object({ type: Type.Literal('image'), url: Type.String() })
  const content = Type.Union([Type.String({ maxLength: 2 }), Type.Array(Type.Union([text, image]))])

  it('is checked against the one that it is meant to be', () => {
    const cases: readonly (readonly [TSchema, unknown, string])[] = [
      [content, 'ab', 'fine'],
      [content, 'abc', '. value: a string of 0 to 2 characters'],
      [content, 5, '. type: a string of 0 to 2 characters, or an array'],
      [
        content,
        [
          { type: 'text', text: 'a' },
          { type: 'image', url: 'u' },
        ],
        'fine',
      ],
      [content, [{ type: 'image', text: 'a' }], '[0].url missing: a string'],
      [content, [{ type: 'video' }], '[0].type value: one of text, image'],
      [content, [{}], '[0].type missing: one of text, image'],
      [content, [{ type: null }], '[0].type value: one of text, image'],
      [content, [5], '[0] type: an object'],
    ]
    for (const [schema, value, expected] of cases) assert.equal(problem(schema, value), expected, JSON.stringify(value))
  })

  it('may be a list of one of several types, which its first item determines', () => {
    const lists = Type.Union([
      Type.String(),
      Type.Array(Type.String()),
      Type.Array(Type.Integer()),
      Type.Array(Type.Array(Type.Integer())),
    ])
    const cases: readonly (readonly [unknown, string])[] = [
      [[], 'fine'],
      [['a', 'b'], 'fine'],
      [[1, 2], 'fine'],
      [[[1], [2]], 'fine'],
      [['a', 1], '[1] type: a string'],
      [[1, 'a'], '[1] type: an integer'],
      [[1.5], '[0] type: an integer'],
      [[[1], ['a']], '[1][0] type: an integer'],
      [[true], '[0] type: a string'],
      [{}, '. type: a string, or an array'],
    ]
    for (const [value, expected] of cases) assert.equal(problem(lists, value), expected, JSON.stringify(value))
  })

  it('may be one of several words or an object', () => {
    const choice = Type.Union([Type.Enum(['none', 'auto']), Type.Object({ name: Type.String() })])
    assert.equal(problem(choice, 'auto'), 'fine')
    assert.equal(problem(choice, 'x'), '. value: one of none, auto')
    assert.equal(problem(choice, { name: 'x' }), 'fine')
    assert.equal(problem(choice, {}), 'name missing: a string')
    assert.equal(problem(choice, []), '. type: one of none, auto, or an object')
    const literals = Type.Union([Type.Literal('a'), Type.Literal('b'), Type.Number()])
    assert.equal(problem(literals, 'c'), '. value: one of a, b, or a number')
    assert.equal(problem(literals, 'b'), 'fine')
    assert.equal(problem(literals, true), '. type: one of a, b, or a number')
  })

  it('may include null, and a list of what it accepts', () => {
    const nullable = Type.Union([Type.Integer({ minimum: 1 }), Type.Null()])
    assert.equal(describeSchema(nullable), 'an integer of at least 1, or null')
    assert.equal(describeSchema(Type.Union([Type.String(), Type.String()])), 'a string')
    assert.equal(describeSchema(Type.Unknown()), 'any value')
    assert.equal(describeSchema(Type.Number({ maximum: 5 })), 'a number')
    assert.equal(describeSchema(Type.String({ minLength: 2, maxLength: 5 })), 'a string of 2 to 5 characters')
    assert.equal(describeSchema(Type.Array(Type.String(), { minItems: 2, maxItems: 5 })), 'an array of 2 to 5 items')
  })
})

describe('the values of a dictionary', () => {
  it('are checked, and named by their keys', () => {
    const numbers = Type.Object(
      { a: Type.Optional(Type.String()) },
      { additionalProperties: Type.Number({ maximum: 1 }) },
    )
    assert.equal(problem(numbers, { a: 'x', b: 1, c: null }), 'fine')
    assert.equal(problem(numbers, { a: 1 }), 'a type: a string')
    assert.equal(problem(numbers, { b: 1, c: 2 }), 'c value: a number')
    assert.equal(problem(numbers, { constructor: 'x' }), 'constructor type: a number')
  })

  it('show no more than 100 characters of a key', () => {
    assert.equal(formatPath(['x'.repeat(100), 1, 'y']), `${'x'.repeat(100)}[1].y`)
    assert.equal(formatPath(['x'.repeat(101)]), `${'x'.repeat(100)}…`)
    assert.equal(formatPath([0, 'a']), '[0].a')
    assert.equal(formatPath([]), '')
  })
})
