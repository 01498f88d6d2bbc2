import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { statementCache } from '../../src/store/sqlite/statement-cache.ts'

describe('the cache of prepared statements', () => {
  it('stays bounded however many shapes of statements callers cause, and keeps the one that is always in use', () => {
    let prepared = 0
    const cache = statementCache(10, (sql) => ({ sql, turn: ++prepared }))
    const ledger = cache.get('INSERT INTO ledger')
    for (let length = 1; length <= 5000; length++) {
      assert.equal(cache.get(`IN (${'?,'.repeat(length)}?)`).turn, length + 1)
      assert.equal(cache.get('INSERT INTO ledger'), ledger)
      assert.ok(cache.size() <= 10)
    }
    assert.equal(prepared, 5001)
  })

  it('drops the statement that was used least recently', () => {
    const made: string[] = []
    const cache = statementCache(2, (sql) => made.push(sql))
    for (const sql of ['a', 'b', 'a', 'c', 'a', 'b']) cache.get(sql)
    assert.deepEqual(made, ['a', 'b', 'c', 'b'])
  })
})
