import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { settledReads } from '../../src/billing/settled-reads.ts'
import type { Store } from '../../src/store/store.ts'
import { turn } from '../support/hand-clock.ts'

/** Everything that reads rows of the ledger, or sums of them. */
const READS = [
  'recentRequests',
  'sampledRequests',
  'usageOverTime',
  'groupsOverTime',
  'largestGroups',
  'usage',
  'usageRow',
  'usageRows',
  'usageSums',
  'usageTotal',
  'pricedSums',
  'wrongSums',
  'reversible',
  'credits',
] as const

describe('reads of settled rows', () => {
  it('wait until the ledger is readable, each of them', async () => {
    const asked: string[] = []
    const store = new Proxy({} as Store, {
      ownKeys: () => [...READS, 'workspaces'],
      getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }),
      get: (_target, name) => async (argument: unknown) => {
        asked.push(String(name))
        return argument
      },
    })
    const ready = Promise.withResolvers<void>()
    const reads = settledReads(store, { readable: () => ready.promise })
    await reads.workspaces()
    assert.deepEqual(asked, ['workspaces'], 'accounts are not in the ledger')
    const answers = READS.map((name) => (reads[name] as (argument: string) => Promise<unknown>)(name))
    await turn()
    assert.deepEqual(asked, ['workspaces'])
    ready.resolve()
    assert.deepEqual(await Promise.all(answers), READS)
    assert.deepEqual(asked.toSorted(), ['workspaces', ...READS].toSorted())
  })
})
