import { sydneyMonth } from '../../src/shared/money/sydney-time.ts'
import { openStoreHere } from '../../src/store/open.ts'
import type { TestWeir } from './weir.ts'

/** The last month in Sydney that is over, and can be invoiced. */
export const lastMonth = sydneyMonth(sydneyMonth(Date.now()).from - 1)

/** Copies the first row of the ledger into the last month, as copy-0, copy-1 and so on. */
export async function copyToLastMonth(weir: TestWeir, copies: number): Promise<void> {
  const store = await openStoreHere({ dataDir: weir.dataDir, exclusive: false })
  const [row] = await weir.ledger()
  // Today's price is younger than the copies, so they get a price of their own time.
  const prices = await store.priceVersions()
  const list = prices.find(({ model }) => model === 'meta/test-8b')!
  const [version] = await store.addPriceVersions([{ ...list, effectiveFrom: lastMonth.from, latest: list.id }])
  const at = lastMonth.to - 1
  const rows = Array.from({ length: copies }, (_, index) => ({
    ...row!,
    requestId: `copy-${index}`,
    priceVersion: version!,
    startedAt: at,
    settledAt: at,
  }))
  await store.addRows(rows)
  await store.close()
}

/** Makes a workspace that used A$1.00 in the last month. */
export async function useLastMonth(weir: TestWeir, name: string): Promise<void> {
  const created = (await (await weir.admin('POST', '/admin/v1/workspaces', { name })).json()) as { id: string }
  const store = await openStoreHere({ dataDir: weir.dataDir, exclusive: false })
  const row = (await store.usageRow('copy-0'))!
  const inputTokens = 5_000_000
  const own = { requestId: `${name}-0`, workspaceId: created.id, inputTokens, cachedInputTokens: 0, outputTokens: 0 }
  await store.addRows([{ ...row, ...own, amount: 1_000_000_000_000n }])
  await store.close()
}
