import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { latencyBuckets } from '../../src/billing/latency-report.ts'
import { paceOf } from '../../src/core/money/pace.ts'
import { parseMonth } from '../../src/core/money/sydney-time.ts'
import { sampleRow } from '../support/ledger-samples.ts'

const DAY = 86_400_000
const AUD = 1_000_000_000_000n
const month = parseMonth('2026-11') ?? assert.fail()
const now = month.from + 10 * DAY

describe('the pace of spending', () => {
  it('forecasts what was spent and the rest of the month at the pace of the last days', () => {
    const pace = paceOf(month, now, 100n * AUD, { amount: 14n * AUD, ms: 7 * DAY }, undefined)
    assert.equal(pace.perDay, 2n * AUD)
    assert.equal(pace.forecast, 140n * AUD)
    assert.equal(pace.reachesLimitAt, undefined)
  })

  it('says when a limit is reached, if it is in this month', () => {
    const recent = { amount: 14n * AUD, ms: 7 * DAY }
    assert.equal(paceOf(month, now, 100n * AUD, recent, 110n * AUD).reachesLimitAt, now + 5 * DAY)
    assert.equal(paceOf(month, now, 100n * AUD, recent, 141n * AUD).reachesLimitAt, undefined)
    assert.equal(paceOf(month, now, 100n * AUD, recent, 100n * AUD).reachesLimitAt, undefined, 'it is reached')
    assert.equal(paceOf(month, now, 100n * AUD, { amount: 0n, ms: 7 * DAY }, 110n * AUD).reachesLimitAt, undefined)
  })
})

describe('the times of requests', () => {
  it('are percentiles of each hour, and know how many failed', () => {
    const rows = Array.from({ length: 100 }, (_, index) =>
      sampleRow(`r${index}`, {
        settledAt: index < 50 ? 1000 : 3_601_000,
        queueWaitMs: index,
        firstTokenMs: index % 2 === 0 ? null : index,
        outcome: index === 3 ? 'caller_left' : 'completed',
      }),
    )
    const buckets = latencyBuckets(rows, (at) => at - (at % 3_600_000))
    assert.deepEqual(
      buckets.map(({ at, requests, failed, queueWaitMs }) => [at, requests, failed, queueWaitMs.p50, queueWaitMs.p95]),
      [
        [0, 50, 1, 25, 47],
        [3_600_000, 50, 0, 75, 97],
      ],
    )
    assert.equal(buckets[0]?.firstTokenMs.p95, 47)
    assert.deepEqual(latencyBuckets([sampleRow('r', { firstTokenMs: null })], () => 0)[0]?.firstTokenMs, {
      p50: null,
      p95: null,
    })
  })
})
