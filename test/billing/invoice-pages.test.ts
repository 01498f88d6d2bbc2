import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { invoiceHtml } from '../../src/billing/invoices/invoice-html.ts'
import { invoicePdf } from '../../src/billing/invoices/pdf/invoice-pdf.ts'
import { cellsOf, factsOf, totalRowsOf } from '../../src/billing/invoices/invoice-wording.ts'
import { inVisualOrder } from '../../src/billing/invoices/pdf/pdf-text.ts'
import { escapeHtml } from '../../src/shared/html.ts'
import { exactDuration } from '../../src/shared/money/exact-duration.ts'
import {
  completeDocument,
  documentOf,
  type InvoiceDocument,
  type Party,
} from '../../src/billing/invoices/invoice-document.ts'
import type { InvoiceLine } from '../../src/billing/invoices/invoice.ts'
import { parseMonth, writtenDate } from '../../src/shared/money/sydney-time.ts'
import { seller } from '../support/books.ts'

/** What an invoice looks like, on the page and in the PDF. */

const acme: Party = { name: 'Acme & Söhne', abn: '83 914 571 673', address: 'Level 1\nSydney' }
const tokens: InvoiceLine = {
  model: 'meta/a',
  unit: 'input_tokens',
  imageKind: '',
  tier: 'default',
  reason: '',
  quantity: 42_500_123n,
  rate: 600_000n,
  amount: 25_500_073_800_000n,
  priceVersions: [1],
}

function invoiceFor(buyer: Party, lines: readonly InvoiceLine[] = [tokens]): InvoiceDocument {
  return documentOf({
    kind: 'tax_invoice',
    number: 'INV-000001',
    workspace: 'acme',
    month: parseMonth('2026-10')!,
    issuedAt: Date.UTC(2026, 10, 5),
    seller,
    buyer,
    purchaseOrder: 'PO <4711>',
    lines,
    counts: { requests: 1, estimatedRequests: 1, rows: 1 },
    warnings: [],
  })
}

const pagesIn = (pdf: Buffer): number => [...pdf.toString('latin1').matchAll(/\/Type \/Page\n/g)].length

describe('the page of an invoice', () => {
  it('has every word and figure that the PDF and the JSON have', () => {
    const invoice = invoiceFor(acme)
    const page = invoiceHtml(invoice)
    const words = [
      invoice.title,
      ...factsOf(invoice).flat(),
      ...invoice.lines.flatMap(cellsOf),
      ...totalRowsOf(invoice).flat(),
      ...invoice.notices,
    ]
    for (const text of words) assert.ok(page.includes(escapeHtml(text)), text)
    assert.ok(words.includes('5 November 2026') && words.includes('19 November 2026') && words.includes('PO <4711>'))
    assert.ok(words.includes('1 request, of which 1 was estimated because the engine reported no usage.'))
  })

  it('prints its totals once: browsers repeat a tfoot on every sheet', () => {
    const page = invoiceHtml(
      invoiceFor(
        acme,
        Array.from({ length: 200 }, () => tokens),
      ),
    )
    assert.doesNotMatch(page, /<tfoot/)
    assert.equal(page.split('Total, AUD including GST').length, 2)
  })
})

describe('the PDF of an invoice', () => {
  it('is the same file every time, and has as many pages as it needs', async () => {
    const long = invoiceFor(
      acme,
      Array.from({ length: 200 }, () => tokens),
    )
    const [once, twice] = [await invoicePdf(long), await invoicePdf(long)]
    assert.ok(once.equals(twice))
    assert.equal(pagesIn(await invoicePdf(invoiceFor(acme))), 1)
    assert.ok(pagesIn(once) >= 4, String(pagesIn(once)))
  })

  it('has names in many scripts, each in a font that has them', async () => {
    const name = 'ООО «Ромашка» Αθηναϊκή Łódź Nguyễn חברה شركة बेंगलुरु กรุงเทพ Երևան თბილისი'
    const text = (await invoicePdf(invoiceFor({ name, abn: null, address: '' }))).toString('latin1')
    for (const font of ['Hebrew', 'Arabic', 'Devanagari', 'Thai', 'Armenian', 'Georgian']) {
      assert.match(text, new RegExp(`NotoSans${font}`))
    }
  })

  it('is refused, with the character, if no font has it', async () => {
    for (const [name, told] of [
      ['株式会社', /no "株" \(U\+682A\)\. Name a font file that has it in invoice\.fonts/],
      ['Acme 🚀', /\(U\+1F680\)/],
    ] as const) {
      const invoice = invoiceFor({ name, abn: null, address: '' })
      await assert.rejects(async () => invoicePdf(invoice), told)
      assert.ok(invoiceHtml(invoice).includes(name), 'the page has it')
    }
    await assert.rejects(async () => invoicePdf(invoiceFor(acme), ['/nowhere/font.ttf']), /cannot be used/)
  })
})

describe('text for the PDF', () => {
  it('reorders right-to-left words, and nothing else', () => {
    for (const [line, expected] of [
      ['Acme Pty Ltd 5', ['Acme Pty Ltd 5']],
      ['אבג דהו', ['דהו', ' ', 'אבג']],
      ['אבג 2026 דהו', ['דהו', ' ', '2026', ' ', 'אבג']],
      ['אבג דהו Pty Ltd', ['דהו', ' ', 'אבג', ' ', 'Pty', ' ', 'Ltd']],
      ['Acme אבג', ['Acme', ' ', 'אבג']],
    ] as const) {
      assert.deepEqual(inVisualOrder(line), expected, line)
    }
  })

  it('has times in full and dates in the Australian format', () => {
    assert.deepEqual(
      [3_725_500n, 60_000n, 1n, 0n, -61_001n].map((ms) => exactDuration(ms, 'min')),
      ['62 min 5.5 s', '1 min', '0.001 s', '0 min', '-1 min 1.001 s'],
    )
    assert.deepEqual(
      [2_674_800_000n, 43_380_250n, 3_600_001n].map((ms) => exactDuration(ms, 'h')),
      ['743 h', '12 h 3 min 0.25 s', '1 h 0.001 s'],
    )
    assert.equal(exactDuration(60_000_000_000n, 'min'), '1,000,000 min')
    assert.deepEqual(['2026-11-05', '2027-12-31'].map(writtenDate), ['5 November 2026', '31 December 2027'])
  })
})

describe('a document that an earlier version stored', () => {
  it('is completed with what that version did not store', () => {
    const {
      title,
      purchase_order: _,
      replaces: __,
      credited_by: ___,
      notices,
      warnings: ____,
      ...old
    } = invoiceFor(acme)
    const lines = old.lines.map(({ quantity_text: _____, ...line }) => line)
    const complete = completeDocument({ ...old, lines })
    assert.deepEqual(
      [complete.title, complete.notices, complete.purchase_order, complete.replaces, complete.warnings],
      [title, notices, null, null, []],
    )
    assert.deepEqual(complete.lines, old.lines)
  })
})
