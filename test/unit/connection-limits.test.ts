import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { limitsOf } from '../../src/http/connection-limits.ts'
import { KEEP_ALIVE_MS } from '../../src/http/wire/outgoing-response.ts'

describe('the limits of a connection', () => {
  it('are whole looks, and one more, because it may have begun just before a look', () => {
    assert.equal(KEEP_ALIVE_MS % 5000, 0)
    assert.deepEqual(limitsOf(300_000, 5000), { head: 5, request: 61, idle: KEEP_ALIVE_MS / 5000 + 1 })
    assert.deepEqual(limitsOf(300_001, 5000).request, 62)
  })

  it('give a head 20 s, or less where a whole request has less', () => {
    assert.equal(limitsOf(300_000, 1000).head, 21)
    assert.equal(limitsOf(20_000, 1000).head, 21)
    assert.equal(limitsOf(19_000, 1000).head, 20)
  })
})
