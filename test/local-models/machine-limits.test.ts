import assert from 'node:assert/strict'
import { availableParallelism, totalmem } from 'node:os'
import { describe, it } from 'node:test'
import { manifest } from '../../packages/local-models/manifest/manifest.ts'
import type { ManifestModel } from '../../packages/local-models/contract.ts'
import { admissionLimits, engineLimits, thisMachine } from '../../src/local-models/machine-limits.ts'

const small = { cores: 2, memoryBytes: 4e9 }
const large = { cores: 64, memoryBytes: 256e9 }

describe('the limits of a machine', () => {
  it('come from its cores, and from its memory or that of its container if that has less', (t) => {
    const { mock } = t.mock.method(process, 'constrainedMemory')
    for (const [container, memoryBytes] of [
      [0, totalmem()],
      [1, 1],
      [totalmem() + 1, totalmem()],
    ] as const) {
      mock.mockImplementation(() => container)
      assert.deepEqual(thisMachine(), { cores: availableParallelism(), memoryBytes })
    }
  })

  it('grow with it, within bounds', () => {
    assert.deepEqual(engineLimits(small), { threads: 2, parallelRequests: 4, memoryBudgetBytes: 2e9 })
    assert.deepEqual(engineLimits(large), { threads: 16, parallelRequests: 8, memoryBudgetBytes: 128e9 })
  })

  it('are at least one thread and two requests', () => {
    const tiny = { cores: 0, memoryBytes: 3 }
    assert.deepEqual(engineLimits(tiny), { threads: 1, parallelRequests: 2, memoryBudgetBytes: 1 })
    assert.deepEqual(engineLimits({ cores: 4, memoryBytes: 2 }), {
      threads: 4,
      parallelRequests: 8,
      memoryBudgetBytes: 1,
    })
  })

  it('count the largest request of each kind of model', () => {
    const limitsOf = (loader: string, categories: readonly string[]): unknown =>
      Object.values(
        admissionLimits({ loader, catalog: { context_length: 100, categories } } as unknown as ManifestModel, small),
      )
    assert.deepEqual(
      {
        chat: limitsOf('gguf-chat', ['llm']),
        speech: limitsOf('whisper', ['audio']),
        embedding: limitsOf('sentence-encoder', ['embedding']),
        reranker: limitsOf('cross-encoder', ['llm', 'reranker']),
        image: limitsOf('image', ['image']),
      },
      {
        chat: [400, 4, 64, 120_000],
        speech: [200, 2, 32, 120_000],
        embedding: [2 * 2048 * 100, 2, 32, 120_000],
        reranker: [2 * 1000 * 100, 2, 32, 120_000],
        image: [2 * (100 + 10_000), 2, 32, 120_000],
      },
    )
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
