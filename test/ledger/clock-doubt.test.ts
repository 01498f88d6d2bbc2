import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { clockDoubt } from '../../src/ledger/clock-doubt.ts'

const LAST = Date.parse('2026-03-01T00:00:00Z')
const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

describe('a warning about the clock', () => {
  it('is not given without rows, or from a minute before to 60 days after the last row', () => {
    assert.equal(clockDoubt(0, undefined), undefined)
    for (const now of [LAST - MINUTE_MS, LAST, LAST + 60 * DAY_MS]) assert.equal(clockDoubt(now, LAST), undefined)
  })

  it('reports that the clock is behind, or that the last row is old', () => {
    assert.match(clockDoubt(LAST - MINUTE_MS - 1, LAST) ?? '', /behind .* 2026-03-01T00:00:00\.000Z/)
    assert.match(clockDoubt(LAST + 60 * DAY_MS + 1, LAST) ?? '', /more than 60 days old \(2026-03-01T00:00:00\.000Z/)
  })
})
