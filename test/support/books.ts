import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openAccounts } from '../../src/workspaces/accounts.ts'
import { memoryChanges } from '../../src/cluster/changes/memory.ts'
import { openInvoicing, type Invoicing } from '../../src/billing/invoices/invoices.ts'
import { versionRates } from '../../src/billing/prices/version-rates.ts'
import type { Seller } from '../../src/billing/invoices/invoice-document.ts'
import type { LedgerRow } from '../../src/ledger/rows.ts'
import { noUsage, rate, type PriceList, type Usage } from '../../src/billing/rating/rating.ts'
import type { PriceVersion, Workspace } from '../../src/workspaces/workspace.ts'
import type { Store } from '../../src/store/store.ts'
import { openStoreHere } from '../../src/store/open.ts'

/** A real store with a clock that the test sets, so that rows, prices and invoices can be of any time. */
export interface TestBooks {
  readonly store: Store
  readonly dataDir: string
  readonly invoicing: Invoicing
  now: number
  workspace(name: string): Promise<Workspace>
  price(model: string, prices: PriceList | null, at: number, workspaceId?: string): Promise<number>
  /** A settled row, at the price of its usage. */
  row(workspace: Workspace, model: string, priceVersion: number, at: number, usage: Partial<Usage>): Promise<LedgerRow>
  settle(rows: readonly LedgerRow[]): Promise<void>
  close(): Promise<void>
}

export const seller: Seller = {
  name: 'Weir Example Pty Ltd',
  abn: '51824753556',
  address: '1 Lock Street\nSydney NSW 2000',
  paymentDays: 14,
  paymentDetails: 'BSB 000-000, account 12345678.',
  publicUrl: 'https://api.example.com/weir',
}

export async function testBooks(now: number): Promise<TestBooks> {
  const dataDir = mkdtempSync(join(tmpdir(), 'weir-books-'))
  const store = await openStoreHere({ dataDir, exclusive: false })
  const clock = { now: () => books.now, monotonic: () => 0 }
  const accounts = await openAccounts(store, clock, memoryChanges())
  let lastId = 0
  let prices: readonly PriceVersion[] = []
  const books: TestBooks = {
    store,
    dataDir,
    invoicing: openInvoicing(store, clock, seller),
    now,
    async workspace(name) {
      await accounts.createWorkspace(name)
      return accounts.setBuyer(name, { name, abn: '83914571673', address: null, purchaseOrder: null, email: null })
    },
    async price(model, list, at, workspaceId) {
      const version = { model, workspaceId: workspaceId ?? null, prices: list, effectiveFrom: at }
      const last = prices.findLast((it) => it.model === model && it.workspaceId === version.workspaceId)
      const [id] = await store.addPriceVersions([{ ...version, latest: last?.id ?? 0 }])
      prices = await store.priceVersions()
      return id!
    },
    async row(workspace, model, priceVersion, at, usage) {
      const full = { ...noUsage, ...usage }
      return {
        ...full,
        requestId: `request-${String(++lastId).padStart(9, '0')}`,
        workspaceId: workspace.id,
        keyId: 'key_1',
        model,
        lane: model,
        endpoint: '/chat/completions',
        priceVersion,
        maxTokens: 100,
        startedAt: at,
        tier: versionRates(prices)(priceVersion).tier,
        estimated: false,
        outcome: 'completed',
        httpStatus: 200,
        errorCode: null,
        amount: rate(full, versionRates(prices)(priceVersion)),
        queueWaitMs: 0,
        firstTokenMs: null,
        durationMs: 1,
        settledAt: at,
      }
    },
    settle: (rows) => store.addRows(rows),
    async close() {
      await store.close()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
  return books
}
