import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ownCounts } from '../../src/workspaces/spend-limits/redis/own-counts.ts'

const [OCTOBER, NOVEMBER, DECEMBER] = [1, 2, 3]

describe('what a replica reports of the months it has settled requests in', () => {
  const stage = () => {
    const counts = ownCounts()
    for (const month of [OCTOBER, NOVEMBER, DECEMBER]) counts.settle(month, 10n)
    return counts
  }
  const monthsOf = (counts: ReturnType<typeof ownCounts>): Set<number> => new Set(counts.toReport(NOVEMBER).keys())

  it('has every month that is not completely in the database', () => {
    assert.deepEqual(monthsOf(stage()), new Set([OCTOBER, NOVEMBER, DECEMBER]))
  })

  it('leaves out a past month that is', () => {
    const counts = stage()
    counts.deliver()?.()
    counts.settle(NOVEMBER, 1n)
    assert.ok(!monthsOf(counts).has(OCTOBER))
    assert.deepEqual(counts.toReport(NOVEMBER).get(NOVEMBER), { settled: 11n, delivered: 10n })
  })

  it('[S1] has a later month after the clock was set back, so that its rows are not counted twice when it begins again', () => {
    const counts = stage()
    counts.deliver()?.()
    assert.deepEqual(counts.toReport(NOVEMBER).get(DECEMBER), { settled: 10n, delivered: 10n })
  })
})
