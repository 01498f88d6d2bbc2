import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { manifest } from '../../packages/local-models/manifest/manifest.ts'
import { admissionLimits, engineLimits } from '../../src/local-models/machine-limits.ts'

const small = { cores: 2, memoryBytes: 4e9 }
const large = { cores: 64, memoryBytes: 256e9 }

describe('the limits of a machine', () => {
  it('grow with it, within bounds', () => {
    assert.deepEqual(engineLimits(small), { threads: 2, parallelRequests: 4, memoryBudgetBytes: 2e9 })
    assert.deepEqual(engineLimits(large), { threads: 16, parallelRequests: 8, memoryBudgetBytes: 128e9 })
  })

  it('admit every request that fits a model, on any machine', () => {
    for (const model of manifest) {
      for (const machine of [small, large]) {
        const limits = admissionLimits(model, machine)
        assert.ok(limits.token_budget >= model.catalog.context_length, model.catalog.id)
        assert.ok(limits.max_concurrent_requests >= 1 && limits.max_wait_ms <= 240_000)
      }
    }
  })
})
