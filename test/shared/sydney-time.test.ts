import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { usageQuery } from '../../src/billing/usage/views.ts'
import { ApiError } from '../../src/shared/errors.ts'
import { sydneyDate, sydneyDay, sydneyMidnight, sydneyMonth } from '../../src/shared/money/sydney-time.ts'

fc.configureGlobal({ seed: 1 })

const HOUR_MS = 3_600_000
const iso = (at: number): string => new Date(at).toISOString()

describe('a day or month in Sydney', () => {
  it('begins at its midnight, whichever day or month was asked for before', () => {
    const midnight = sydneyMidnight(2026, 6, 1)
    assert.equal(sydneyDay(midnight - 1), sydneyMidnight(2026, 5, 31))
    assert.equal(sydneyDay(midnight), midnight)
    assert.equal(sydneyDay(midnight - 1), sydneyMidnight(2026, 5, 31))
    assert.equal(sydneyMonth(midnight - 1).name, '2026-05')
    assert.equal(sydneyMonth(midnight).name, '2026-06')
    assert.equal(sydneyMonth(midnight - 1).name, '2026-05')
  })
})

describe('midnight in Sydney', () => {
  it('is 14:00 UTC on the day before in winter and 13:00 UTC in summer', () => {
    assert.equal(iso(sydneyMidnight(2026, 7, 1)), '2026-06-30T14:00:00.000Z')
    assert.equal(iso(sydneyMidnight(2026, 1, 1)), '2025-12-31T13:00:00.000Z')
  })

  it('is right when daylight saving begins: that day has 23 hours', () => {
    assert.equal(iso(sydneyMidnight(2026, 10, 4)), '2026-10-03T14:00:00.000Z')
    assert.equal(iso(sydneyMidnight(2026, 10, 5)), '2026-10-04T13:00:00.000Z')
    assert.equal(sydneyMidnight(2026, 10, 5) - sydneyMidnight(2026, 10, 4), 23 * HOUR_MS)
  })

  it('is right when daylight saving ends: that day has 25 hours', () => {
    assert.equal(iso(sydneyMidnight(2026, 4, 5)), '2026-04-04T13:00:00.000Z')
    assert.equal(iso(sydneyMidnight(2026, 4, 6)), '2026-04-05T14:00:00.000Z')
    assert.equal(sydneyMidnight(2026, 4, 6) - sydneyMidnight(2026, 4, 5), 25 * HOUR_MS)
  })

  it('overflows into the next month and year, as Date.UTC does', () => {
    assert.equal(sydneyMidnight(2026, 12, 32), sydneyMidnight(2027, 1, 1))
    assert.equal(sydneyMidnight(2026, 13, 1), sydneyMidnight(2027, 1, 1))
    assert.equal(sydneyMidnight(2028, 2, 30), sydneyMidnight(2028, 3, 1))
  })

  it('is the first millisecond of its date, on every day for 30 years', () => {
    for (let day = 1; day <= 366 * 30; day++) {
      const at = sydneyMidnight(2015, 1, day)
      const date = new Date(Date.UTC(2015, 0, day)).toISOString().slice(0, 10)
      assert.equal(sydneyDate(at), date)
      assert.notEqual(sydneyDate(at - 1), date)
    }
  })

  it('is at or before every moment of its day, by at most 25 hours', () => {
    const moments = fc.integer({ min: Date.UTC(2000, 0), max: Date.UTC(2100, 0) })
    fc.assert(
      fc.property(moments, (at) => {
        const [year = 0, month = 0, day = 0] = sydneyDate(at).split('-').map(Number)
        const since = at - sydneyMidnight(year, month, day)
        assert.ok(since >= 0 && since < 25 * HOUR_MS)
      }),
    )
  })
})

describe('the period of a usage query', () => {
  const period = (from?: string, to?: string) => {
    const query = usageQuery('ws_1', { from, to })
    return [query.from, query.to]
  }

  it('counts days in Sydney and includes the whole last day', () => {
    assert.deepEqual(period('2026-10-04', '2026-10-04'), [sydneyMidnight(2026, 10, 4), sydneyMidnight(2026, 10, 5)])
    assert.deepEqual(period('2026-12-31', '2026-12-31'), [sydneyMidnight(2026, 12, 31), sydneyMidnight(2027, 1, 1)])
  })

  it('takes a time with an offset literally, and covers everything when no bounds are given', () => {
    assert.deepEqual(period('2026-10-04T09:00:00Z', '2026-10-04T20:00:00+11:00'), [
      Date.UTC(2026, 9, 4, 9),
      Date.UTC(2026, 9, 4, 9),
    ])
    assert.deepEqual(period(), [0, Number.MAX_SAFE_INTEGER])
  })

  it('is refused, naming the parameter, when a bound is not a date', () => {
    const wrong = ['yesterday', '2026-1-1', '2026-10-04T09:00:00', '20261004', '2026-13-01', '2026-02-30', '2026-00-10']
    // A year that JavaScript can write, but whose days do not all exist in Sydney.
    wrong.push('+275760-09-12T00:00:00Z')
    for (const text of wrong) {
      for (const name of ['from', 'to'] as const) {
        assert.throws(
          () => usageQuery('ws_1', { [name]: text }),
          (error) => error instanceof ApiError && error.code === 'invalid_value' && error.param === name,
          text,
        )
      }
    }
  })
})
