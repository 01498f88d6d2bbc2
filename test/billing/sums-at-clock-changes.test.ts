import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sydneyMidnight } from '../../src/shared/money/sydney-time.ts'
import { testBooks } from '../support/books.ts'

const HOUR_MS = 3_600_000

describe('sums over a period', () => {
  for (const [what, day] of [
    ['begins', sydneyMidnight(2026, 10, 4)],
    ['ends', sydneyMidnight(2026, 4, 5)],
  ] as const) {
    it(`are those of its rows, from any hour, around the day on which daylight saving ${what}`, async (t) => {
      const books = await testBooks(day + 100 * HOUR_MS)
      t.after(() => books.close())
      const workspace = await books.workspace('w')
      const version = await books.price('m', { input_per_million: '1' }, 0)
      const start = day - 26 * HOUR_MS
      const times = Array.from({ length: 78 }, (_, hour) => start + hour * HOUR_MS)
      await books.settle(
        await Promise.all(times.map((at) => books.row(workspace, 'm', version, at, { inputTokens: 1 }))),
      )
      for (const from of times) {
        for (const to of [day + 12 * HOUR_MS, day + 26 * HOUR_MS, day + 60 * HOUR_MS]) {
          const { requests } = await books.store.usageTotal({ workspaceId: workspace.id, from, to, groupBy: 'model' })
          const expected = times.filter((at) => at >= from && at < to).length
          assert.equal(requests, expected, `${new Date(from).toISOString()} to ${new Date(to).toISOString()}`)
        }
      }
    })
  }
})
