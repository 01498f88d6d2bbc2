import assert from 'node:assert/strict'
import { it } from 'node:test'
import { memoryOfLargeBatch } from '../support/large-batch.ts'

const MIB = 2 ** 20

it('a batch of 50 MiB takes little more memory than one of 10 MiB, from its upload to its results', async (t) => {
  const grown = await memoryOfLargeBatch(t, 800, 50 * MIB)
  t.diagnostic(`${(grown / MIB).toFixed(0)} MiB more`)
  assert.ok(grown < 40 * MIB, `${grown} bytes`)
})
