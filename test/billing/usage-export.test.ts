import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eachPage, exportColumns, exportFileName, exportRows } from '../../src/billing/usage/usage-export.ts'
import { usageQuery } from '../../src/billing/usage/views.ts'
import type { LedgerRow } from '../../src/ledger/rows.ts'
import type { UsageQuery, UsageStore } from '../../src/billing/usage/usage-store.ts'
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
    assert.ok(text.endsWith(',"twice, said ""Ann""\nand Bob",502,upstream_error,default\n'), text)
  })

  it('has the amount in dollars and the day in Sydney', async () => {
    const settledAt = Date.UTC(2026, 10, 15, 13, 30)
    const [head = '', line = ''] = (await exported([sampleRow('a', { settledAt, amount: -2_700_000n })])).split('\n')
    const cell = (name: string) => line.split(',')[head.split(',').indexOf(name)]
    assert.deepEqual(['settled', 'date_sydney', 'amount_aud', 'amount_pico_aud'].map(cell), [
      '2026-11-15T13:30:00.000Z',
      '2026-11-16',
      '-0.0000027',
      '-2700000',
    ])
  })

  it('is in a file with its period in the name', () => {
    const name = (period: { from?: string; to?: string }) => exportFileName(usageQuery('ws_1', period), 'csv')
    assert.equal(name({ from: '2026-11-01', to: '2026-11-30' }), 'usage-2026-11-01-to-2026-11-30.csv')
    assert.equal(name({ from: '2026-11-01T00:00:00Z' }), 'usage-2026-11-01.csv')
    assert.equal(name({ to: '2026-11-30' }), 'usage-to-2026-11-30.csv')
    assert.equal(name({}), 'usage.csv')
  })
})
