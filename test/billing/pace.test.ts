import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { latencyBuckets } from '../../src/billing/usage/latency-report.ts'
import { paceOf } from '../../src/billing/usage/pace.ts'
import { parseMonth } from '../../src/shared/money/sydney-time.ts'
import { monthOverview } from '../../src/billing/usage/routes/reports.ts'
import { testBooks } from '../support/books.ts'
import { sampleRow } from '../support/ledger-samples.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const AUD = 1_000_000_000_000n
const month = parseMonth('2026-11') ?? assert.fail()
const now = month.from + 10 * DAY

describe('the pace of spending', () => {
  it('forecasts what was spent plus the rest of the month at the pace of the last days', () => {
    const pace = paceOf(month, now, 100n * AUD, { amount: 14n * AUD, ms: 7 * DAY }, undefined)
    assert.equal(pace.perDay, 2n * AUD)
    assert.equal(pace.forecast, 140n * AUD)
    assert.equal(pace.reachesLimitAt, undefined)
  })

  it('reports when a limit will be reached, if that is in this month', () => {
    const recent = { amount: 14n * AUD, ms: 7 * DAY }
    assert.equal(paceOf(month, now, 100n * AUD, recent, 110n * AUD).reachesLimitAt, now + 5 * DAY)
    assert.equal(paceOf(month, now, 100n * AUD, recent, 141n * AUD).reachesLimitAt, undefined)
    assert.equal(paceOf(month, now, 100n * AUD, recent, 140n * AUD).reachesLimitAt, month.to, 'with its last hour')
    assert.equal(paceOf(month, now, 100n * AUD, recent, 100n * AUD).reachesLimitAt, undefined, 'it is reached')
    assert.equal(paceOf(month, now, 100n * AUD, { amount: 0n, ms: 7 * DAY }, 110n * AUD).reachesLimitAt, undefined)
  })
})

describe('a pace over few days', () => {
  const over = (ms: number) => paceOf(month, now, 100n * AUD, { amount: 14n * AUD, ms }, 110n * AUD)

  it('counts whole days, and does not exist before the first is over', () => {
    assert.deepEqual(
      [0, 1, DAY - 1, DAY, 2 * DAY - 1, 7 * DAY].map((ms) => over(ms).days),
      [0, 0, 0, 1, 1, 7],
    )
    assert.deepEqual(
      [-1, 0, DAY - 1].map((ms) => over(ms).perDay),
      [undefined, undefined, undefined],
    )
    assert.equal(over(DAY).perDay, 14n * AUD)
  })

  it('gives a forecast, and the day on which a limit is reached, from three days on', () => {
    const early = over(3 * DAY - 1)
    assert.deepEqual([early.forecast, early.reachesLimitAt], [undefined, undefined])
    assert.notEqual(early.perDay, undefined)
    const three = over(3 * DAY)
    assert.ok(three.forecast !== undefined && three.reachesLimitAt !== undefined)
  })
})

describe('the month of a workspace', () => {
  const midnight = month.from + 10 * DAY
  const views = async (firstDay: number, hoursLater: number) => {
    const books = await testBooks(midnight)
    try {
      const workspace = { ...(await books.workspace('acme')), spendLimit: { amount: 50n * AUD, isSoft: false } }
      const days = Array.from({ length: 20 }, (_, back) => back).filter((back) => back <= firstDay)
      await books.settle(
        days.map((back) =>
          sampleRow(`r${back}`, { workspaceId: workspace.id, settledAt: midnight - back * DAY - 1000, amount: AUD }),
        ),
      )
      return (await monthOverview(books.store, workspace, midnight + hoursLater * HOUR)) as Record<string, unknown>
    } finally {
      await books.close()
    }
  }

  it('has a pace over the whole days since the first use, up to seven', async () => {
    for (const [firstDay, hours, days, perDay] of [
      [0, 23, 0, null],
      [1, 0, 1, '1.00'],
      [1, 24, 2, '0.50'],
      [19, 0, 7, '1.00'],
    ] as const) {
      const view = await views(firstDay, hours)
      assert.deepEqual([view['pace_days'], view['per_day']], [days, perDay], `${firstDay} days and ${hours} hours`)
    }
  })

  it('has a forecast from three such days on', async () => {
    assert.equal((await views(2, 23))['forecast'], null)
    assert.equal((await views(3, 0))['forecast'], '24.00')
  })
})

describe('the times of requests', () => {
  it('are percentiles of each hour, with the number that failed', () => {
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
