import type { LedgerRow } from '../../ledger/rows.ts'
import { missOf, type MissCause, type PrefixChange } from '../../engines/prefix/miss-cause.ts'
import type { PromptBlocks } from '../../engines/prefix/prompt-blocks.ts'
import type { CacheUse } from '../../engines/cache-use.ts'
import type { Placement } from '../../engines/engine.ts'

/** Each entry is a key with a model. Above this, the least recently used is dropped. */
const MAX_ENTRIES = 2000
/** Blocks kept of the latest prompt of each: enough to find where the next one differs. */
const MAX_HASHES = 256

interface Entry {
  readonly workspaceId: string
  readonly keyId: string
  readonly model: string
  requests: number
  inputTokens: number
  cachedInputTokens: number
  readonly misses: Record<MissCause, number>
  latestChange: (PrefixChange & { readonly at: number }) | undefined
  /** The own hashes of the blocks of the latest prompt. */
  latest: readonly number[] | undefined
}

interface CacheUseRecord extends CacheUse {
  add(row: LedgerRow, prompt: PromptBlocks | undefined, placement: Placement | undefined): MissCause | undefined
}

/** How much of their input was cached since the start, by key and model, and why not more. It has no text of any prompt. */
export function cacheUseRecord(): CacheUseRecord {
  const entries = new Map<string, Entry>()

  function entryOf({ workspaceId, keyId, model }: LedgerRow): Entry {
    const name = JSON.stringify([workspaceId, keyId, model])
    const entry = entries.get(name) ?? {
      workspaceId,
      keyId,
      model,
      requests: 0,
      inputTokens: 0,
      cachedInputTokens: 0,
      misses: { first_use: 0, prefix_changed: 0, evicted: 0, moved: 0 },
      latestChange: undefined,
      latest: undefined,
    }
    entries.delete(name)
    entries.set(name, entry)
    for (const oldest of entries.keys()) {
      if (entries.size <= MAX_ENTRIES) break
      entries.delete(oldest)
    }
    return entry
  }

  return {
    add(row, prompt, placement) {
      // Estimates do not include cached tokens.
      if (row.inputTokens === 0 || row.estimated) return undefined
      const entry = entryOf(row)
      entry.requests++
      entry.inputTokens += row.inputTokens
      entry.cachedInputTokens += row.cachedInputTokens
      if (!prompt || !placement) return undefined
      const miss = missOf(prompt, entry.latest, row.cachedInputTokens / row.inputTokens, placement)
      entry.latest = prompt.blocks.slice(0, MAX_HASHES).map(({ own }) => own)
      if (!miss) return undefined
      entry.misses[miss.cause]++
      if (miss.cause === 'prefix_changed') entry.latestChange = { ...miss.change, at: row.settledAt }
      return miss.cause
    },
    entries: (workspaceId) =>
      [...entries.values()].filter((it) => workspaceId === undefined || it.workspaceId === workspaceId),
  }
}
