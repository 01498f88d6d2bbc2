import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { parseCatalog } from '../../src/catalog/file.ts'
import type { Model } from '../../src/catalog/model.ts'
import { memoryChanges } from '../../src/cluster/changes/memory.ts'
import { openPriceBook } from '../../src/billing/prices/price-book.ts'
import { imageKind, pricesByKind, tierOfKind, type ModelPrices } from '../../src/billing/rating/price-kinds.ts'
import { freeVersions } from '../../src/billing/rating/rating.ts'
import { usageReport, ownGroupings } from '../../src/billing/usage/usage-report.ts'
import { reconcileLedger } from '../../src/ledger/reconcile/reconcile.ts'
import { parseMonth } from '../../src/shared/money/sydney-time.ts'
import type { Workspace } from '../../src/workspaces/workspace.ts'
import { testBooks, type TestBooks } from '../support/books.ts'

const listed = (prices: ModelPrices) => {
  const lists = pricesByKind(prices)
  return 'badKey' in lists ? lists : { flex: lists.get('flex'), batch: lists.get('batch') }
}

const modelWith = (pricing: ModelPrices): Model => {
  const entry = {
    id: 'meta/a',
    categories: ['llm'],
    context_length: 10,
    pricing,
    serverless: {},
    dedicated: [{ workspace: 'acme' }],
  }
  return parseCatalog(JSON.stringify({ models: [entry] }), 'catalog.yaml', () => undefined)[0]!
}

describe('the batch price of a model', () => {
  it('[M6] is a factor of the prices of tokens, rounded to the whole pico-AUD for each token', () => {
    const prices = { input_per_million: '0.20', output_per_million: '0.000003', cached_input_per_million: '0.000005' }
    const half = { input_per_million: '0.10', output_per_million: '0.000002', cached_input_per_million: '0.000003' }
    assert.deepEqual(listed({ ...prices, batch: '0.5' }), { flex: half, batch: half })
    const least = { input_per_million: '0.00002', output_per_million: '0.00', cached_input_per_million: '0.00' }
    assert.deepEqual(listed({ ...prices, batch: '0.0001' }), { flex: least, batch: least })
    const free = { input_per_million: '0.00', output_per_million: '0.00' }
    assert.deepEqual(listed({ input_per_million: '1', batch: '0' }), { flex: free, batch: free })
  })

  it('[M6] may be rates, and those that are left out stay normal', () => {
    const prices = { input_per_million: '0.20', output_per_million: '0.40', per_image: '0.04' }
    const own = { input_per_million: '0.05', output_per_million: '0.40', per_image: '0.04' }
    assert.deepEqual(listed({ ...prices, batch: { input_per_million: '0.05' } }), { flex: own, batch: own })
    assert.deepEqual(listed(prices), { flex: undefined, batch: undefined })
    assert.equal(modelWith(JSON.parse('{"batch":null}') as ModelPrices).batchPrices, undefined)
  })

  it('is refused if the factor is above 1, or a rate is no price', () => {
    const rule = 'a factor from "0" to "1", such as "0.5", or rates'
    for (const batch of ['1.000001', '5', 'half']) assert.deepEqual(listed({ batch }), { badKey: 'batch', rule })
    const bad = listed({ batch: { input_per_million: '0.0000001' } })
    assert.ok('badKey' in bad && bad.badKey === 'batch' && bad.rule.startsWith('an amount in AUD'))
    const rates = { input_per_million: '1.00', output_per_million: '0.00' }
    assert.deepEqual(listed({ input_per_million: '1', batch: '1' }), { flex: rates, batch: rates })
  })

  it('is never that of an image, whose kind is a size', () => {
    for (const size of [undefined, 'auto', '1024x1024']) {
      for (const quality of [undefined, 'hd']) assert.equal(tierOfKind(imageKind(size, quality)), 'default')
    }
    assert.deepEqual(['flex', 'batch', ''].map(tierOfKind), ['flex', 'batch', 'default'])
  })
})

describe('prices of tiers in the price book', () => {
  let books: TestBooks
  before(async () => void (books = await testBooks(1000)))
  after(() => books.close())
  const normal = { input_per_million: '0.20', output_per_million: '0.40' }

  it('[M6] have versions of their own, which a change of the batch price replaces, and no other', async () => {
    const acme = await books.workspace('acme')
    const book = await openPriceBook(books.store, { now: () => books.now, monotonic: () => 0 }, memoryChanges())
    const plain = modelWith(normal)
    const perToken = (kind?: string, id = ''): bigint => book.priceFor(plain, id, kind).rates.inputPerToken
    const versions = (): number[] => ['', 'flex', 'batch'].map((kind) => book.priceFor(plain, '', kind).version)

    await book.syncListPrices([plain])
    await book.setWorkspacePrice(plain, acme.id, { input_per_million: '0.10' })
    assert.equal(new Set(versions()).size, 1, 'without a batch price, the normal one applies')

    await book.syncListPrices([modelWith({ ...normal, batch: '0.5' })])
    const [main, ...tiers] = versions()
    assert.equal(new Set([main, ...tiers]).size, 3)
    assert.deepEqual([perToken(), perToken('flex'), perToken('batch')], [200_000n, 100_000n, 100_000n])
    assert.deepEqual([perToken('', acme.id), perToken('flex', acme.id)], [100_000n, 50_000n], 'of its own prices')

    await book.syncListPrices([modelWith({ ...normal, batch: { input_per_million: '0.03' } })])
    assert.deepEqual([perToken(), perToken('flex'), perToken('batch')], [200_000n, 30_000n, 30_000n])
    assert.equal(versions()[0], main)
    assert.ok(versions()[1] !== tiers[0] && versions()[2] !== tiers[1])
    assert.deepEqual(book.pricesFor(plain, '').batch, { input_per_million: '0.03', output_per_million: '0.40' })

    await book.syncListPrices([plain])
    assert.deepEqual([perToken('flex'), new Set(versions()).size], [200_000n, 3], 'the tier keeps its own version')

    await book.setWorkspacePrice(plain, acme.id, { batch: '0.1' })
    assert.deepEqual([perToken('', acme.id), perToken('batch', acme.id)], [200_000n, 20_000n])
    await book.setWorkspacePrice(plain, acme.id, null)
    assert.equal(perToken('batch', acme.id), 200_000n)
  })

  it('are free on reserved capacity, and their versions still tell the tier', async () => {
    const book = await openPriceBook(books.store, { now: () => books.now, monotonic: () => 0 }, memoryChanges())
    const model = modelWith({ ...normal, batch: '0.5' })
    await book.syncListPrices([model])
    for (const tier of ['flex', 'batch'] as const) {
      const { version, rates } = book.priceOn(model.dedicated[0]!, model, '', tier)
      assert.deepEqual([version, rates.inputPerToken], [freeVersions[tier], 0n])
    }
    assert.equal(new Set(Object.values(freeVersions)).size, 3)
  })
})

describe('a month with all tiers', () => {
  const october = parseMonth('2026-10')!
  let books: TestBooks
  let acme: Workspace
  const versions: Record<string, number> = {}

  before(async () => {
    books = await testBooks(october.from - 1000)
    acme = await books.workspace('acme')
    versions['default'] = await books.price('meta/a', { input_per_million: '0.20' }, 0)
    versions['flex'] = await books.price('meta/a#flex', { input_per_million: '0.10' }, 0)
    versions['batch'] = await books.price('meta/a#batch', { input_per_million: '0.10' }, 0)
    const use = async (kind: string, inputTokens: number) =>
      books.row(acme, 'meta/a', versions[kind]!, october.from + 1, { inputTokens })
    const reserved = await books.row(acme, 'meta/a', freeVersions.flex, october.from + 2, { inputTokens: 9 })
    await books.settle([
      await use('default', 7),
      await use('flex', 3),
      await use('flex', 2),
      await use('batch', 5),
      reserved,
    ])
    books.now = october.to + 1000
  })
  after(() => books.close())

  const report = async (query: string): Promise<Record<string, unknown>[]> => {
    const scope = { workspaceId: acme.id, groupings: ownGroupings }
    let text = ''
    for await (const piece of usageReport(books.store, scope, new URLSearchParams(query))) text += piece
    return (JSON.parse(text) as { data: Record<string, unknown>[] }).data
  }

  it('has usage by tier, in sums and in rows', async () => {
    const sums = (await report('group_by=service_tier')).map((it) => [it['service_tier'], it['input_tokens']])
    assert.deepEqual(sums, [
      ['batch', 5],
      ['default', 7],
      ['flex', 14],
    ])
    for (const [tier, tokens] of [
      ['default', [7]],
      ['flex', [3, 2, 9]],
      ['batch', [5]],
    ] as const) {
      const rows = await report(`service_tier=${tier}`)
      assert.deepEqual(
        [rows.map((it) => it['input_tokens']), new Set(rows.map((it) => it['service_tier']))],
        [tokens, new Set([tier])],
      )
    }
    await assert.rejects(() => report('service_tier=fast'), /must be one of default, flex, batch/)
  })

  it('has an invoice with a line for each tier, which sum up', async () => {
    const document = await books.invoicing.issue(acme, october)
    assert.deepEqual(
      document.lines.map(({ description, quantity, amount }) => [description, quantity, amount]),
      [
        ['meta/a: input tokens', '7', '0.0000014'],
        ['meta/a: input tokens, flex tier', '5', '0.0000005'],
        ['meta/a: input tokens, batch tier', '5', '0.0000005'],
      ],
    )
    assert.equal(document.lines_total, '0.0000024')
    const note = await books.invoicing.credit(acme, october, null, 'a test')
    assert.deepEqual(
      note.lines.map(({ description, amount }) => [description, amount]),
      document.lines.map(({ description, amount }) => [description, `-${amount}`]),
    )
    assert.deepEqual((await reconcileLedger(books.store)).problems, [])
  })

  it('is not reconciled if a row has the price of another tier', async () => {
    const wrong = async (id: string, kind: string, tier: 'default' | 'flex' | 'batch') => ({
      ...(await books.row(acme, 'meta/a', versions[kind] ?? freeVersions.default, october.to + 2, { inputTokens: 1 })),
      requestId: id,
      startedAt: october.to,
      tier,
    })
    // Its tier has had a price of its own since the first version, not since the last.
    await books.price('meta/a#flex', { input_per_million: '0.05' }, october.to + 1)
    await books.settle([
      await wrong('full-price', 'default', 'flex'),
      await wrong('batch-price', 'batch', 'default'),
      await wrong('other-tier', 'batch', 'flex'),
      await wrong('reserved', 'none', 'batch'),
      { ...(await wrong('in-time', 'default', 'flex')), startedAt: 59_999 },
    ])
    const { problems } = await reconcileLedger(books.store)
    assert.deepEqual(
      problems.map(({ check, subject }) => [check, subject]),
      ['batch-price', 'full-price', 'other-tier', 'reserved'].map((id) => ['tier', id]),
    )
    assert.equal(
      problems.find(({ subject }) => subject === 'full-price')?.message,
      "the row's tier is flex, but price version 1 is not for it",
    )
  })
})
