import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { healthLog } from '../../src/engines/health-log.ts'

describe('the health of an address that several models share', () => {
  it('is logged once when it goes down, and once when it is back', () => {
    const lines: string[] = []
    const changed = healthLog((url, isUp) => lines.push(`${url} ${isUp ? 'up' : 'down'}`))
    changed('one', false)
    changed('one', false)
    changed('other', false)
    changed('one', true)
    changed('one', true)
    changed('one', false)
    assert.deepEqual(lines, ['one down', 'other down', 'one up', 'one down'])
  })
})
