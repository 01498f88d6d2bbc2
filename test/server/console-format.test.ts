import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  aud,
  brief,
  count,
  exactAud,
  exactPicoAud,
  picoAud,
  picoAudAxis,
  picoOf,
  price,
} from '../../console/shared/format.ts'

describe('amounts in the consoles', () => {
  it('have every digit of the ledger, groups of thousands, and the sign in front', () => {
    assert.equal(exactAud('1234567.5'), 'A$1,234,567.50')
    assert.equal(exactAud('0.000009'), 'A$0.000009')
    assert.equal(exactAud('-1234.00'), '−A$1,234.00')
    assert.equal(exactAud('7'), 'A$7.00')
  })

  it('are written in the unit and with the digits of their magnitude', () => {
    assert.deepEqual(
      ['0', '1234.5', '0.5', '0.0996', '0.0113', '0.0000356', '0.0000000012', '-0.5', '-0.02'].map((it) => aud(it)),
      ['A$0.00', 'A$1,234.50', 'A$0.50', '9.96¢', '1.13¢', '0.00356¢', '0.000000120¢', '−A$0.50', '−2.00¢'],
    )
    assert.deepEqual([picoAud('3800000'), picoAud('-1500000000000')], ['0.000380¢', '−A$1.50'])
  })

  it('of a column have one unit and the same digits, so that they can be compared', () => {
    const column = (amounts: readonly string[]): readonly string[] => amounts.map((it) => aud(it, amounts))
    assert.deepEqual(column(['19.05', '0.28', '0']), ['A$19.05', 'A$0.28', 'A$0.00'])
    assert.deepEqual(column(['0.41', '0.00746', '0.00394']), ['A$0.4100', 'A$0.0075', 'A$0.0039'])
    assert.deepEqual(column(['0.00841', '0.0000147', '-0.000383']), ['0.8410¢', '0.0015¢', '−0.0383¢'])
    assert.deepEqual(
      ['10.8310149', '0.4002525'].map((it) => exactAud(it, 8)),
      ['A$10.83101490', 'A$0.40025250'],
    )
  })

  it('stay in dollars if they are prices, so that these can be compared', () => {
    assert.deepEqual([price('0.15'), price('0.0113'), price('12')], ['A$0.15', 'A$0.0113', 'A$12.00'])
  })

  it('add up in pico-AUD, without losing a digit', () => {
    const sum = ['0.1', '0.2', '0.000000000001', '-0.05'].reduce((total, amount) => total + picoOf(amount), 0)
    assert.equal(exactPicoAud(sum), 'A$0.250000000001')
    assert.deepEqual([exactPicoAud('1234500000000000'), exactPicoAud(-5)], ['A$1,234.50', '−A$0.000000000005'])
  })

  it('have one unit on an axis, and the digits of its steps', () => {
    const labels = (steps: readonly string[]): readonly string[] => {
      const values = steps.map(picoOf)
      return values.map(picoAudAxis(values.at(-1) ?? 0, values[1] ?? 0))
    }
    assert.deepEqual(labels(['0', '0.5', '1']), ['A$0.00', 'A$0.50', 'A$1.00'])
    assert.deepEqual(labels(['0', '2000', '4000']), ['A$0', 'A$2,000', 'A$4,000'])
    assert.deepEqual(labels(['0', '0.02', '0.04']), ['0¢', '2¢', '4¢'])
    assert.deepEqual(labels(['0', '0.000002', '0.000004']), ['0.0000¢', '0.0002¢', '0.0004¢'])
  })

  it('count whole things', () => {
    assert.deepEqual([count(1234), brief(0.25), brief(128_000)], ['1,234', '0', '128K'])
  })
})
