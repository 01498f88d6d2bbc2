import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { recentValues } from '../../src/workspaces/keys/known-by-hash.ts'

describe('recent values', () => {
  it('keep what is used, whatever else is added, and forget the rest', () => {
    const values = recentValues<number>(100)
    values.set('in use', 1)
    values.set('not in use', 2)
    for (let index = 0; index < 1000; index++) {
      values.set(`passing ${index}`, index)
      if (index % 40 === 0) assert.equal(values.get('in use'), 1)
    }
    assert.equal(values.get('in use'), 1)
    assert.equal(values.get('not in use'), undefined)
    for (let index = 951; index < 1000; index++) assert.equal(values.get(`passing ${index}`), index, 'half is certain')
    const kept = Array.from({ length: 1000 }, (_, index) => values.get(`passing ${index}`) !== undefined)
    assert.ok(kept.filter(Boolean).length <= 100)
  })

  it('forget what is deleted, in whichever generation it is', () => {
    const values = recentValues<number>(4)
    for (const name of ['a', 'b', 'c']) values.set(name, 1)
    values.set('a', 2)
    for (const name of ['a', 'b', 'c']) values.delete(name)
    assert.deepEqual(['a', 'b', 'c'].map(values.get), [undefined, undefined, undefined])
    values.set('d', 1)
    values.clear()
    assert.equal(values.get('d'), undefined)
  })
})
