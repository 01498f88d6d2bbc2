import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseMonth } from '../../src/shared/money/sydney-time.ts'
import type { UsageStore } from '../../src/billing/usage/usage-store.ts'
import {
  limitExceeded,
  limitHeaders,
  limitUnknown,
  monthSum,
  monthSums,
} from '../../src/workspaces/spend-limits/limit.ts'

const AUD = 1_000_000_000_000n
const month = parseMonth('2026-11') ?? assert.fail()

describe('what is spent in a month', () => {
  it('is what was used: neither adjustment notes nor credits make room', async () => {
    const asked: object[] = []
    const store = {
      async usageSums(query: object) {
        asked.push(query)
        return [
          { group: 'one', amount: 1n },
          { group: 'two', amount: 2n },
        ]
      },
      async usageTotal(query: object) {
        asked.push(query)
        return { amount: 3n }
      },
    } as unknown as UsageStore
    assert.deepEqual(
      [...(await monthSums(store, month))],
      [
        ['one', 1n],
        ['two', 2n],
      ],
    )
    assert.equal(await monthSum(store, 'ws', month), 3n)
    const query = { from: month.from, to: month.to, groupBy: 'workspace', creditNote: '', withoutCredits: true }
    assert.deepEqual(asked, [
      { ...query, limit: Number.MAX_SAFE_INTEGER },
      { ...query, workspaceId: 'ws' },
    ])
  })
})

describe('what a caller sees of a spend limit', () => {
  it('is the limit and the amount spent, in cents, and that it is reached when the last unit is spent', () => {
    const limit = { amount: 5n * AUD, isSoft: false }
    assert.deepEqual(limitHeaders(null, 5n), {})
    assert.deepEqual(limitHeaders(limit, 5n * AUD - 1n), { 'X-Spend-Limit': '5.00', 'X-Spend-Used': '5.00' })
    assert.equal(limitHeaders(limit, 5n * AUD)['X-Spend-Alert'], 'limit reached')
    assert.equal(limitHeaders({ ...limit, isSoft: true }, 5n * AUD)['X-Spend-Alert'], 'soft limit reached')
  })

  it('is exact in a refusal, including what running requests may cost', () => {
    const now = Date.UTC(2026, 10, 15)
    const alone = limitExceeded('workspace month', 5n * AUD, { spent: 4n * AUD, held: 0n }, 1_500_000n, now)
    assert.equal(alone.code, 'spend_limit_exceeded')
    assert.match(alone.message, /is A\$5\.00 \(excluding GST\): A\$4\.00 is spent, and this .* up to A\$0\.0000015\./)
    const beside = limitExceeded('workspace month', 5n * AUD, { spent: 4n * AUD, held: 1n }, 1n, now)
    assert.match(
      beside.message,
      /^The workspace's spend limit for this month is .* resets on 1 December 2026 at midnight/,
    )
    const ofKey = (kind: 'key day' | 'key month') => limitExceeded(kind, AUD, { spent: 0n, held: 0n }, 1n, now).message
    assert.match(
      ofKey('key day'),
      /^This API key's spend limit for this day is .* resets on 16 November 2026 at midnight/,
    )
    assert.match(ofKey('key month'), /^This API key's spend limit for this month is .* on 1 December 2026 at midnight/)
    assert.match(beside.message, /is spent, running requests may cost up to A\$0\.000000000001, and/)
    const cause = new Error('away')
    assert.deepEqual([limitUnknown(cause).code, limitUnknown(cause).cause], ['service_unavailable', cause])
  })
})
