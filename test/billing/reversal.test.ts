import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { addTo, emptySums } from '../../src/billing/invoices/priced-sums.ts'
import { reversalOf } from '../../src/ledger/rows.ts'
import { sampleRow } from '../support/ledger-samples.ts'

describe('the reversal of a row', () => {
  it('cancels every figure', () => {
    const row = sampleRow('request', {
      inputTokens: 2,
      cachedInputTokens: 3,
      outputTokens: 5,
      images: 7,
      audioMs: 11,
      capacityMs: 13,
      amount: 17n,
      httpStatus: 200,
      errorCode: 'upstream_error',
    })
    const reversal = reversalOf(row, 'reversal', 10, { of: 'request', reason: 'wrong', creditNote: '' })
    assert.deepEqual([reversal.httpStatus, reversal.errorCode], [null, null])
    const { model, priceVersion } = row
    const both = addTo(addTo(emptySums(model, priceVersion), row), reversal)
    assert.deepEqual({ ...both, rows: 0, requests: 0, estimatedRequests: 0 }, emptySums(model, priceVersion))
  })
})
