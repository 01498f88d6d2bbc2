import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { emptySums } from '../../src/billing/invoices/priced-sums.ts'
import { ownGroupings, usageReport } from '../../src/billing/usage/usage-report.ts'
import type { UsageQuery, UsageStore } from '../../src/billing/usage/usage-store.ts'
import { sampleRow } from '../support/ledger-samples.ts'

/** A store with so many rows, and as many models. */
function storeOf(count: number): UsageStore {
  const names = Array.from({ length: count }, (_, index) => `name-${index}`)
  const sums = emptySums('', 0)
  const pageAfter = (name: string | undefined, limit: number): readonly string[] => {
    const start = name === undefined ? 0 : names.indexOf(name) + 1
    return names.slice(start, start + limit)
  }
  return {
    usage: async ({ limit, after }: UsageQuery) => pageAfter(after?.requestId, limit).map((name) => sampleRow(name)),
    usageSums: async ({ limit, after }: { limit: number; after: string | undefined }) =>
      pageAfter(after, limit).map((group) => ({ ...sums, group })),
    usageTotal: async () => ({ ...sums, requests: count }),
  } as unknown as UsageStore
}

interface Page {
  readonly data: readonly Readonly<Record<string, unknown>>[]
  readonly has_more: boolean
  readonly total?: { readonly requests: number }
  readonly next: string | null
}

async function report(count: number, query: string): Promise<Page> {
  const scope = { workspaceId: 'ws_1', groupings: ownGroupings }
  const pieces = await Array.fromAsync(usageReport(storeOf(count), scope, new URLSearchParams(query)))
  return JSON.parse(pieces.join('')) as Page
}

describe('a page of usage', () => {
  for (const [grouping, name] of [
    ['', 'request_id'],
    ['&group_by=model', 'model'],
  ] as const) {
    for (const limit of [3, 500, 1200]) {
      const query = `limit=${limit}${grouping}`
      it(`has every entry once, and is the last one when nothing is left: ${query}`, async () => {
        for (const count of [0, 1, limit - 1, limit]) {
          const { data, has_more: hasMore, next } = await report(count, query)
          assert.deepEqual([new Set(data.map((it) => it[name])).size, data.length], [count, count])
          assert.deepEqual([hasMore, next], [false, null])
        }
        const { data, has_more: hasMore, next } = await report(limit + 1, query)
        assert.deepEqual([data.length, hasMore], [limit, true])
        assert.match(next ?? '', new RegExp(`name-${limit - 1}$`))
      })
    }
  }

  it('has the total of all groups, also of those on other pages', async () => {
    const totals: unknown[] = []
    let after = ''
    do {
      const page = await report(5, `limit=2&group_by=model${after}`)
      totals.push(page.total?.requests)
      after = page.next === null ? '' : `&after=${page.next}`
    } while (after !== '')
    assert.deepEqual(totals, [5, 5, 5])
  })
})

describe('a report by groups', () => {
  const period = (grouping: string, from: string, to: string): Promise<Page> =>
    report(0, `group_by=${grouping}&from=${from}&to=${to}`)

  it('accepts whole hours and dates, and for days only dates', async () => {
    await period('model', '2026-11-15T09:00:00Z', '2026-11-15T10:00:00Z')
    await period('model', '2026-11-15', '2026-11-16')
    await period('day', '2026-11-15', '2026-11-16')
    for (const [grouping, from, to, message] of [
      ['model', '2026-11-15T09:00:01Z', '2026-11-16', /'from' must be on the hour/],
      ['model', '2026-11-15', '2026-11-15T09:30:00Z', /'to' must be on the hour/],
      ['day', '2026-11-15T09:00:00Z', '2026-11-16', /'from' must be a date/],
    ] as const) {
      await assert.rejects(period(grouping, from, to), { code: 'invalid_value', message })
    }
  })
})
