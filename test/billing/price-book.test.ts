import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { openPriceBook, type PriceBook } from '../../src/billing/prices/price-book.ts'
import { memoryChanges } from '../../src/cluster/changes/memory.ts'
import { parseCatalog } from '../../src/catalog/file.ts'
import type { Model } from '../../src/catalog/model.ts'
import { imageKind, type ModelPrices } from '../../src/billing/rating/price-kinds.ts'
import { freeVersions } from '../../src/billing/rating/rating.ts'
import type { Store } from '../../src/store/store.ts'
import type { NewPriceVersion } from '../../src/workspaces/account-store.ts'
import { memoryPrices } from '../support/memory-prices.ts'
import { orderOfChanges } from '../support/order-of-changes.ts'

function catalogOf(
  pricing: ModelPrices,
  id = 'meta/a',
  dedicated: readonly object[] = [{ workspace: 'acme' }],
): Model[] {
  const entry = { id, categories: ['llm'], context_length: 10, pricing, dedicated }
  return [...parseCatalog(JSON.stringify({ models: [entry] }), 'catalog.yaml', () => undefined)]
}

fc.configureGlobal({ seed: 1 })

/** A price book over a store that has only prices, with a clock that advances each time it is read. */
async function emptyBook() {
  const { store, versions, onVersion } = memoryPrices()
  let now = 1000
  const clock = { now: () => now++, monotonic: () => 0 }
  const open = (): Promise<PriceBook> => openPriceBook(store, clock, memoryChanges())
  return { book: await open(), again: open, versions, onVersion, store }
}

const expensive = { input_per_million: '2.00', output_per_million: '4.00' }
const cheap = { input_per_million: '0.20', output_per_million: '0.40' }

describe('the price book', () => {
  it('stores each price once if replicas store it at the same time, and the later one reads it', async () => {
    const { book, again, versions } = await emptyBook()
    const other = await again()
    await other.syncListPrices(catalogOf(cheap))
    await book.syncListPrices(catalogOf(expensive))
    assert.deepEqual(
      versions.map(({ prices }) => prices?.input_per_million),
      ['0.20', '2.00'],
    )
    const [model] = catalogOf(expensive)
    assert.equal(book.priceFor(model!, 'ws_1').version, 2)
    await book.syncListPrices(catalogOf(expensive))
    assert.equal(versions.length, 2)
  })

  it('[M6] adds a price version only when the price changes', async () => {
    const { book, versions } = await emptyBook()
    await book.syncListPrices(catalogOf(expensive))
    await book.syncListPrices(catalogOf(expensive))
    await book.syncListPrices(catalogOf({ output_per_million: '4', input_per_million: '2.0' }))
    assert.equal(versions.length, 1, 'the same amounts, written differently, are the same price')
    await book.syncListPrices(catalogOf(cheap))
    await book.syncListPrices(catalogOf(expensive))
    assert.deepEqual(
      versions.map(({ id, prices }) => [id, prices?.input_per_million]),
      [
        [1, '2.00'],
        [2, '0.20'],
        [3, '2.00'],
      ],
    )
    assert.equal(book.priceFor(catalogOf(expensive)[0]!, 'ws_1').version, 3)
  })

  it('gives up when other services have changed the prices twenty times meanwhile', async () => {
    let tries = 0
    const store = {
      priceVersions: async () => [],
      addPriceVersions: async (added: readonly NewPriceVersion[]) => added.map(() => void tries++),
    } as unknown as Store
    const book = await openPriceBook(store, { now: () => 0, monotonic: () => 0 }, memoryChanges())
    await assert.rejects(book.syncListPrices(catalogOf(cheap)), /other services kept changing prices/)
    assert.equal(tries, 20)
  })

  it('[M6] never changes an existing version', async () => {
    const { book, versions } = await emptyBook()
    const [model] = catalogOf(expensive)
    await book.syncListPrices([model!])
    const used = book.priceFor(model!, 'ws_1')
    const asWritten = structuredClone(versions[0])
    await book.syncListPrices(catalogOf(cheap))
    await book.setWorkspacePrice(model!, 'ws_1', cheap)
    assert.equal(used.rates.inputPerToken, 2_000_000n)
    assert.deepEqual(versions[0], asWritten)
  })

  it('[M6] gives a workspace its own price, and the list price again once that is removed', async () => {
    const { book, versions } = await emptyBook()
    const [model] = catalogOf(expensive)
    await book.syncListPrices([model!])
    await book.setWorkspacePrice(model!, 'ws_1', cheap)
    assert.equal(book.priceFor(model!, 'ws_1').rates.inputPerToken, 200_000n)
    assert.equal(book.priceFor(model!, 'ws_2').rates.inputPerToken, 2_000_000n)
    assert.deepEqual([...book.workspacePrices('ws_1')], [['meta/a', cheap]])
    // A new list price does not affect it.
    await book.syncListPrices(catalogOf({ ...expensive, input_per_million: '3.00' }))
    assert.equal(book.priceFor(model!, 'ws_1').rates.inputPerToken, 200_000n)
    await book.setWorkspacePrice(model!, 'ws_1', null)
    assert.equal(book.priceFor(model!, 'ws_1').rates.inputPerToken, 3_000_000n)
    assert.deepEqual([...book.workspacePrices('ws_1')], [])
    assert.equal(versions.length, 4)
  })

  it('[M6] uses the list price for anything that a workspace price leaves out', async () => {
    const { book } = await emptyBook()
    const [model] = catalogOf(expensive)
    await book.syncListPrices([model!])
    const list = book.priceFor(model!, 'ws_1').rates
    await book.setWorkspacePrice(model!, 'ws_1', { input_per_million: '0.10' })
    assert.deepEqual(book.priceFor(model!, 'ws_1').rates, { ...list, inputPerToken: 100_000n })
  })

  it('[C5] charges nothing for tokens on reserved capacity, which is paid by the hour', async () => {
    const { book } = await emptyBook()
    const [model] = catalogOf(expensive)
    await book.syncListPrices([model!])
    const price = book.priceOn(model!.dedicated[0]!, model!, 'ws_1')
    assert.deepEqual([price.version, price.rates.inputPerToken, price.rates.outputPerToken], [0, 0n, 0n])
  })

  it('charges the price of the tier on capacity that is not reserved', async () => {
    const { book } = await emptyBook()
    const [model] = catalogOf({ ...expensive, batch: '0.5' })
    await book.syncListPrices([model!])
    const [reserved] = model!.dedicated
    const shared = { ...reserved!, mode: 'serverless' } as const
    assert.deepEqual(book.priceOn(shared, model!, 'ws_1', 'batch'), book.priceFor(model!, 'ws_1', 'batch'))
    assert.notEqual(book.priceFor(model!, 'ws_1', 'batch').version, book.priceFor(model!, 'ws_1').version)
    assert.equal(book.priceOn(reserved!, model!, 'ws_1', 'batch').version, freeVersions.batch)
  })

  it('stores a price again that is in the future of its clock, and none that is of this millisecond', async () => {
    const { store, versions } = await emptyBook()
    let now = 5000
    const book = await openPriceBook(store, { now: () => now, monotonic: () => 0 }, memoryChanges())
    await book.syncListPrices(catalogOf(expensive))
    await book.syncListPrices(catalogOf(expensive))
    assert.equal(versions.length, 1)
    now = 4999
    await book.syncListPrices(catalogOf(expensive))
    assert.deepEqual(
      versions.map(({ effectiveFrom, prices }) => [effectiveFrom, prices?.input_per_million]),
      [
        [5000, '2.00'],
        [4999, '2.00'],
      ],
    )
  })

  it('has a change in the store before it is announced, and every replica has it before the call ends', async () => {
    const { store: plain } = await emptyBook()
    const { store, changes, during } = orderOfChanges(plain, ['addPriceVersions'])
    const book = await openPriceBook(store, { now: () => 1000, monotonic: () => 0 }, changes)
    const [model] = catalogOf(expensive, 'meta/a', [{ workspace: 'acme', per_hour: '5.00' }])
    const change = ['addPriceVersions', 'announce prices', 'announced']
    const synced = await during(() => book.syncListPrices([model!]))
    assert.deepEqual([synced.slice(-3), synced.indexOf('announce prices')], [change, synced.length - 2])
    assert.deepEqual(await during(() => book.setWorkspacePrice(model!, 'ws_1', cheap)), change)
    assert.deepEqual(await during(() => book.priceBatchLines(model!, 'ws_1')), change)
    assert.deepEqual(await during(() => book.priceBatchLines(model!, 'ws_1')), [], 'nothing is left to change')
  })

  it('does not miss a change that is announced while it opens', async () => {
    const { store, book, versions } = await emptyBook()
    const [model] = catalogOf(expensive)
    await book.syncListPrices([model!])
    const { changes } = orderOfChanges({}, [])
    let reads = 0
    const slow = {
      ...store,
      async priceVersions() {
        const read = await store.priceVersions()
        if (reads++ === 0) {
          await book.syncListPrices(catalogOf(cheap))
          await changes.announce('prices')
        }
        return read
      },
    }
    const late = await openPriceBook(slow, { now: () => 1000, monotonic: () => 0 }, changes)
    assert.equal(late.priceFor(model!, 'ws_1').version, versions.length)
  })

  it('knows when a model was first priced, even after a restart', async () => {
    const { book, again, versions } = await emptyBook()
    const [model] = catalogOf(expensive)
    await book.syncListPrices([model!])
    await book.syncListPrices(catalogOf(cheap))
    await book.setWorkspacePrice(model!, 'ws_1', expensive)
    assert.equal(book.firstPricedAt(model!), versions[0]?.effectiveFrom)
    assert.equal(book.firstPricedAt(catalogOf(cheap, 'meta/b')[0]!), 0)
    const reopened = await again()
    assert.equal(reopened.firstPricedAt(model!), versions[0]?.effectiveFrom)
    assert.deepEqual(reopened.priceFor(model!, 'ws_1'), book.priceFor(model!, 'ws_1'))
    assert.deepEqual(reopened.priceFor(model!, 'ws_2'), book.priceFor(model!, 'ws_2'))
  })
})

describe('image prices by size and quality', () => {
  const bySize: ModelPrices = {
    per_image: '0.04',
    image_prices: [
      { size: '1024x1792', per_image: '0.08' },
      { size: '1024x1792', quality: 'hd', per_image: '0.12' },
      { size: 'auto', quality: 'hd', per_image: '0.10' },
    ],
  }
  const CENT = 10_000_000_000n

  it('[M3] match the size and quality first, then the size, then per_image', async () => {
    const { book } = await emptyBook()
    const [model] = catalogOf(bySize)
    await book.syncListPrices([model!])
    const cents = (...image: Parameters<typeof imageKind>): bigint =>
      book.priceFor(model!, 'ws_1', imageKind(...image)).rates.perImage! / CENT
    assert.equal(cents('1024x1792', 'hd'), 12n)
    assert.equal(cents('1024x1792', 'low'), 8n)
    assert.equal(cents('1024x1792', 'auto'), 8n)
    assert.equal(cents('1024x1792', undefined), 8n)
    assert.equal(cents('512x512', 'hd'), 4n, 'a size that is not listed')
    assert.equal(cents(undefined, 'hd'), 10n, 'a missing size counts as auto')
    assert.equal(cents(undefined, undefined), 4n)
    assert.equal(book.priceFor(model!, 'ws_1').rates.perImage! / CENT, 4n)
  })

  it('[M6] each have their own versions, so changing one does not change the others', async () => {
    const { book, versions, again } = await emptyBook()
    const [model] = catalogOf(bySize)
    await book.syncListPrices([model!])
    await book.syncListPrices(catalogOf({ ...bySize, image_prices: bySize.image_prices!.toReversed() }))
    await book.syncListPrices(
      catalogOf({
        ...bySize,
        image_prices: bySize.image_prices!.map((it) => ({ ...it, per_image: `${it.per_image}0` })),
      }),
    )
    assert.equal(versions.length, 4, 'the order and the notation make no difference')
    const before = book.priceFor(model!, 'ws_1', '1024x1792')
    await book.syncListPrices(
      catalogOf({ per_image: '0.04', image_prices: [{ size: '1024x1792', per_image: '0.09' }] }),
    )
    const price = book.priceFor(model!, 'ws_1', '1024x1792 hd')
    assert.deepEqual([before.rates.perImage, price.rates.perImage], [8n * CENT, 9n * CENT])
    assert.equal(book.priceFor(model!, 'ws_1', 'auto hd').rates.perImage, 4n * CENT, 'no longer listed')
    assert.deepEqual((await again()).priceFor(model!, 'ws_1', '1024x1792 hd'), price)
  })

  it('[M6] cost the old price or the new one, and nothing else, while a change is being written', async () => {
    const kinds = ['512x512', '512x512 hd', '1024x1792', '1024x1792 hd', 'auto hd']
    const cents = fc.integer({ min: 1, max: 9 }).map((it) => `0.0${it}`)
    const anyPrices: fc.Arbitrary<ModelPrices> = fc
      .record({ general: cents, own: fc.dictionary(fc.constantFrom(...kinds), cents) })
      .map(({ general, own }) => ({
        per_image: general,
        image_prices: Object.entries(own).map(([kind, per_image]) => {
          const [size = '', quality] = kind.split(' ')
          return { size, ...(quality ? { quality } : {}), per_image }
        }),
      }))
    const change = fc.record({ list: fc.boolean(), prices: fc.option(anyPrices) })
    await fc.assert(
      fc.asyncProperty(anyPrices, fc.array(change, { minLength: 1, maxLength: 4 }), async (first, changes) => {
        const { book, again, onVersion } = await emptyBook()
        const [model] = catalogOf(first)
        await book.syncListPrices([model!])
        const pricesIn = (it: PriceBook): (bigint | null)[] =>
          kinds.map((kind) => it.priceFor(model!, 'ws_1', kind).rates.perImage)
        let current = model!
        for (const { list, prices } of changes) {
          const before = pricesIn(book)
          const between: (bigint | null)[][] = []
          onVersion(async () => between.push(pricesIn(await again())))
          if (list && prices) {
            current = catalogOf(prices)[0]!
            await book.syncListPrices([current])
          } else await book.setWorkspacePrice(current, 'ws_1', prices)
          onVersion(undefined)
          const after = pricesIn(book)
          for (const seen of between) {
            for (const [index, price] of seen.entries()) {
              assert.ok(price === before[index] || price === after[index], `${kinds[index]} costs ${price}`)
            }
          }
        }
      }),
      { numRuns: 300 },
    )
  })

  it('[M6] follow the list for a workspace with its own price, unless it sets its own image prices', async () => {
    const { book } = await emptyBook()
    const [model] = catalogOf(bySize)
    await book.syncListPrices([model!])
    await book.setWorkspacePrice(model!, 'ws_1', { per_image: '0.03' })
    const cents = (kind: string): bigint => book.priceFor(model!, 'ws_1', kind).rates.perImage! / CENT
    assert.deepEqual([cents('512x512'), cents('1024x1792')], [3n, 8n])
    await book.setWorkspacePrice(model!, 'ws_1', { image_prices: [{ size: '512x512', per_image: '0.01' }] })
    assert.deepEqual([cents('512x512'), cents('1024x1792'), cents('auto hd')], [1n, 4n, 4n])
    assert.deepEqual(book.workspacePrices('ws_1').get('meta/a')?.image_prices, [{ size: '512x512', per_image: '0.01' }])
    await book.setWorkspacePrice(model!, 'ws_1', { image_prices: [] })
    assert.equal(cents('512x512'), 4n)
    await book.setWorkspacePrice(model!, 'ws_1', null)
    assert.equal(cents('1024x1792'), 8n)
    assert.deepEqual(book.pricesFor(model!, 'ws_1').image_prices, bySize.image_prices)
    assert.deepEqual([...book.workspacePrices('ws_1')], [])
  })
})
