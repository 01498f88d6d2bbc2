import type { CacheUseEntry } from './cache-use.ts'

/** The entries of several workers, with one for each key and model. */
export function mergedCacheUse(entries: readonly CacheUseEntry[]): readonly CacheUseEntry[] {
  const merged = new Map<string, CacheUseEntry>()
  for (const entry of entries) {
    const name = JSON.stringify([entry.workspaceId, entry.keyId, entry.model])
    const known = merged.get(name)
    merged.set(name, known ? sumOf(known, entry) : entry)
  }
  return [...merged.values()]
}

function sumOf(one: CacheUseEntry, other: CacheUseEntry): CacheUseEntry {
  return {
    ...one,
    requests: one.requests + other.requests,
    inputTokens: one.inputTokens + other.inputTokens,
    cachedInputTokens: one.cachedInputTokens + other.cachedInputTokens,
    misses: {
      first_use: one.misses.first_use + other.misses.first_use,
      prefix_changed: one.misses.prefix_changed + other.misses.prefix_changed,
      evicted: one.misses.evicted + other.misses.evicted,
      moved: one.misses.moved + other.misses.moved,
    },
    latestChange: (one.latestChange?.at ?? 0) >= (other.latestChange?.at ?? 0) ? one.latestChange : other.latestChange,
  }
}
