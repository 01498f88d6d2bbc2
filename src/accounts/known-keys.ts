import { ApiError } from '../core/errors.ts'
import { recentValues } from '../core/recent-values.ts'
import type { ApiKey } from '../ports/accounts.ts'
import type { KeyStore } from '../ports/keys.ts'

/**
 * Keys by their hash: those in use are in memory, others are looked up. What nobody has is remembered apart, so that
 * somebody who tries random keys displaces no key that works. At most one lookup is under way at a time, with everything
 * that was asked for meanwhile in the next one, so the number of callers does not reach the database.
 */
export interface KnownKeys {
  /** At once if it is in memory; null if nobody has the key, or not any more. */
  recall(hash: string): KnownKey | null | undefined
  /** Looks it up. */
  find(hash: string): Promise<KnownKey | null>
  /** Takes in what was created and revoked since. */
  takeIn(): Promise<void>
}

export type KnownKey = Pick<ApiKey, 'id' | 'workspaceId' | 'expiresAt'>

/** About 250 bytes each. */
const KNOWN_MAX = 100_000
const UNKNOWN_MAX = 10_000
const LOOKUP_KEYS_MAX = 250
const WAITING_MAX = 10_000
/** With more changes than this at once, everything is forgotten instead. */
const CHANGES_MAX = 1000

interface Lookup {
  readonly found: PromiseWithResolvers<KnownKey | null>
  /** The key has changed since the lookup began. */
  isOutdated: boolean
}

type Keys = Pick<KeyStore, 'keysByHash' | 'lastKeyChange' | 'keyChanges'>

export async function openKnownKeys(store: Keys): Promise<KnownKeys> {
  const known = recentValues<KnownKey>(KNOWN_MAX)
  const unknown = recentValues<true>(UNKNOWN_MAX)
  const lookups = new Map<string, Lookup>()
  /** The hashes of lookups that have not begun. */
  let waiting: string[] = []
  let isReading = false
  let lastChange = await store.lastKeyChange()

  async function readWaiting(): Promise<void> {
    if (isReading) return
    isReading = true
    while (waiting.length > 0) {
      const hashes = waiting.slice(0, LOOKUP_KEYS_MAX)
      waiting = waiting.slice(LOOKUP_KEYS_MAX)
      await read(hashes)
    }
    isReading = false
  }

  async function read(hashes: readonly string[]): Promise<void> {
    for (const hash of hashes) (lookups.get(hash) as Lookup).isOutdated = false
    try {
      const found = new Map((await store.keysByHash(hashes)).map((key) => [key.hash, key]))
      for (const hash of hashes) settle(hash, found.get(hash))
    } catch (cause) {
      const error = new ApiError('service_unavailable', 'API keys cannot be looked up now. Try again.', { cause })
      for (const hash of hashes) take(hash)?.found.reject(error)
    }
  }

  function settle(hash: string, key: ApiKey | undefined): void {
    if (lookups.get(hash)?.isOutdated) return void waiting.push(hash)
    const isValid = key !== undefined && key.revokedAt === null
    if (isValid) known.set(hash, { id: key.id, workspaceId: key.workspaceId, expiresAt: key.expiresAt })
    else unknown.set(hash, true)
    take(hash)?.found.resolve(isValid ? key : null)
  }

  function take(hash: string): Lookup | undefined {
    const lookup = lookups.get(hash)
    lookups.delete(hash)
    return lookup
  }

  function forget(hash: string): void {
    known.delete(hash)
    unknown.delete(hash)
    const lookup = lookups.get(hash)
    if (lookup) lookup.isOutdated = true
  }

  function forgetAll(): void {
    known.clear()
    unknown.clear()
    for (const lookup of lookups.values()) lookup.isOutdated = true
  }

  return {
    recall: (hash) => known.get(hash) ?? (unknown.get(hash) ? null : undefined),
    find(hash) {
      const underWay = lookups.get(hash)
      if (underWay) return underWay.found.promise
      if (lookups.size >= WAITING_MAX) {
        return Promise.reject(new ApiError('service_unavailable', 'Too many API keys are being looked up. Try again.'))
      }
      const lookup: Lookup = { found: Promise.withResolvers(), isOutdated: false }
      lookups.set(hash, lookup)
      waiting.push(hash)
      void readWaiting()
      return lookup.found.promise
    },
    async takeIn() {
      const changes = await store.keyChanges(lastChange, CHANGES_MAX)
      if (changes.length < CHANGES_MAX) {
        for (const { hash } of changes) forget(hash)
        lastChange = Math.max(lastChange, changes.at(-1)?.number ?? 0)
      } else {
        const last = await store.lastKeyChange()
        forgetAll()
        lastChange = Math.max(lastChange, last)
      }
    },
  }
}
