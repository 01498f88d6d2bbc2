import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { nextStart, reportPeriod, startAmong, timesIn } from '../../src/billing/usage/routes/report-period.ts'

const HOUR_MS = 3_600_000

const refused = { code: 'invalid_value', param: 'to' }

describe('the period of a report', () => {
  it('has whole days of Sydney, the last one included', () => {
    const { from, to, unit } = reportPeriod({ from: '2026-07-01', to: '2026-07-01' })
    assert.equal(new Date(from).toISOString(), '2026-06-30T14:00:00.000Z')
    assert.deepEqual([to - from, unit], [24 * HOUR_MS, 'hour'])
  })

  it('is refused if it ends before it begins, or is longer than 400 days', () => {
    assert.throws(() => reportPeriod({ from: '2026-07-02', to: '2026-07-01' }), refused)
    // Both ends have winter time.
    assert.equal(reportPeriod({ from: '2025-06-01', to: '2026-07-05' }).unit, 'day')
    assert.throws(() => reportPeriod({ from: '2025-06-01', to: '2026-07-06' }), refused)
  })

  it('is refused if it is not written as dates', () => {
    for (const date of ['2026-7-1', '2026-07-01T00:00', ' 2026-07-01', 'x2026-07-01']) {
      assert.throws(() => reportPeriod({ from: date, to: '2026-07-01' }), { code: 'invalid_value', param: 'from' })
      assert.throws(() => reportPeriod({ from: '2026-07-01', to: date }), refused)
    }
  })

  it('is shown by hour up to three days, and by day beyond', () => {
    const hours = reportPeriod({ from: '2026-07-01', to: '2026-07-03' })
    assert.deepEqual([hours.unit, timesIn(hours).length], ['hour', 72])
    const days = reportPeriod({ from: '2026-07-01', to: '2026-07-04' })
    assert.deepEqual([days.unit, timesIn(days).length], ['day', 4])
  })

  it('has as many days as the calendar, even when daylight saving changes', () => {
    for (const [from, to, hours] of [
      ['2026-10-01', '2026-10-08', 8 * 24 - 1],
      ['2026-04-01', '2026-04-08', 8 * 24 + 1],
    ] as const) {
      const period = reportPeriod({ from, to })
      assert.equal(period.to - period.from, hours * HOUR_MS)
      const times = timesIn(period)
      assert.equal(times.length, 8)
      assert.equal(nextStart(times.at(-1) ?? 0, 'day'), period.to)
      for (const [index, at] of times.entries()) {
        const next = times[index + 1] ?? period.to
        for (const moment of [at, at + 1, next - 1]) assert.equal(startAmong(times, moment), at)
      }
    }
  })
})
