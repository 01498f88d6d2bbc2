import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { addTo, emptySums } from '../../src/billing/invoices/priced-sums.ts'
import { formatAbn, parseAbn } from '../../src/shared/money/abn.ts'
import { linesOf, totalsOf, type InvoiceLine, type VersionRates } from '../../src/billing/invoices/invoice.ts'
import type { LedgerRow } from '../../src/ledger/rows.ts'
import { toCents } from '../../src/shared/money/money.ts'
import { rate, type Usage } from '../../src/billing/rating/rating.ts'
import { seededRandom } from '../../src/shared/seeded-random.ts'
import { parseMonth, sydneyMidnight, sydneyMonth, type Month } from '../../src/shared/money/sydney-time.ts'
import type { PricedSums } from '../../src/billing/usage/usage-sums.ts'
import { runLength } from '../support/long-run.ts'

fc.configureGlobal({ seed: 1 })

const RECORDS = runLength(20_000, 1_000_000)
const HOUR_MS = 3_600_000

/** Months with both daylight saving changes, leap years and a new year. */
const months: readonly Month[] = ['2024-02', '2026-04', '2026-10', '2027-12', '2028-01', '2028-02', '2028-03'].map(
  (name) => parseMonth(name)!,
)

/** The smallest possible rate, the largest the catalog allows, zero, and some in between. */
const perToken = [1n, 10_000_000_000n, 0n, 200_000n, 333_333n, 7n]
const perThing = [1n, 10_000_000_000_000_000n, 0n, 40_000_000_000n, 6_000_000_001n]

const versions: readonly VersionRates[] = Array.from({ length: 60 }, (_, index) => ({
  inputPerToken: perToken[index % 6]!,
  outputPerToken: perToken[(index + 1) % 6]!,
  cachedInputPerToken: index % 4 === 0 ? null : perToken[(index + 3) % 6]!,
  perImage: perThing[index % 5]!,
  perAudioMinute: perThing[(index + 2) % 5]!,
  perHour: null,
  imageKind: '',
  tier: 'default',
}))
const ratesOf = (version: number): VersionRates => versions[version]!

const sumOf = (lines: readonly InvoiceLine[]): bigint => lines.reduce((total, { amount }) => total + amount, 0n)

describe('very many records across workspaces, months, models and prices', () => {
  it('add up on the invoices to the pico-dollar, each counted once', () => {
    const random = seededRandom(20261115)
    const whole = (below: number): number => Math.floor(random() * below)
    const invoices = new Map<string, { rows: number; amount: bigint; sums: Map<string, PricedSums> }>()
    let total = 0n
    for (let record = 0; record < RECORDS; record++) {
      const month = months[whole(months.length)]!
      const priceVersion = whole(versions.length)
      const inputTokens = whole(1 << whole(27))
      const usage: Usage = {
        inputTokens,
        cachedInputTokens: whole(inputTokens + 1),
        outputTokens: whole(1 << whole(17)),
        images: priceVersion % 5 === 1 ? 0 : whole(11),
        audioMs: priceVersion % 5 === 4 ? 0 : whole(10_000_000),
      }
      const amount = rate(usage, ratesOf(priceVersion))
      const model = `model-${whole(5)}`
      const row = { ...usage, estimated: false, amount } as LedgerRow
      const address = `${whole(20)} ${month.name}`
      let invoice = invoices.get(address)
      if (!invoice) invoices.set(address, (invoice = { rows: 0, amount: 0n, sums: new Map() }))
      invoice.rows++
      invoice.amount += amount
      total += amount
      const line = `${model} ${priceVersion}`
      invoice.sums.set(line, addTo(invoice.sums.get(line) ?? emptySums(model, priceVersion), row))
    }
    let invoiced = 0n
    let rows = 0
    for (const { amount, rows: expected, sums } of invoices.values()) {
      const lines = linesOf([...sums.values()], ratesOf)
      const found = [...sums.values()].reduce((count, it) => count + it.rows, 0)
      assert.equal(found, expected)
      assert.equal(sumOf(lines), amount)
      const { exact, subtotal, gst, total: printed } = totalsOf(lines)
      assert.equal(exact, amount)
      assert.ok(subtotal * 10n - gst * 100n <= 50n && gst * 100n - subtotal * 10n <= 50n)
      assert.equal(printed, subtotal + gst)
      invoiced += exact
      rows += found
    }
    assert.equal(invoices.size, 20 * months.length)
    assert.equal(invoiced, total)
    assert.equal(rows, RECORDS)
  })
})

describe('the lines of an invoice', () => {
  const record = fc.record({
    priceVersion: fc.nat(versions.length - 1),
    inputTokens: fc.nat(1_000_000),
    cachedInputTokens: fc.nat(1_000_000),
    outputTokens: fc.nat(100_000),
    audioMs: fc.nat(10_000_000),
    images: fc.nat(3),
    part: fc.nat(3),
  })

  it('do not depend on the order or the grouping of the rows', () => {
    fc.assert(
      fc.property(fc.array(record, { maxLength: 60 }), (records) => {
        const parts = new Map<number, Map<number, PricedSums>>()
        let amount = 0n
        for (const it of records) {
          const usage = { ...it, cachedInputTokens: Math.min(it.cachedInputTokens, it.inputTokens) }
          const row = { ...usage, amount: rate(usage, ratesOf(it.priceVersion)) } as unknown as LedgerRow
          amount += row.amount
          const part = parts.get(it.part) ?? new Map<number, PricedSums>()
          parts.set(
            it.part,
            part.set(it.priceVersion, addTo(part.get(it.priceVersion) ?? emptySums('m', it.priceVersion), row)),
          )
        }
        const all = [...parts.values()].flatMap((part) => [...part.values()])
        const together = linesOf(all, ratesOf)
        assert.equal(sumOf(together), amount)
        assert.equal(
          all.reduce((sum, it) => sum + sumOf(linesOf([it], ratesOf)), 0n),
          amount,
        )
        const shown = (lines: readonly InvoiceLine[]): unknown =>
          lines.map(({ unit, rate: perUnit, quantity, amount: sum }) => [unit, perUnit, quantity, sum])
        assert.deepEqual(shown(linesOf(all.toReversed(), ratesOf)), shown(together))
      }),
    )
  })

  it('are listed by model, unit, kind of image, tier and rate, whatever the order of the sums', () => {
    const rates = { ...versions[0]!, inputPerToken: 5n, outputPerToken: 3n, cachedInputPerToken: 2n, perImage: 7n }
    const priced: readonly VersionRates[] = [
      rates,
      { ...rates, imageKind: '1024x1024' },
      { ...rates, imageKind: '512x512' },
      { ...rates, tier: 'flex' },
      { ...rates, inputPerToken: 4n },
    ]
    const sumsOf = (model: string, version: number): PricedSums => ({
      ...emptySums(model, version),
      images: version === 0 ? 0n : 1n,
      inputTokens: version === 1 || version === 2 ? 0n : 3n,
      cachedInputTokens: version === 0 ? 1n : 0n,
      outputTokens: version === 0 ? 1n : 0n,
      amount: version === 0 ? 15n : version === 3 ? 22n : version === 4 ? 19n : 7n,
    })
    const all = [sumsOf('b', 0), ...[0, 1, 2, 3, 4].map((version) => sumsOf('a', version))]
    for (const given of [all, all.toReversed()])
      assert.deepEqual(
        linesOf(given, (version) => priced[version]!).map((line) => [
          line.model,
          line.unit,
          line.imageKind,
          line.tier,
          line.rate,
        ]),
        [
          ['a', 'input_tokens', '', 'default', 4n],
          ['a', 'input_tokens', '', 'default', 5n],
          ['a', 'input_tokens', '', 'flex', 5n],
          ['a', 'cached_input_tokens', '', 'default', 2n],
          ['a', 'output_tokens', '', 'default', 3n],
          ['a', 'images', '', 'default', 7n],
          ['a', 'images', '', 'flex', 7n],
          ['a', 'images', '1024x1024', 'default', 7n],
          ['a', 'images', '512x512', 'default', 7n],
          ['b', 'input_tokens', '', 'default', 5n],
          ['b', 'cached_input_tokens', '', 'default', 2n],
          ['b', 'output_tokens', '', 'default', 3n],
        ],
      )
  })

  it('reject an amount that the usage cannot explain', () => {
    const free = { ...versions[0]!, perAudioMinute: null }
    assert.throws(() => linesOf([{ ...emptySums('m', 0), amount: 1n }], () => free), /more than its usage/)
  })
})

describe('rounding', () => {
  it('computes GST from the printed subtotal, so that the printed figures add up', () => {
    // 4.5 cents are printed as 5. A tenth of that is half a cent, which rounds up; a tenth of 4.5 would round down.
    const { subtotal, gst, total } = totalsOf([{ amount: 45_000_000_000n } as InvoiceLine])
    assert.deepEqual([subtotal, gst, total], [5n, 1n, 6n])
  })

  it('is half up, and symmetric, so that a credit reverses exactly what was charged', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 19n }), (amount) => {
        const cents = toCents(amount)
        assert.ok(cents * 10n ** 10n - amount <= 5n * 10n ** 9n && amount - cents * 10n ** 10n < 5n * 10n ** 9n)
        assert.equal(toCents(-amount), -cents)
      }),
    )
    assert.equal(toCents(5_000_000_000n), 1n)
    assert.equal(toCents(4_999_999_999n), 0n)
  })
})

describe('a month in Sydney', () => {
  it('is an hour shorter or longer when daylight saving changes', () => {
    const hours = (name: string): number => (parseMonth(name)!.to - parseMonth(name)!.from) / HOUR_MS
    assert.deepEqual(
      ['2026-01', '2026-02', '2028-02', '2026-04', '2026-10', '2026-11'].map(hours),
      [744, 672, 696, 721, 743, 720],
    )
  })

  it('follows the previous month without a gap or overlap, and includes its first and last millisecond', () => {
    let before: Month | undefined
    for (let year = 2020; year < 2040; year++) {
      for (let month = 1; month <= 12; month++) {
        const it = parseMonth(`${year}-${String(month).padStart(2, '0')}`)!
        assert.equal(it.from, sydneyMidnight(year, month, 1))
        if (before) assert.equal(before.to, it.from)
        assert.equal(sydneyMonth(it.from).name, it.name)
        assert.equal(sydneyMonth(it.to - 1).name, it.name)
        before = it
      }
    }
    for (const wrong of ['2026', '2026-00', '2026-13', '2026-1', '1999-01', '2026-11-01', '']) {
      assert.equal(parseMonth(wrong), undefined, wrong)
    }
  })
})

describe('an ABN', () => {
  it('is refused when any digit is wrong or any two neighbours are swapped', () => {
    const real = ['51824753556', '83914571673', '53004085616']
    for (const abn of real) {
      assert.equal(parseAbn(formatAbn(abn)), abn)
      for (let at = 0; at < 11; at++) {
        for (let digit = 0; digit < 10; digit++) {
          const typed = abn.slice(0, at) + String(digit) + abn.slice(at + 1)
          if (typed !== abn) assert.equal(parseAbn(typed), undefined, typed)
        }
        const swapped = abn.slice(0, at) + (abn[at + 1] ?? '') + (abn[at] ?? '') + abn.slice(at + 2)
        if (at < 10 && swapped !== abn) assert.equal(parseAbn(swapped), undefined, swapped)
      }
    }
    for (const wrong of ['', '5182475355', '518247535567', 'ABN 51824753556', '01824753556'])
      assert.equal(parseAbn(wrong), undefined)
  })
})
