import assert from 'node:assert/strict'
import { it } from 'node:test'
import { untilGone } from '../../../src/engines/on-demand/engine-process.ts'

it('an engine that does not end after it was killed is reported once, and counts as there until it is gone', async () => {
  for (const [looks, expected] of [
    [0, 0],
    [49, 0],
    [50, 1],
    [1000, 1],
  ] as const) {
    let looked = 0
    let pauses = 0
    let reports = 0
    await untilGone(
      async () => looked++ < looks,
      () => reports++,
      async () => void pauses++,
    )
    assert.deepEqual([looked, pauses, reports], [looks + 1, looks, expected])
  }
})
