import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { admissionLimits, engineLimits } from '../../src/embedded/service/machine-limits.ts'
import { findModel, firstStartModels, manifest, modelBytes } from '../../src/embedded/manifest/manifest.ts'

const small = { cores: 2, memoryBytes: 4e9 }
const large = { cores: 64, memoryBytes: 256e9 }

describe('limits of a machine', () => {
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

describe('the manifest', () => {
  it('names each model once, and the smallest defaults first', () => {
    const names = manifest.flatMap(({ catalog }) => [catalog.id, ...catalog.aliases])
    assert.equal(new Set(names).size, names.length)
    const sizes = firstStartModels().map(modelBytes)
    assert.deepEqual(
      sizes,
      [...sizes].sort((a, b) => a - b),
    )
    assert.equal(findModel('minilm')?.catalog.id, 'sentence-transformers/all-minilm-l6-v2')
  })

  it('pins every file that does not come from a hub alone', () => {
    for (const { files, catalog } of manifest) {
      for (const { sources, sha256, path } of files) {
        const hubOnly = sources.length > 0 && sources.every(({ kind }) => kind === 'hf')
        assert.ok(hubOnly || /^[0-9a-f]{64}$/.test(sha256 ?? ''), `${catalog.id}: ${path}`)
      }
    }
  })

  it('gives each reranker one schema, each model a price marked as an example', () => {
    for (const { catalog } of manifest) {
      assert.equal(catalog.categories.includes('reranker'), catalog.rerank_schema !== undefined)
      assert.equal(catalog.pricing_is_example, true)
      assert.ok(Object.keys(catalog.pricing).length > 0)
    }
  })
})
