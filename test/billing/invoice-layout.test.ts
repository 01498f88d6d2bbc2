import assert from 'node:assert/strict'
import { before, describe, it, mock } from 'node:test'
import PDFDocument from 'pdfkit'
import { invoicePdf } from '../../src/billing/invoices/pdf/invoice-pdf.ts'
import {
  amountsOf,
  balanceRowsOf,
  cellsOf,
  fractionOf,
  noticesOf,
  totalRowsOf,
  type PrintableInvoice,
} from '../../src/billing/invoices/invoice-wording.ts'
import { documentOf, type InvoiceDocument } from '../../src/billing/invoices/invoice-document.ts'
import type { InvoiceLine } from '../../src/billing/invoices/invoice.ts'
import { parseMonth } from '../../src/shared/money/sydney-time.ts'
import { seller } from '../support/books.ts'

/** A piece of text as it was put on a page. `y` is its baseline, `height` about that of its letters above it. */
interface Placed {
  readonly page: number
  readonly text: string
  readonly left: number
  readonly right: number
  readonly y: number
  readonly height: number
}

type Pdf = InstanceType<typeof PDFDocument>

const LEFT = 50
const RIGHT = 545
/** Right edges of quantity and rate. */
const COLUMN_ENDS = [328, 432]

function invoiceOf(lineCount: number): InvoiceDocument {
  const lines = Array.from({ length: lineCount }, (_, index): InvoiceLine => ({
    // Some names need a second line, and some are a word that is wider than the column.
    model: `meta/model-${index}${index % 5 === 4 ? `-with-a-name.that/has_no:place${'x'.repeat(30)}` : ''}`,
    unit: 'input_tokens',
    imageKind: '',
    tier: 'default',
    reason: '',
    quantity: 42_500_123n,
    rate: 600_000n,
    // With four to seven decimals.
    amount: [25_500_073_800_000n, 1_234_500_000_000n, 7_890_123_400_000n][index % 3]!,
    priceVersions: [1],
  }))
  return documentOf({
    kind: 'tax_invoice',
    number: 'INV-000001',
    workspace: 'acme',
    month: parseMonth('2026-10')!,
    issuedAt: Date.UTC(2026, 10, 5),
    seller,
    buyer: { name: 'Acme', abn: '83 914 571 673', address: 'Level 1\nSydney' },
    purchaseOrder: null,
    lines,
    counts: { requests: 1, estimatedRequests: 1, rows: 1 },
    warnings: [],
  })
}

/** Credited, and paid in part. */
const partlyPaid: PrintableInvoice['balance'] = {
  state: 'due',
  credited: '0.11',
  paid: '0.50',
  amount_due: '0.75',
  payments: [{ id: 1, paid_on: '2026-11-10', amount: '0.50', reference: 'bank 17', recorded: '' }],
}

/** In digits. Points and commas are about half as wide. */
function widthIn(figure: string): number {
  return figure
    .split('')
    .reduce((sum, character) => sum + (/\d/.test(character) ? 572 : character === '-' ? 322 : 268), 0)
}

/** What is on the pages, and how many lines are drawn across them. */
async function placedOn(
  invoice: PrintableInvoice,
): Promise<{ readonly placed: readonly Placed[]; readonly rules: number }> {
  const all: Placed[] = []
  let rules = 0
  let [page, pages] = [0, 0]
  const proto = PDFDocument.prototype
  const [addPage, switchToPage, text] = [proto.addPage, proto.switchToPage, proto.text]
  const [moveTo, lineTo] = [proto.moveTo, proto.lineTo]
  let from = { x: 0, y: 0 }
  mock.method(proto, 'moveTo', function (this: Pdf, x: number, y: number) {
    from = { x, y }
    return moveTo.call(this, x, y)
  })
  mock.method(proto, 'lineTo', function (this: Pdf, x: number, y: number) {
    if (from.x === LEFT && from.y === y && Math.abs(x - RIGHT) < 0.01) rules += 1
    return lineTo.call(this, x, y)
  })
  mock.method(proto, 'addPage', function (this: Pdf, ...rest: Parameters<typeof addPage>) {
    page = pages++
    return addPage.apply(this, rest)
  })
  mock.method(proto, 'switchToPage', function (this: Pdf, to: number) {
    page = to
    return switchToPage.call(this, to)
  })
  mock.method(proto, 'text', function (this: Pdf, words: string, x: number, y: number, options: object) {
    const right = x + this.widthOfString(words)
    if (words.trim() !== '') all.push({ page, text: words, left: x, right, y, height: this.currentLineHeight() / 2 })
    return text.call(this, words, x, y, options)
  })
  try {
    await invoicePdf(invoice)
  } finally {
    mock.restoreAll()
  }
  return { placed: all, rules }
}

const packed = (text: string): string => text.replaceAll(/\s/gu, '')
const isFooter = ({ y }: Placed): boolean => y > 800

function overlap(one: Placed, other: Placed): boolean {
  if (one.page !== other.page) return false
  const isBeside = one.right <= other.left + 0.01 || other.right <= one.left + 0.01
  return !isBeside && one.y > other.y - other.height && other.y > one.y - one.height
}

describe('the layout of an invoice in the PDF, wherever its pages end', () => {
  /** The totals and the notices meet the end of the page at some of these. */
  const layouts: { readonly invoice: PrintableInvoice; readonly placed: readonly Placed[]; readonly rules: number }[] =
    []

  before(async () => {
    for (const count of [1, 18, 19, 22, 23, 25, 26, 40, 70]) {
      for (const balance of [null, partlyPaid]) {
        const invoice = { ...invoiceOf(count), balance }
        layouts.push({ invoice, ...(await placedOn(invoice)) })
      }
    }
  })

  it('has every word once, in order, from the top to the bottom', () => {
    for (const { invoice, placed } of layouts) {
      const printed = packed(
        placed
          .filter((it) => !isFooter(it))
          .map(({ text }) => text)
          .join(''),
      )
      const totals = [...totalRowsOf(invoice), ...balanceRowsOf(invoice)]
      const parts = [...invoice.lines.flatMap(cellsOf), ...totals.flat(), ...noticesOf(invoice)]
      const table = printed.slice(printed.indexOf('Description'))
      assert.equal(table.replaceAll('DescriptionQuantityRate(AUD)Amount(AUD)', ''), packed(parts.join('')))
      const body = placed.filter((it) => !isFooter(it) && it.left < LEFT + 1)
      const tableLines = body.slice(body.findIndex(({ text }) => text === 'Description'))
      for (const [index, { page, y }] of tableLines.entries()) {
        const next = tableLines[index + 1]
        if (next) assert.ok(next.page > page || (next.page === page && next.y > y), next.text)
      }
    }
  })

  it('stays inside the margins without overlaps', () => {
    for (const { placed } of layouts) {
      for (const it of placed) {
        assert.ok(it.left >= LEFT - 0.01 && it.right <= RIGHT + 0.01, it.text)
        assert.ok(it.y > 50 && it.y < (isFooter(it) ? 815 : 785), `${it.text} at ${it.y}`)
      }
      for (const [index, one] of placed.entries()) {
        const hidden = placed.slice(index + 1).find((other) => overlap(one, other))
        assert.equal(hidden, undefined, one.text)
      }
    }
  })

  it('aligns quantities and rates at the right of their columns, and all amounts at the decimal point', () => {
    for (const { invoice, placed } of layouts) {
      const start = placed.findIndex(({ text }) => text === 'Description')
      const body = placed.slice(start).filter((it) => !isFooter(it))
      for (const [column, end] of COLUMN_ENDS.entries()) {
        const figures = new Set(invoice.lines.map((line) => cellsOf(line)[column + 1]))
        const found = body.filter(({ text }) => figures.has(text))
        assert.equal(found.length, invoice.lines.length)
        for (const { right } of found) assert.ok(Math.abs(right - end) < 0.01, String(right))
      }
      const amounts = new Set(amountsOf(invoice))
      const found = body.filter(({ text, left }) => left > 432 && amounts.has(text))
      assert.equal(found.length, amountsOf(invoice).length)
      const fractions = new Set(found.map(({ text }) => fractionOf(text).length))
      assert.ok(invoice.lines.length === 1 || fractions.size > 2, 'amounts of different lengths')
      // All digits have the same width, in one size and weight.
      const points = found.map(
        ({ text, right, left }) => right - ((right - left) * widthIn(fractionOf(text))) / widthIn(text),
      )
      for (const point of points) assert.ok(Math.abs(point - points[0]!) < 0.5, `${point} ${points[0]}`)
    }
  })

  it('begins with the amount due and its day', () => {
    for (const { invoice, placed } of layouts) {
      const top = placed.filter(({ page, y }) => page === 0 && y < 100).map(({ text }) => text)
      const due = invoice.balance?.amount_due ?? invoice.total
      assert.deepEqual(top, ['Tax invoice', 'Amount due', `A$${due}`, 'by 19 November 2026'])
    }
  })

  it('repeats the table head, keeps the totals together, and numbers the pages', () => {
    const endings = new Set<number>()
    for (const { invoice, placed, rules } of layouts) {
      const pages = Math.max(...placed.map(({ page }) => page)) + 1
      const pageOf = (wanted: string): number => placed.findLast(({ text }) => text.startsWith(wanted))?.page ?? -1
      const heads = placed.filter(({ text }) => text === 'Description').map(({ page }) => page)
      assert.equal(rules, invoice.lines.length + heads.length, 'a line below each row')
      const rates = new Set(invoice.lines.map((line) => cellsOf(line)[2]))
      const tablePages = new Set(placed.filter(({ text }) => rates.has(text)).map(({ page }) => page))
      assert.ok(tablePages.isSubsetOf(new Set(heads)) && heads.length === new Set(heads).size)
      const totals = [...totalRowsOf(invoice), ...balanceRowsOf(invoice)].map(([name]) => pageOf(name.slice(0, 12)))
      assert.equal(new Set(totals).size, 1)
      // Neither the totals nor the payment terms are on a page of their own.
      assert.ok(tablePages.has(totals[0] ?? -1))
      for (const notice of noticesOf(invoice)) assert.equal(pageOf(notice.slice(0, 12)), totals[0])
      endings.add(totals[0] ?? -1)
      const footers = placed.filter(isFooter)
      assert.deepEqual(
        footers.map(({ page, text }) => [page, text]),
        Array.from({ length: pages }, (_, page) => [page, `Tax invoice INV-000001 · page ${page + 1} of ${pages}`]),
      )
      for (const { left, right } of footers) assert.ok(Math.abs(left + right - LEFT - RIGHT) < 0.01)
    }
    assert.deepEqual(endings, new Set([0, 1, 2]))
  })
})
