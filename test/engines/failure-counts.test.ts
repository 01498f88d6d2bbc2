import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { failureCounts } from '../../src/engines/failure-counts.ts'

describe('the failed calls of an address', () => {
  it('are counted, with the last reason', () => {
    const counts = failureCounts()
    assert.deepEqual(counts.of('a'), { failures: 0, lastFailure: undefined })
    counts.add('a', 'first')
    counts.add('a', 'second')
    assert.deepEqual(counts.of('a'), { failures: 2, lastFailure: 'second' })
  })

  it('are kept for the 10,000 addresses that failed last', () => {
    const counts = failureCounts()
    for (let index = 0; index < 10_000; index += 1) counts.add(`${index}`, 'x')
    counts.add('0', 'x')
    assert.equal(counts.of('1').failures, 1)
    counts.add('new', 'x')
    assert.deepEqual(
      ['0', '1', '2', 'new'].map((url) => counts.of(url).failures),
      [2, 0, 1, 1],
    )
  })
})
