import type { PendingSetting } from '../../shared/settings.ts'

/** What may change while the service runs: through its API, by a command, or at another replica. */
export type Change = 'accounts' | 'keys' | 'prices' | 'catalog' | 'lanes' | 'sessions' | 'batches'

/** What commands change in the database. */
export const commandChanges: readonly Change[] = ['accounts', 'keys', 'prices', 'sessions']

/** Notifies every replica of changes. It carries no data: a replica that is notified reads the data again. */
export interface ChangeFeed {
  /**
   * Notifies every replica. Rejects if this replica could not apply the change. Resolves when all others have applied it, or
   * after a second with the names of those that did not answer; they catch up as soon as they can.
   */
  announce(change: Change): Promise<readonly string[]>
  /** `reload` reads the changed data again. Returns a function that ends the subscription. */
  subscribe(change: Change, reload: () => Promise<void>): () => void
}

/** Applies changes made outside the service: by a command, or in a file. */
export interface Reloads {
  /** Workspaces, keys, prices and sessions. Returns the replicas that did not answer. */
  accounts(): Promise<readonly string[]>
  /**
   * Returns the number of models, the replicas that did not answer, and the changed settings that need a restart.
   * Rejects when the file has a mistake, or would remove something and `force` is false.
   */
  catalog(options: { readonly force: boolean }): Promise<{
    readonly models: number
    readonly unreached: readonly string[]
    readonly needsRestart: readonly PendingSetting[]
  }>
}
