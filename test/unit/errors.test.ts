import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ApiError } from '../../src/core/errors.ts'

describe('the Retry-After of an error', () => {
  it('is a whole number of seconds from 1 to 59, whatever was computed', () => {
    const secondsFor = (retryAfter: number) => new ApiError('queue_full', '', { retryAfter }).retryAfter
    assert.deepEqual([0, 0.2, 1, 1.2, 59, 60, 3600].map(secondsFor), [1, 1, 1, 2, 59, 59, 59])
  })

  it('comes from the table for every other error', () => {
    assert.equal(new ApiError('model_overloaded', '', { retryAfter: 30 }).retryAfter, 5)
    assert.equal(new ApiError('invalid_json', '', { retryAfter: 30 }).retryAfter, null)
  })
})
