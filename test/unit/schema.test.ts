import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import TypeBox from 'typebox'
import { Type } from '../../src/core/json/schema.ts'

type Builders = typeof Type

const said = { description: 'What it is.' }

/** A schema with everything that the builders have, made by one of them. */
const schemas: Readonly<Record<keyof Builders, (type: Builders) => unknown>> = {
  Array: (type) => [type.Array(type.String()), type.Array(type.Number(), { minItems: 1, ...said })],
  Boolean: (type) => [type.Boolean(), type.Boolean(said)],
  Enum: (type) => [type.Enum(['a', 'b']), type.Enum(['a', 1], said)],
  Integer: (type) => [type.Integer(), type.Integer({ minimum: 1, maximum: 5 })],
  Literal: (type) => [type.Literal('a'), type.Literal(1), type.Literal(true, said)],
  Null: (type) => [type.Null(), type.Null(said)],
  Number: (type) => [type.Number(), type.Number({ exclusiveMinimum: 0 })],
  Object: (type) => [
    type.Object({}),
    type.Object({ a: type.String(), b: type.Optional(type.Integer()), c: type.Null() }),
    type.Object({ a: type.Optional(type.String()) }, { additionalProperties: false, ...said }),
  ],
  Optional: (type) => {
    const text = type.String(said)
    return type.Object({ there: text, perhaps: type.Optional(text) })
  },
  Partial: (type) => type.Partial(type.Object({ a: type.String(), b: type.Optional(type.Integer()) }, said)),
  String: (type) => [type.String(), type.String({ pattern: '^a+$', expected: 'some a' })],
  Union: (type) => [type.Union([type.String(), type.Null()]), type.Union([type.Integer()], said)],
  Unsafe: (type) => type.Unsafe<string>({ type: 'string', contentEncoding: 'base64' }),
}

describe('schemas are those that TypeBox builds', () => {
  for (const [name, make] of Object.entries(schemas)) {
    it(name, () => {
      // As text, because the order of the fields is that of the published documents.
      assert.equal(JSON.stringify(make(Type), null, 1), JSON.stringify(make(TypeBox), null, 1))
    })
  }

  it('a part that is optional in one object stays required in another', () => {
    const text = Type.String()
    assert.equal(Type.Object({ text: Type.Optional(text) }).required, undefined)
    assert.deepEqual(Type.Object({ text }).required, ['text'])
  })
})
