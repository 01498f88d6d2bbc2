import assert from 'node:assert/strict'
import { it } from 'node:test'
import { memoryOfLargeBatch } from '../support/large-batch.ts'

const MIB = 2 ** 20

it('a batch of 50,000 lines and 200 MiB takes little more memory than a fifth of it', async (t) => {
  const grown = await memoryOfLargeBatch(t, 50_000, 200 * MIB)
  t.diagnostic(`${(grown / MIB).toFixed(0)} MiB more`)
  assert.ok(grown < 80 * MIB, `${grown} bytes`)
})
