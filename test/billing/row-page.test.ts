import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { LineRow, LineRows } from '../../src/billing/invoices/rows/line-rows.ts'
import { PAGE_POLICY, refusalPage, rowPage, rowsCsv } from '../../src/billing/invoices/rows/row-page.ts'
import type { LedgerRow } from '../../src/ledger/rows.ts'
import { sampleRow } from '../support/ledger-samples.ts'

const at = Date.parse('2026-11-01T13:05:09Z')

function rowOf(requestId: string, changes: Partial<LedgerRow> = {}): LineRow {
  const row = sampleRow(requestId, { startedAt: at, settledAt: at + 1, ...changes })
  return { row, quantity: 61_500n, amount: 1_234_500_000_000_000n, quantitySoFar: 0n }
}

const line = {
  model: 'a/b',
  unit: 'input_tokens',
  description: 'a/b <input>',
  quantity_text: '61,500 tokens',
  rate: '0.20',
  rate_per: '1M tokens',
  amount: '1234.50',
}
const found = (rows: readonly LineRow[], unit = 'input_tokens') =>
  ({
    document: {
      title: 'Tax invoice',
      number: 'INV-000001',
      period_from: '2026-10-01',
      period_to: '2026-10-31',
      buyer: { name: 'A & B' },
    },
    line: { ...line, unit },
    async *all() {
      yield rows
      yield []
      yield rows.slice(0, 1)
    },
  }) as unknown as LineRows
const links = { csv: '/x?a=1&b=2', first: undefined, next: undefined, until: '2027-02-13' }

describe('the page with the rows of an invoice line', () => {
  it('has each row with its time in Sydney, its amount, and its special properties', () => {
    const correction = { of: 'q<1>', reason: 'wrong', creditNote: '' }
    const rows = [
      rowOf('r<1>'),
      rowOf('r2', { estimated: true, outcome: 'engine_broke' }),
      rowOf('r3', { correction }),
      rowOf('r4', { credit: { reason: 'goodwill', creditNote: '' } }),
    ]
    const page = rowPage(found(rows), rows, links)
    assert.match(page, /<title>Tax invoice INV-000001: a\/b &#60;input&#62;<\/title>/)
    assert.match(page, /1 October 2026 to 31 October 2026, for A &#38; B</)
    assert.match(page, /<th class="n">Quantity<\/th><th class="n">Rate \(AUD\)<\/th><th class="n">Amount \(AUD\)<\/th>/)
    const cells = '<td class="n">61,500 tokens</td><td class="n">0.20 / 1M tokens</td><td class="n">1,234.50</td>'
    assert.ok(page.includes(`<tbody><tr>${cells}</tr></tbody>`))
    const shown = [
      ...page.matchAll(/<tr><td class="t">(.*?)<\/td><td>(.*?)<\/td><td class="n">(.*?)<\/td><td class="n">(.*?)</g),
    ]
    const time = shown[0]?.[1] ?? ''
    assert.match(time, /^2 Nov 2026, 00:05:09$/)
    assert.deepEqual(
      shown.map((cell) => cell.slice(1)),
      [
        'r&#60;1&#62;',
        'r2<br><span class="g">estimated, engine broke</span>',
        'r3<br><span class="g">reverses q&#60;1&#62;: wrong</span>',
        'r4<br><span class="g">goodwill</span>',
      ].map((remark) => [time, remark, '61,500', '1,234.50']),
    )
    assert.match(page, /This page works until 13 February 2027\./)
  })

  it('has quantities in the unit of the line', () => {
    for (const [unit, text] of [
      ['audio_minutes', '1 min 1.5 s'],
      ['rounding', '1 min 1.5 s'],
      ['capacity_hours', '1 min 1.5 s'],
      ['images', '61,500'],
    ] as const) {
      assert.ok(rowPage(found([], unit), [rowOf('r')], links).includes(`<td class="n">${text}</td>`), unit)
    }
  })

  it('links to the first page, the next one and the CSV, if they exist', () => {
    const csv = '<a href="/x?a=1&#38;b=2">All rows as CSV</a>'
    assert.ok(rowPage(found([]), [], links).includes(`<nav>${csv}</nav>`))
    const all = rowPage(found([]), [], { ...links, first: '/f', next: '/n' })
    assert.ok(all.includes(`<nav><a href="/f">First page</a><a href="/n">Next page</a>${csv}</nav>`))
  })

  it('runs no script and loads nothing, even when a link is invalid', () => {
    const refusal = refusalPage('It has <expired>.')
    assert.match(refusal, /<h1>This link does not work<\/h1><p>It has &#60;expired&#62;\.<\/p>/)
    for (const page of [refusal, rowPage(found([]), [], links)]) {
      assert.doesNotMatch(page, /<script|<img|<link|src=/)
      assert.match(page, /<meta name="robots" content="noindex">/)
    }
    assert.match(
      PAGE_POLICY,
      /^default-src 'none'; style-src 'sha256-[\w+/]{43}='; base-uri 'none'; form-action 'none'; /,
    )
  })
})

describe('the rows of an invoice line as CSV', () => {
  it('have a header, and a line for each row, page by page', async () => {
    const rows = [rowOf('r', { correction: { of: 'q', reason: 'a,b', creditNote: '' } })]
    const text = (await Array.fromAsync(rowsCsv(found(rows)))).join('')
    const csv = 'r,2026-11-01T13:05:09.000Z,2026-11-01T13:05:09.001Z,61500,1234.50,false,completed,q,"a,b"\n'
    assert.equal(text, `request_id,started,settled,quantity,amount_aud,estimated,outcome,corrects,reason\n${csv}${csv}`)
  })
})
