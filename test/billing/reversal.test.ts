import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isSameCredit } from '../../src/billing/invoices/adjustment-notes.ts'
import type { UnfinishedNote } from '../../src/billing/invoices/invoice-store.ts'
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

describe('a credit that was interrupted', () => {
  const note = { kind: 'adjustment_note', workspaceId: 'ws', period: '2026-11' }
  const unfinished = { note, reversal: { requestIds: ['a', 'b'], reason: 'Wrong.' } } as unknown as UnfinishedNote
  const requested = { workspaceId: 'ws', period: '2026-11', requestIds: ['b', 'a', 'b'], reason: 'Wrong.' }

  it('is the one that is requested, in whatever order its requests are listed', () => {
    assert.ok(isSameCredit(unfinished, requested))
    const ofAll = { ...unfinished, reversal: { ...unfinished.reversal, requestIds: null } }
    assert.ok(isSameCredit(ofAll, { ...requested, requestIds: null }))
    assert.ok(!isSameCredit(ofAll, requested))
  })

  it('is another one with any difference', () => {
    for (const change of [{ workspaceId: 'x' }, { period: '2026-10' }, { requestIds: ['a'] }, { reason: 'Blank.' }]) {
      assert.ok(!isSameCredit(unfinished, { ...requested, ...change }), JSON.stringify(change))
    }
    const invoice = { ...unfinished, note: { ...unfinished.note, kind: 'tax_invoice' as const } }
    assert.ok(!isSameCredit(invoice, requested))
  })
})
