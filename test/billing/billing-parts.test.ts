import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import PDFDocument from 'pdfkit'
import { latencyBuckets, percentiles } from '../../src/billing/usage/latency-report.ts'
import { monthSummary } from '../../src/billing/invoices/month-summary.ts'
import { loadFonts } from '../../src/billing/invoices/pdf/pdf-fonts.ts'
import { addTo, emptySums } from '../../src/billing/invoices/priced-sums.ts'
import { versionRates } from '../../src/billing/prices/version-rates.ts'
import { CREDIT } from '../../src/ledger/rows.ts'
import { freeVersions } from '../../src/billing/rating/rating.ts'
import type { PriceVersion } from '../../src/workspaces/workspace.ts'
import type { SampledRequest } from '../../src/billing/usage/report-store.ts'
import { sampleRow } from '../support/ledger-samples.ts'

describe('the reported time of requests', () => {
  it('is the median and the 95th percentile', () => {
    const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => count - index)
    assert.deepEqual(percentiles([]), { p50: null, p95: null })
    assert.deepEqual(percentiles([7]), { p50: 7, p95: 7 })
    assert.deepEqual(percentiles(upTo(3)), { p50: 2, p95: 3 })
    assert.deepEqual(percentiles(upTo(100)), { p50: 51, p95: 96 })
  })

  it('is listed by time, the earliest first, with failed and measured requests', () => {
    const request = (settledAt: number, changes: Partial<SampledRequest> = {}): SampledRequest => ({
      ...sampleRow('a', { settledAt, queueWaitMs: 1, firstTokenMs: null, durationMs: 3 }),
      ...changes,
    })
    const rows = [request(25, { firstTokenMs: 2 }), request(11, { outcome: 'engine_failed' }), request(29)]
    assert.deepEqual(
      latencyBuckets(rows, (at) => at - (at % 10)).map(({ at, requests, failed, firstTokenMs }) => [
        at,
        requests,
        failed,
        firstTokenMs.p50,
      ]),
      [
        [10, 1, 1, null],
        [20, 2, 0, 2],
      ],
    )
  })

  it('has the output tokens a second of those with output: half of them, and 95 of 100, are at least as fast', () => {
    const rows = Array.from({ length: 100 }, (_, index) =>
      sampleRow('a', { settledAt: 1, outputTokens: index, durationMs: 2000 }),
    )
    const [bucket] = latencyBuckets(
      [...rows, sampleRow('b', { settledAt: 1, outputTokens: 9, durationMs: 0 })],
      () => 0,
    )
    assert.deepEqual(bucket?.tokensPerSecond, { p50: 25, p95: 2.5 })
    const [silent] = latencyBuckets([sampleRow('c', { settledAt: 1, outputTokens: 0, durationMs: 5 })], () => 0)
    assert.deepEqual(silent?.tokensPerSecond, { p50: null, p95: null })
  })
})

describe('the rates of a price version', () => {
  const version = (id: number, prices: PriceVersion['prices']): PriceVersion => ({
    id,
    model: 'a/b',
    workspaceId: null,
    prices,
    effectiveFrom: 0,
  })

  it('are those of its list, or nothing for what is free; a missing version is an error', () => {
    const prices = [
      version(1, { input_per_million: '2', per_hour: '3' }),
      version(2, { per_image: 'x' }),
      version(3, null),
    ]
    const ratesOf = versionRates(prices)
    assert.deepEqual(
      [ratesOf(1).inputPerToken, ratesOf(1).perHour, ratesOf(1).imageKind],
      [2_000_000n, 3_000_000_000_000n, ''],
    )
    assert.equal(ratesOf(1), ratesOf(1), 'they are read once')
    assert.deepEqual([ratesOf(freeVersions.default).inputPerToken, ratesOf(freeVersions.default).perHour], [0n, null])
    assert.equal(ratesOf(3).perHour, null)
    assert.throws(() => ratesOf(2), /price version 2 does not exist or is unreadable/)
    assert.throws(() => ratesOf(4), /price version 4 does not exist/)
  })
})

describe('sums that are computed from rows', () => {
  it('count requests separately from corrections, credits and capacity', () => {
    const usage = { inputTokens: 1, cachedInputTokens: 2, outputTokens: 3, images: 4, audioMs: 5, amount: 6n }
    const rows = [
      sampleRow('a', { ...usage, estimated: true }),
      sampleRow('b', { ...usage, estimated: true, correction: { of: 'a', reason: 'x', creditNote: 'ADJ-1' } }),
      sampleRow('c', { ...usage, capacityMs: 7 }),
      sampleRow('d', { ...usage, model: CREDIT, credit: { reason: 'x', gst: 0n } as never }),
      sampleRow('e', usage),
    ]
    assert.deepEqual(rows.reduce(addTo, emptySums('a/b', 9)), {
      model: 'a/b',
      priceVersion: 9,
      rows: 5,
      requests: 2,
      estimatedRequests: 1,
      inputTokens: 5n,
      cachedInputTokens: 10n,
      outputTokens: 15n,
      images: 20n,
      audioMs: 25n,
      capacityMs: 7n,
      amount: 30n,
    })
  })
})

describe('the summary of a month', () => {
  it('has only the documents of that month', async () => {
    const list = async () =>
      [
        { number: 'INV-1', period: '2026-01', total: '1.00', lines: [] },
        { number: 'INV-2', period: '2026-02', total: '2.00', lines: [] },
      ] as never
    const summary = await monthSummary({ list }, {} as never, '2026-02')
    assert.deepEqual(summary, { documents: [{ number: 'INV-2', total: '2.00' }] })
  })
})

describe('the fonts of a PDF', () => {
  const fonts = loadFonts(new PDFDocument(), [])

  it('change with the script, and words of one script stay together, which Arabic needs to join its letters', () => {
    assert.deepEqual(fonts.runsOf('Weir (שלום) and مرحبا.', 'bold'), [
      { text: 'Weir (', font: 'bold' },
      { text: 'שלום', font: 'NotoSansHebrew' },
      { text: ') and ', font: 'bold' },
      { text: 'مرحبا.', font: 'NotoSansArabic' },
    ])
    assert.deepEqual(fonts.runsOf('plain', 'regular'), [{ text: 'plain', font: 'NotoSans' }])
    assert.deepEqual(fonts.runsOf('', 'regular'), [])
  })

  it('determine how wide a text is at each size and weight', () => {
    const width = fonts.widthOf('Invoice', 'regular', 10)
    assert.ok(width > 20 && width < 60, String(width))
    assert.equal(fonts.widthOf('Invoice', 'regular', 20), 2 * width)
    assert.ok(fonts.widthOf('Invoice', 'bold', 10) > width)
    assert.equal(fonts.widthOf('', 'regular', 10), 0)
  })

  it('refuse a character that none of them has, with its code', () => {
    assert.throws(() => fonts.runsOf('漢', 'regular'), { code: 'invalid_value', message: /no "漢" \(U\+6F22\)/ })
    assert.throws(() => loadFonts(new PDFDocument(), ['/nothing.ttf']), {
      message: /\/nothing\.ttf .* cannot be used: ENOENT/,
    })
    assert.throws(() => loadFonts(new PDFDocument(), ['/nothing.ttc']), { message: /name one of its fonts/ })
  })
})
