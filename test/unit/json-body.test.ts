import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ApiError } from '../../src/core/errors.ts'
import { parsedBody as parse } from '../support/sliced.ts'

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
})
