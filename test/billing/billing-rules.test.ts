import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { requireCreditAmount, requireRoom, settlingTime } from '../../src/billing/invoices/credits.ts'
import { invoiceList } from '../../src/billing/invoices/invoice-list.ts'
import { requireAll, requireNotMore } from '../../src/billing/invoices/invoice-rules.ts'
import { openRowLinks } from '../../src/billing/invoices/rows/row-links.ts'
import { parseMonth } from '../../src/shared/money/sydney-time.ts'
import type { InvoiceDocument } from '../../src/billing/invoices/invoice-document.ts'
import type { InvoicePageQuery, IssuedInvoice } from '../../src/billing/invoices/invoice-store.ts'

const CENT = 10_000_000_000n
const invoice = (number: string): IssuedInvoice =>
  ({ number, document: { number, lines: [] } }) as unknown as IssuedInvoice

describe('a credit of a free amount', () => {
  it('is an amount in whole cents above zero', () => {
    assert.equal(requireCreditAmount('0.01'), CENT)
    assert.equal(requireCreditAmount('25.00'), 2500n * CENT)
    for (const wrong of ['0', '0.00', '-1', '0.001', '0.015', '', 'x', '1,00']) {
      assert.throws(() => requireCreditAmount(wrong), { code: 'invalid_value', param: 'amount' }, wrong)
    }
  })

  it('is at most what is left, which the refusal names in whole cents', () => {
    requireRoom(100n * CENT, 100n * CENT, 'INV-1', 99)
    const refused = (left: bigint, message: RegExp): void =>
      assert.throws(() => requireRoom(100_000n * CENT, left, 'INV-1', 0), {
        code: 'conflict',
        param: 'amount',
        message,
      })
    refused(
      99_999n * CENT + 5n,
      /A credit of A\$1,000\.00 is more than INV-1 comes to: A\$999\.99 is left, excluding GST/,
    )
    refused(CENT, /: A\$0\.01 is left/)
    refused(CENT - 1n, /: nothing is left of it/)
    assert.throws(() => requireRoom(CENT, CENT, 'INV-1', 100), {
      code: 'conflict',
      message: 'INV-1 already has 100 credits, and can have 100.',
    })
  })

  it('is settled now, or in the last millisecond of a past month, and never before a month', () => {
    const month = parseMonth('2026-03') ?? assert.fail()
    assert.equal(settlingTime(month, month.from), month.from)
    assert.equal(settlingTime(month, month.to - 1), month.to - 1)
    assert.equal(settlingTime(month, month.to), month.to - 1)
    assert.throws(() => settlingTime(month, month.from - 1), { code: 'conflict', param: 'period' })
  })
})

describe('rows of an invoice that are credited', () => {
  it('must be at least one, each once, and all must exist', () => {
    requireAll(2, ['a', 'b', 'a'], invoice('INV-1'))
    requireAll(1, null, invoice('INV-1'))
    assert.throws(() => requireAll(1, ['a', 'b'], invoice('INV-1')), { code: 'not_found', param: 'requests' })
    assert.throws(() => requireAll(3, ['a', 'b'], invoice('INV-1')), { code: 'not_found' })
    assert.throws(() => requireAll(0, null, invoice('INV-1')), { code: 'conflict', message: /already been credited/ })
  })

  it('add up to no more than what is left', () => {
    requireNotMore(-5n, 5n, invoice('INV-1'))
    assert.throws(() => requireNotMore(-6n, 5n, invoice('INV-1')), { code: 'conflict', message: /left of INV-1/ })
  })
})

describe('a page of invoices', () => {
  const all = ['INV-5', 'INV-4', 'INV-3', 'INV-2', 'INV-1'].map(invoice)
  const store = {
    invoices: async (filter: { number?: string } = {}) => all.filter(({ number }) => number === filter.number),
    newestInvoices: async ({ before, limit }: InvoicePageQuery) => {
      const start = before ? all.findIndex(({ number }) => number === before.number) + 1 : 0
      return all.slice(start, start + limit)
    },
    receivables: async () => [],
    payments: async () => [],
  }
  const page = async (limit: number, before?: string) => {
    const { documents, next } = await invoiceList(store, {
      workspaceId: undefined,
      before,
      state: undefined,
      today: '2026-12-01',
      limit,
    })
    return { numbers: documents.map(({ number }) => number), next }
  }

  it('returns where the next one begins, or that there is none', async () => {
    assert.deepEqual(await page(2), { numbers: ['INV-5', 'INV-4'], next: 'INV-4' })
    assert.deepEqual(await page(2, 'INV-4'), { numbers: ['INV-3', 'INV-2'], next: 'INV-2' })
    assert.deepEqual(await page(2, 'INV-2'), { numbers: ['INV-1'], next: null })
    assert.deepEqual(await page(5), { numbers: all.map(({ number }) => number), next: null })
    await assert.rejects(page(2, 'INV-9'), { code: 'invalid_value', param: 'before' })
  })
})

describe('links to the rows of an invoice', () => {
  const document = { number: 'INV-1', lines: [{}, {}] } as unknown as InvoiceDocument

  function stage({ publicUrl }: { publicUrl: string | undefined } = { publicUrl: 'https://weir.test' }) {
    const time = { ms: Date.parse('2026-03-01T00:00:00Z') }
    let kept: string | undefined
    const store = {
      linkSecret: async () => kept,
      addLinkSecret: async (secret: string) => void (kept ??= secret),
      replaceLinkSecret: async (secret: string) => void (kept = secret),
    }
    const clock = { now: () => time.ms, monotonic: () => 0 }
    return { time, links: openRowLinks(store, clock, { publicUrl, days: 30 }), secret: () => kept }
  }

  it('are valid for their line and document until the end of their last day in Sydney, or until they are revoked', async () => {
    const { links, time, secret } = stage()
    const printed = await links.linked(document)
    assert.equal(printed.links_until, '2026-03-31')
    assert.match(secret() ?? '', /^[0-9a-f]{64}$/)
    const parsed = printed.lines.map((line) => new URL(line.link ?? ''))
    assert.deepEqual(
      parsed.map(({ pathname }) => pathname),
      ['/api/v1/invoices/INV-1/rows/1', '/api/v1/invoices/INV-1/rows/2'],
    )
    const link = {
      number: 'INV-1',
      line: '2',
      until: '2026-03-31',
      signature: parsed[1]?.searchParams.get('signature') ?? '',
    }
    await links.requireValid(link)
    const incomplete = { code: 'not_found', message: /incomplete/ }
    for (const wrong of [
      { line: '1' },
      { number: 'INV-2' },
      { until: '2026-04-01' },
      { signature: link.signature.slice(1) },
      { signature: '' },
    ]) {
      await assert.rejects(links.requireValid({ ...link, ...wrong }), incomplete)
    }
    // Daylight saving time: the day ends at 13:00 UTC.
    time.ms = Date.parse('2026-03-31T12:59:59Z')
    await links.requireValid(link)
    time.ms = Date.parse('2026-03-31T13:00:00Z')
    await assert.rejects(links.requireValid(link), { code: 'not_found', message: /expired/ })
    time.ms = Date.parse('2026-03-01T00:00:00Z')
    await links.revoke()
    await assert.rejects(links.requireValid(link), incomplete)
  })

  it('are not created without a public address or for a preview, and none is valid before the first', async () => {
    const { links } = stage()
    const preview = { ...document, number: null }
    assert.equal(await links.linked(preview), preview)
    await assert.rejects(links.requireValid({ number: 'INV-1', line: '1', until: '2099-01-01', signature: '' }), {
      message: /incomplete/,
    })
    const { lines } = await stage({ publicUrl: undefined }).links.linked(document)
    assert.deepEqual(
      lines.map(({ rows }) => rows),
      ['/api/v1/invoices/INV-1/lines/1?format=csv', '/api/v1/invoices/INV-1/lines/2?format=csv'],
      'for the keys of the workspace',
    )
  })
})
