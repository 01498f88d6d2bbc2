import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { CacheUseEntry } from '../../src/engines/cache-use.ts'
import { mergedCacheUse } from '../../src/engines/merged-cache-use.ts'

function entry(changes: Partial<CacheUseEntry>): CacheUseEntry {
  return {
    workspaceId: 'ws',
    keyId: 'key',
    model: 'meta/x',
    requests: 2,
    inputTokens: 100,
    cachedInputTokens: 40,
    misses: { first_use: 1, prefix_changed: 2, evicted: 3, moved: 4 },
    latestChange: undefined,
    ...changes,
  }
}

it('adds up what several workers served of one key and model, with the latest change of a prompt', () => {
  const early = { message: 1, afterCharacter: 10, at: 1000 }
  const late = { message: 0, afterCharacter: 20, at: 2000 }
  const merged = mergedCacheUse([
    entry({ latestChange: early }),
    entry({ model: 'meta/y' }),
    entry({ requests: 5, inputTokens: 10, cachedInputTokens: 1, latestChange: late }),
    entry({ keyId: 'another' }),
    entry({}),
  ])
  assert.deepEqual(merged, [
    entry({
      requests: 9,
      inputTokens: 210,
      cachedInputTokens: 81,
      misses: { first_use: 3, prefix_changed: 6, evicted: 9, moved: 12 },
      latestChange: late,
    }),
    entry({ model: 'meta/y' }),
    entry({ keyId: 'another' }),
  ])
})
