import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { aud, brief, count, exactAud, picoAud } from '../../console/shared/format.ts'

describe('amounts in the consoles', () => {
  it('have every digit of the ledger, groups of thousands, and the sign in front', () => {
    assert.equal(exactAud('1234567.5'), 'A$1,234,567.5')
    assert.equal(exactAud('0.000009'), 'A$0.000009')
    assert.equal(exactAud('-1234.00'), '−A$1,234.00')
    assert.equal(exactAud('7'), 'A$7.00')
  })

  it('have as many digits as small ones need if they are only compared', () => {
    assert.deepEqual(
      [aud('0'), aud('1234.5'), aud('0.0113'), aud(-0.5)],
      ['A$0.00', 'A$1,234.50', 'A$0.0113', '−A$0.50'],
    )
    assert.deepEqual([picoAud('3800000'), picoAud('-1500000000000')], ['A$0.0000038', '−A$1.50'])
  })

  it('count whole things', () => {
    assert.deepEqual([count(1234), brief(0.25), brief(128_000)], ['1,234', '0', '128K'])
  })
})
