import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { intentBatches } from '../../src/store/queries/intent-batches.ts'
import { sampleIntent, sampleRow } from '../support/ledger-samples.ts'

describe('a batch of intents', () => {
  it('stays until every one of its requests is settled, and is cleared away once', () => {
    const batches = intentBatches('p')
    const write = (intents: readonly string[], rows: readonly string[]) => {
      const next = batches.next()
      batches.written(next, {
        intents: intents.map((id) => sampleIntent(id)),
        rows: rows.map((id) => sampleRow(id)),
      })
      return next
    }
    const first = write(['a', 'b', 'c'], [])
    assert.deepEqual(write(['d'], ['a']).settled, [])
    assert.deepEqual(write([], ['b', 'd']).settled, [], 'c is still open')
    const { settled } = write([], ['c'])
    assert.deepEqual(settled.length, 1, 'the batch of d')
    assert.notEqual(settled[0], first.name)
    assert.deepEqual(write([], ['c', 'never noted']).settled, [first.name])
    assert.deepEqual(write([], []).settled, [])
  })

  it('is cleared away again if the transaction that should have done it failed', () => {
    const batches = intentBatches('p')
    const noted = batches.next()
    batches.written(noted, { intents: [sampleIntent('a')], rows: [] })
    batches.written(batches.next(), { intents: [], rows: [sampleRow('a')] })
    assert.deepEqual(batches.next().settled, [noted.name])
    assert.deepEqual(batches.next().settled, [noted.name])
  })
})
