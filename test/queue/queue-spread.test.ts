import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { simulateQueue } from '../../src/queue/queue-simulation.ts'

describe('the waits of a simulated queue', () => {
  it('are reported with their mean, median, high percentiles and maximum', () => {
    const count = 201
    const report = simulateQueue({
      limits: { tokenBudget: 1000, maxConcurrentRequests: 1, maxQueueDepth: 1000, maxWaitMs: 1_000_000 },
      engine: { tokensPerSecond: 1, prefillTokensPerSecond: 1_000_000, slowdown: 0 },
      // All at once, one second each: they wait for 0, 1, 2 … 200 seconds.
      arrivals: Array.from({ length: count }, () => ({ atMs: 0, inputTokens: 0, maxTokens: 1, outputTokens: 1 })),
      durationMs: count * 1000,
    })
    assert.deepEqual(report.waitMs, {
      mean: 100_000,
      p50: 100_000,
      p90: 180_000,
      p95: 190_000,
      p99: 198_000,
      max: 200_000,
    })
  })
})
