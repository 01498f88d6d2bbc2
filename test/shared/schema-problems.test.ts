import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import Type, { type TSchema } from 'typebox'
import { formatPath } from '../../src/shared/json/schema-check.ts'
import { findSchemaProblems } from '../../src/shared/json/schema-problems.ts'

/** Every problem, each in one line: `path kind expected`. */
function problems(schema: TSchema, value: unknown): readonly string[] {
  return findSchemaProblems(schema, value).map(
    ({ path, kind, expected }) => `${formatPath(path) || '.'} ${kind}: ${expected}`,
  )
}

const inner = Type.Object({ c: Type.Integer(), d: Type.Optional(Type.Boolean()) }, { additionalProperties: false })
const schema = Type.Object(
  {
    a: Type.String({ minLength: 1 }),
    b: Type.Optional(inner),
    list: Type.Optional(Type.Array(inner, { minItems: 1, maxItems: 3 })),
    any: Type.Optional(Type.Object({})),
  },
  { additionalProperties: false },
)

describe('the problems of a value', () => {
  it('are empty if there are none', () => {
    assert.deepEqual(problems(schema, { a: 'x', b: { c: 1, d: null }, list: [{ c: 2 }], any: { z: 1 } }), [])
    assert.deepEqual(problems(schema, { a: 'x', b: null, list: undefined }), [])
    assert.deepEqual(problems(Type.String(), 'x'), [])
  })

  it('are all of them, in every object and every item', () => {
    const value = { y: 1, b: { c: 'x', d: 1, z: 2 }, list: [{ c: 1 }, { c: 1.5 }, {}], x: null, w: 3 }
    assert.deepEqual(problems(schema, value), [
      'a missing: a non-empty string',
      'y unknown: a, b, list, any',
      'w unknown: a, b, list, any',
      'b.z unknown: c, d',
      'b.c type: an integer',
      'b.d type: true or false',
      'list[1].c type: an integer',
      'list[2].c missing: an integer',
    ])
  })

  it('are only those of the list if it is too short or too long', () => {
    assert.deepEqual(problems(schema, { a: 'x', list: [] }), ['list value: an array of 1 to 3 items'])
    const four = [1, 2, 3, 4]
    assert.deepEqual(problems(schema, { a: 'x', list: four }), ['list value: an array of 1 to 3 items'])
  })

  it('are those of the type if it is another one', () => {
    for (const value of [null, [], 'x', 5, undefined]) assert.deepEqual(problems(schema, value), ['. type: an object'])
    assert.deepEqual(problems(schema, { a: 5, b: [], list: {}, any: 'x' }), [
      'a type: a non-empty string',
      'b type: an object',
      'list type: an array of 1 to 3 items',
      'any type: an object',
    ])
  })

  it('are those of each required field that is missing or null', () => {
    const two = Type.Object({ a: Type.String(), b: Type.String() })
    assert.deepEqual(problems(two, { b: null }), ['a missing: a string', 'b missing: a string'])
    assert.deepEqual(problems(two, { a: '', b: '', c: 1 }), [], 'others are allowed here')
  })
})
