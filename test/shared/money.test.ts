import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { divideHalfUp, formatAud, parseAud, grouped } from '../../src/shared/money/money.ts'

fc.configureGlobal({ seed: 1 })

describe('amounts in pico-AUD', () => {
  it('are parsed exactly', () => {
    assert.equal(parseAud('0.15'), 150_000_000_000n)
    assert.equal(parseAud('0'), 0n)
    assert.equal(parseAud('1'), 1_000_000_000_000n)
    assert.equal(parseAud('0.000000000001'), 1n)
    assert.equal(parseAud('999999999.999999999999'), 999_999_999_999_999_999_999n)
  })

  it('are refused when the text is not a plain decimal', () => {
    const wrong = ['', ' ', '.5', '5.', '-1', '+1', '1e3', '0x10', '01', '1,5', '1.2.3', ' 1', '1 ', '1\n', 'NaN', '٣']
    for (const text of [...wrong, '1000000000', '0.0000000000001']) assert.equal(parseAud(text), undefined, `"${text}"`)
  })

  it('are formatted without loss, with at least the requested decimals', () => {
    assert.equal(formatAud(150_000n), '0.00000015')
    assert.equal(formatAud(200_000_000_000n), '0.20')
    assert.equal(formatAud(200_000_000_000n, 0), '0.2')
    assert.equal(formatAud(0n), '0.00')
    assert.equal(formatAud(0n, 0), '0')
    assert.equal(formatAud(-1_500_000_000_000n), '-1.50')
    assert.equal(formatAud(-1n), '-0.000000000001')
  })

  it('are grouped by thousands, with their sign and their fraction', () => {
    for (const [amount, text] of [
      ['0', '0'],
      ['123', '123'],
      ['1234', '1,234'],
      ['-123', '-123'],
      ['-1234', '-1,234'],
      ['123456', '123,456'],
      ['1234567.8901', '1,234,567.8901'],
    ] as const) {
      assert.equal(grouped(amount), text)
    }
  })

  it('survive formatting and parsing, whatever the amount and the decimals', () => {
    const amounts = fc.bigInt({ min: 0n, max: 999_999_999_999_999_999_999n })
    fc.assert(
      fc.property(amounts, fc.integer({ min: 0, max: 12 }), (amount, decimals) => {
        const text = formatAud(amount, decimals)
        assert.equal(parseAud(text), amount)
        assert.ok((text.split('.')[1] ?? '').length >= decimals)
      }),
    )
  })

  it('are divided to the nearest whole number, halves rounded up', () => {
    assert.equal(divideHalfUp(5n, 10n), 1n)
    assert.equal(divideHalfUp(4n, 10n), 0n)
    assert.equal(divideHalfUp(15n, 10n), 2n)
    assert.equal(divideHalfUp(1n, 3n), 0n)
    assert.equal(divideHalfUp(2n, 3n), 1n)
    const positive = fc.bigInt({ min: 1n, max: 10n ** 30n })
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 30n }), positive, (amount, divisor) => {
        // Exactly one whole number q satisfies q − ½ ≤ amount / divisor < q + ½.
        const quotient = divideHalfUp(amount, divisor)
        assert.ok((2n * quotient - 1n) * divisor <= 2n * amount)
        assert.ok(2n * amount < (2n * quotient + 1n) * divisor)
      }),
    )
  })
})
