import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eachPage, exportColumns, exportRows } from '../../src/billing/usage-export.ts'
import type { LedgerRow } from '../../src/core/money/ledger.ts'
import type { UsageQuery, UsageStore } from '../../src/ports/usage.ts'
import { sampleRow } from '../support/ledger-samples.ts'

/** A store that has these rows, in order. */
function storeOf(rows: readonly LedgerRow[]): UsageStore {
  return {
    async usage({ after, limit }: UsageQuery) {
      const start = after ? rows.findIndex(({ requestId }) => requestId === after.requestId) + 1 : 0
      return rows.slice(start, start + limit)
    },
  } as unknown as UsageStore
}

const query: UsageQuery = { workspaceId: 'ws_1', from: 0, to: 10, limit: 1 }

async function exported(rows: readonly LedgerRow[]): Promise<string> {
  return (await Array.fromAsync(exportRows(storeOf(rows), query, 'csv'))).join('')
}

describe('an export of usage', () => {
  for (const count of [0, 1, 4999, 5000, 5001, 10_000, 10_001]) {
    it(`has every row once: ${count}`, async () => {
      const rows = Array.from({ length: count }, (_, index) => sampleRow(`request-${index}`))
      const pages = await Array.fromAsync(eachPage(storeOf(rows), query))
      assert.deepEqual(
        pages.flat().map(({ requestId }) => requestId),
        rows.map(({ requestId }) => requestId),
      )
    })
  }

  it('quotes a cell that has a comma, a quote or a line end, and doubles its quotes', async () => {
    const correction = { of: 'a', reason: 'twice, said "Ann"\nand Bob', creditNote: '' }
    const text = await exported([sampleRow('b', { correction, httpStatus: 502, errorCode: 'upstream_error' })])
    assert.equal(text.split('\n', 1)[0], exportColumns.join(','))
    assert.ok(text.endsWith(',"twice, said ""Ann""\nand Bob",502,upstream_error\n'), text)
  })
})
