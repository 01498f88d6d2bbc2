import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { InvoiceStore, IssuedInvoice } from '../../src/billing/invoices/invoice-store.ts'
import type { SumsQuery } from '../../src/billing/usage/usage-store.ts'
import { expiringKeys, keySpend, newlyOverdue, workspaceSpend } from '../../src/compose/alert-sources.ts'
import { sydneyDayPeriod, sydneyMonth } from '../../src/shared/money/sydney-time.ts'
import type { SpendLimitedKeysQuery, ExpiringKeysQuery } from '../../src/workspaces/keys/key-store.ts'
import type { ApiKey } from '../../src/workspaces/workspace.ts'

/** How alerts read what they watch: in pages of 500, up to the last. The stores are lists. */

const now = Date.UTC(2026, 10, 18, 12)
const clock = { now: () => now, monotonic: () => 0 }

describe('overdue invoices', () => {
  const invoice = (index: number, due: string | null) =>
    ({ number: `INV-${index}`, workspaceId: 'ws', document: { due } }) as unknown as IssuedInvoice
  const storeOf = (invoices: readonly IssuedInvoice[], asked: object[] = []) =>
    ({
      async newestInvoices({ before, ...query }: { before: IssuedInvoice | undefined; limit: number }) {
        asked.push(query)
        const from = before ? invoices.indexOf(before) + 1 : 0
        return invoices.slice(from, from + query.limit)
      },
    }) as unknown as InvoiceStore

  it('are those that became due in the last 30 days', async () => {
    const dues = ['2026-11-17', '2026-10-19', '2026-10-18', null]
    const asked: object[] = []
    const found = await newlyOverdue(
      storeOf(
        dues.map((due, index) => invoice(index, due)),
        asked,
      ),
      now,
    )
    assert.deepEqual(found, [
      { number: 'INV-0', workspaceId: 'ws', due: '2026-11-17' },
      { number: 'INV-1', workspaceId: 'ws', due: '2026-10-19' },
    ])
    const query = { workspaceId: undefined, state: { is: 'overdue', today: '2026-11-18' }, limit: 500 }
    assert.deepEqual(asked, [query, query])
  })

  it('are read to the last page', { timeout: 10_000 }, async () => {
    const invoices = Array.from({ length: 1001 }, (_, index) => invoice(index, '2026-11-17'))
    const found = await newlyOverdue(storeOf(invoices), now)
    assert.deepEqual(
      found.map(({ number }) => number),
      invoices.map(({ number }) => number),
    )
  })
})

describe('the spend of workspaces', () => {
  it('is read in their order, of those that have a limit', async () => {
    const spendLimit = { amount: 10n, isSoft: true }
    const accounts = { workspaces: () => [{ id: 'b', spendLimit }, { id: 'none' }, { id: 'a', spendLimit }] as never }
    const spending = { spent: async (id: string) => (id === 'b' ? 7n : 8n) }
    const state = { period: '2026-11', limit: 10n, isSoft: true }
    assert.deepEqual(await workspaceSpend({ accounts, spending, clock }), [
      { ...state, workspaceId: 'b', spent: 7n },
      { ...state, workspaceId: 'a', spent: 8n },
    ])
  })
})

describe('keys that expire', () => {
  it('are read in pages of 500', async () => {
    const asked: ExpiringKeysQuery[] = []
    const key = { id: 'key', workspaceId: 'ws', expiresAt: now + 1, name: 'not needed' } as ApiKey
    const query = { now, before: now + 2, after: { id: 'a', expiresAt: now } }
    const store = {
      async expiringKeys(it: ExpiringKeysQuery) {
        asked.push(it)
        return [key]
      },
    }
    assert.deepEqual(await expiringKeys(store, query), [{ id: 'key', workspaceId: 'ws', expiresAt: now + 1 }])
    assert.deepEqual(asked, [{ ...query, limit: 500 }])
  })
})

describe('the spend of keys', () => {
  it('is read in pages of 500, and the sums of a page at once', { timeout: 10_000 }, async () => {
    const keys = Array.from({ length: 1001 }, (_, index) => ({
      id: String(index).padStart(4, '0'),
      workspaceId: 'ws',
      spendPerDay: index === 1000 ? null : 10n,
      spendPerMonth: index < 500 ? 0n : 20n,
    })) as unknown as readonly ApiKey[]
    const sums: { readonly from: number; readonly to: number; readonly keyIds: number }[] = []
    const store = {
      async keysWithSpendLimit({ now: at, after = '', limit }: SpendLimitedKeysQuery) {
        assert.equal(at, now)
        return keys.filter(({ id }) => id > after).slice(0, limit)
      },
      async usageSums(query: SumsQuery) {
        const { from, to, keyIds = [] } = query
        assert.deepEqual([query.groupBy, query.limit], ['key', keyIds.length])
        sums.push({ from, to, keyIds: keyIds.length })
        return keyIds.slice(1).map((group) => ({ group, amount: 7n })) as never
      },
    }
    const pages = await Array.fromAsync(keySpend(store, clock))
    const { from, to } = sydneyDayPeriod(now)
    const month = { from: sydneyMonth(now).from, to: sydneyMonth(now).to }
    assert.deepEqual(sums, [
      { from, to, keyIds: 500 },
      { from, to, keyIds: 500 },
      { ...month, keyIds: 500 },
      { ...month, keyIds: 1 },
    ])
    assert.deepEqual(
      pages.map((page) => page.length),
      [500, 1000, 1],
      'a limit of 0 is not reported',
    )
    const day = { workspaceId: 'ws', period: '2026-11-18', limit: 10n }
    assert.deepEqual(pages[0]?.slice(0, 2), [
      { ...day, keyId: '0000', spent: 0n },
      { ...day, keyId: '0001', spent: 7n },
    ])
    assert.deepEqual(pages[2], [{ workspaceId: 'ws', keyId: '1000', period: '2026-11', limit: 20n, spent: 0n }])
  })
})
