import type { ApiKey, KeyRules } from '../workspace.ts'
import type { KeyStore } from './key-store.ts'
import { rulesOf } from './key-limits.ts'
import { knownByHash, type KnownByHash } from './known-by-hash.ts'

/** Keys by their hash: those in use are in memory, others are looked up. */
export interface KnownKeys extends Pick<KnownByHash<KnownKey>, 'find'> {
  /** Applies the creations, changes and revocations since the last call. */
  refresh(): Promise<void>
}

export interface KnownKey extends Pick<ApiKey, 'id' | 'workspaceId' | 'expiresAt'> {
  readonly rules: KeyRules | undefined
}

/** About 250 bytes each, and its limits. */
const KNOWN_MAX = 100_000
/** With more changes than this at once, everything is forgotten instead. */
const CHANGES_MAX = 1000

type Keys = Pick<KeyStore, 'keysByHash' | 'lastKeyChange' | 'keyChanges'>

export async function openKnownKeys(store: Keys): Promise<KnownKeys> {
  const { find, forget, forgetAll } = knownByHash<KnownKey>({
    what: 'API keys',
    knownMax: KNOWN_MAX,
    async read(hashes) {
      const valid = (await store.keysByHash(hashes)).filter(({ revokedAt }) => revokedAt === null)
      return new Map(
        valid.map((key) => [
          key.hash,
          { id: key.id, workspaceId: key.workspaceId, expiresAt: key.expiresAt, rules: rulesOf(key) },
        ]),
      )
    },
  })
  let lastChange = await store.lastKeyChange()

  return {
    find,
    async refresh() {
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
