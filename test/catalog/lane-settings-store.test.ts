import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import type { OperatorLimits } from '../../src/catalog/lane-settings-store.ts'
import { openStoreHere } from '../../src/store/open.ts'

it('limits of lanes and drained addresses are kept: the last of each, until they are cleared, also by the next process', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'weir-lanes-'))
  t.after(() => rmSync(dataDir, { recursive: true, force: true }))
  let store = await openStoreHere({ dataDir, exclusive: false })
  const limits = { tokenBudget: 1, maxConcurrentRequests: 2, maxQueueDepth: 3, maxWaitMs: 4 }
  const limitsInFile = { ...limits, batch: { maxShare: 0.5 } }
  const first: OperatorLimits = { lane: 'a', limits: { ...limits, maxRequestsPerWorkspace: 5 }, limitsInFile }
  const other: OperatorLimits = { lane: 'b', limits: { ...limits, maxRequestsPerWorkspace: undefined }, limitsInFile }
  const changed: OperatorLimits = {
    lane: 'a',
    limits: {
      tokenBudget: 10,
      maxConcurrentRequests: 20,
      maxQueueDepth: 30,
      maxWaitMs: 40,
      maxRequestsPerWorkspace: undefined,
    },
    limitsInFile: limits,
  }
  for (const set of [first, other]) await store.setLaneLimits(set)
  for (const url of ['http://one', 'http://two', 'http://two']) await store.setDrained(url, true)
  const drained = ['http://one', 'http://two']
  assert.deepEqual(await store.laneSettings(), { limits: [first, other], drained })
  await store.setLaneLimits(changed)
  await store.setDrained('http://one', false)
  await store.close()
  store = await openStoreHere({ dataDir, exclusive: false })
  assert.deepEqual(await store.laneSettings(), { limits: [changed, other], drained: ['http://two'] })
  await store.clearLaneLimits('b')
  assert.deepEqual((await store.laneSettings()).limits, [changed])
  await store.close()
})
