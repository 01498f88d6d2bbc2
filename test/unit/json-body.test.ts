import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ApiError } from '../../src/core/errors.ts'
import { parsedBody as parse } from '../support/made-job.ts'

const isRefused = (words: RegExp) => (error: unknown) =>
  error instanceof ApiError && error.code === 'invalid_json' && words.test(error.message)

describe('a JSON body', () => {
  it('may be nested 100 levels deep, and not one more', () => {
    const nested = (levels: number): string => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
    assert.ok(parse(nested(100)).value['a'])
    assert.throws(() => parse(nested(101)), isRefused(/deeper than 100 levels/))
  })

  it('may have 250,000 values, and not one more', () => {
    // The object and the array count as one value each, and every comma as another.
    const list = (commas: number): string => `{"a":[${'0,'.repeat(commas)}0]}`
    assert.equal((parse(list(249_998)).value['a'] as unknown[]).length, 249_999)
    assert.throws(() => parse(list(249_999)), isRefused(/more than 250000 values/))
  })

  it('may have 50,000 objects and arrays, and not one more', () => {
    // The body and the list are the first two.
    const list = (objects: number): string => `{"a":[${'{},'.repeat(objects - 3)}{}]}`
    assert.equal((parse(list(50_000)).value['a'] as unknown[]).length, 49_998)
    assert.throws(() => parse(list(50_001)), isRefused(/more than 50000 objects and arrays/))
  })

  it('may have 10,000 fields in one object, and not one more', () => {
    const fields = (count: number): string => Array.from({ length: count }, (_, index) => `"${index}":0`).join(',')
    assert.equal(Object.keys(parse(`{"a":{${fields(10_000)}}}`).value['a'] as object).length, 10_000)
    assert.equal(Object.keys(parse(`{"a":[{${fields(9000)}},{${fields(9000)}}]}`).value).length, 1)
    assert.throws(() => parse(`{"a":{${fields(10_001)}}}`), isRefused(/more than 10000 fields/))
  })

  it('is refused with the place of a mistake, and without repeating its text', () => {
    const text = `{"a":"${'x'.repeat(500)}","b":[1,2,"secret" 3]}`
    assert.throws(
      () => parse(text),
      (error: ApiError) => {
        assert.equal(error.message, `The body is not valid JSON (at position ${text.indexOf(' 3]') + 1}).`)
        assert.doesNotMatch(`${String(error.cause)} ${error.stack}`, /secret/)
        return error.code === 'invalid_json'
      },
    )
  })
})
