import type { MissCause, PrefixChange } from './prefix/miss-cause.ts'

/** How much of the input was cached since the start, by key and model, and why not more. */
export interface CacheUse {
  /** undefined: those of all workspaces. */
  entries(workspaceId: string | undefined): readonly CacheUseEntry[]
}

export interface CacheUseEntry {
  readonly workspaceId: string
  readonly keyId: string
  readonly model: string
  readonly requests: number
  readonly inputTokens: number
  readonly cachedInputTokens: number
  /** Requests that were mostly not cached, by the likely cause. */
  readonly misses: Readonly<Record<MissCause, number>>
  /** `at`: Unix ms. */
  readonly latestChange: (PrefixChange & { readonly at: number }) | undefined
}
