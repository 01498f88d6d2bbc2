import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ApiError, errorTable, type ErrorCode } from '../../src/shared/errors.ts'

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

describe('the table of errors', () => {
  it('[X3] gives every error the type of its status, and a pause to those that may pass', () => {
    const types: Partial<Record<number, string>> = {
      402: 'billing_error',
      403: 'permission_error',
      429: 'rate_limit_error',
    }
    for (const [code, { status, type }] of Object.entries(errorTable)) {
      assert.equal(type, types[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error'), code)
    }
    const pauses = Object.entries(errorTable).flatMap(([code, { retryAfter }]) =>
      retryAfter === null ? [] : [[code, retryAfter]],
    )
    assert.deepEqual(Object.fromEntries(pauses), {
      request_timeout: 1,
      rate_limit_exceeded: 'computed',
      queue_full: 'computed',
      workspace_queue_full: 'computed',
      no_idle_capacity: 'computed',
      internal_error: 2,
      upstream_error: 2,
      model_overloaded: 5,
      model_not_configured: 10,
      model_unavailable: 10,
      service_unavailable: 2,
      upstream_timeout: 5,
    })
  })
})

/** The same request may succeed later by itself. SDKs repeat 408, 409, 429 and 5xx unless a header forbids it. */
const WORTH_A_WAIT = new Set<ErrorCode>([
  'request_timeout',
  'rate_limit_exceeded',
  'queue_full',
  'workspace_queue_full',
  'no_idle_capacity',
  'internal_error',
  'upstream_error',
  'model_overloaded',
  'model_unavailable',
  'service_unavailable',
  'upstream_timeout',
])

describe('X-Should-Retry', () => {
  for (const code of Object.keys(errorTable) as ErrorCode[]) {
    const helps = WORTH_A_WAIT.has(code)
    it(`[X3] is ${helps ? 'left out, because waiting may help' : 'false, because waiting does not help'}: ${code}`, () => {
      assert.equal(new ApiError(code, '').retryHeaders()['X-Should-Retry'], helps ? undefined : 'false')
    })
  }

  it('differs for cases that differ from the others of their code, and does not change Retry-After', () => {
    const downloading = new ApiError('model_not_configured', '', { waitingHelps: true })
    assert.deepEqual(downloading.retryHeaders(), { 'Retry-After': '10' })
    const refusedKey = new ApiError('upstream_error', '', { waitingHelps: false })
    assert.deepEqual(refusedKey.retryHeaders(), { 'Retry-After': '2', 'X-Should-Retry': 'false' })
  })
})
