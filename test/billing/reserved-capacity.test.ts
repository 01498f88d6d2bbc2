import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { capacityRows } from '../../src/billing/invoices/capacity.ts'
import { parseCatalog } from '../../src/catalog/file.ts'
import { openPriceBook } from '../../src/billing/prices/price-book.ts'
import { memoryChanges } from '../../src/cluster/changes/memory.ts'
import type { Model } from '../../src/catalog/model.ts'
import { parseMonth, type Month } from '../../src/shared/money/sydney-time.ts'
import type { PriceVersion, Workspace } from '../../src/workspaces/workspace.ts'
import { memoryPrices } from '../support/memory-prices.ts'

const HOUR_MS = 3_600_000

/** The catalog with capacity reserved at these prices per hour, by workspace. */
function catalogOf(reserved: Readonly<Record<string, string>>): readonly Model[] {
  const dedicated = Object.entries(reserved).map(([workspace, perHour]) => ({ workspace, per_hour: perHour }))
  const entry = { id: 'meta/a', categories: ['llm'], context_length: 10, dedicated }
  return parseCatalog(JSON.stringify({ models: [entry] }), 'catalog.yaml', () => undefined)
}

async function emptyBook() {
  const { store, versions } = memoryPrices()
  const clock = { ms: 0, now: () => clock.ms, monotonic: () => 0 }
  return { book: await openPriceBook(store, clock, memoryChanges()), versions, clock }
}

describe('reserved capacity', () => {
  it('has an hourly price that starts, changes and ends with its entry in the catalog', async () => {
    const { book, versions, clock } = await emptyBook()
    for (const [at, reserved] of [
      [1000, { acme: '2.00', beta: '3.00' }],
      [2000, { acme: '2.00', beta: '3.00' }],
      [3000, { acme: '2.50', beta: '3.00' }],
      [4000, { beta: '3.00' }],
      [5000, { beta: '3.00' }],
      [6000, { acme: '2.50', beta: '3.00' }],
    ] as const) {
      clock.ms = at
      await book.syncListPrices(catalogOf(reserved))
    }
    const ofLane = (lane: string) =>
      versions
        .filter(({ model }) => model === lane)
        .map(({ effectiveFrom, prices }) => [effectiveFrom, prices?.per_hour ?? null])
    assert.deepEqual(ofLane('meta/a@beta'), [[1000, '3.00']])
    assert.deepEqual(ofLane('meta/a@acme'), [
      [1000, '2.00'],
      [3000, '2.50'],
      [4000, null],
      [6000, '2.50'],
    ])
  })
})

describe('the bill for reserved capacity', () => {
  const month: Month = parseMonth('2026-07')!
  const workspace = { id: 'ws', name: 'acme', createdAt: 0 } as Workspace
  const version = (id: number, lane: string, from: number, perHour: string | null): PriceVersion => ({
    id,
    model: lane,
    workspaceId: null,
    prices: perHour === null ? null : { per_hour: perHour },
    effectiveFrom: from,
  })
  const billed = (prices: readonly PriceVersion[], now = month.to + 1) =>
    capacityRows(prices, workspace, month, now).map(({ capacityMs = 0, amount, priceVersion }) => [
      priceVersion,
      capacityMs / HOUR_MS,
      amount,
    ])

  it('covers the whole month once it is over, and until now before that', () => {
    const prices = [version(1, 'meta/a@acme', 0, '1')]
    assert.deepEqual(billed(prices), [[1, 744, 744n * 10n ** 12n]])
    assert.deepEqual(billed(prices, month.from + 5 * HOUR_MS), [[1, 5, 5n * 10n ** 12n]])
    assert.deepEqual(billed(prices, month.from), [])
  })

  it('covers the time between the start and the end of the reservation, at each price', () => {
    const prices = [
      version(1, 'meta/a@acme', month.from + 2 * HOUR_MS, '1'),
      version(2, 'meta/a@acme', month.from + 5 * HOUR_MS, '2'),
      version(3, 'meta/a@acme', month.from + 6 * HOUR_MS, null),
      version(4, 'meta/a@acme', month.to - HOUR_MS, '3'),
    ]
    assert.deepEqual(billed(prices), [
      [1, 3, 3n * 10n ** 12n],
      [2, 1, 2n * 10n ** 12n],
      [4, 1, 3n * 10n ** 12n],
    ])
  })

  it('is at one price at a time, also if a clock was fast when a price was stored', () => {
    const prices = [
      version(1, 'meta/a@acme', month.from, '1'),
      version(2, 'meta/a@acme', month.from + 9 * HOUR_MS, '2'),
      version(3, 'meta/a@acme', month.from + 3 * HOUR_MS, '3'),
    ]
    assert.deepEqual(billed(prices, month.from + 10 * HOUR_MS), [
      [1, 3, 3n * 10n ** 12n],
      [3, 7, 21n * 10n ** 12n],
    ])
  })

  it('does not cover the time before the workspace existed', () => {
    const late = { ...workspace, createdAt: month.to - 2 * HOUR_MS }
    const [row] = capacityRows([version(1, 'meta/a@acme', 0, '1')], late, month, month.to)
    assert.equal(row?.capacityMs, 2 * HOUR_MS)
  })

  it('is for its workspace alone, however similar the names are', () => {
    const others = ['meta/a@not-acme', 'meta/a@acme2', 'meta/a@ACME', 'meta/acme']
    assert.deepEqual(billed(others.map((lane, index) => version(index + 1, lane, 0, '1'))), [])
  })
})
