import type { PendingSetting } from '../core/settings.ts'

/** What may change while the service runs: through its API, by a command beside it, or at another replica. */
export type Change = 'accounts' | 'keys' | 'prices' | 'catalog' | 'lanes' | 'sessions'

/** One way for every change to reach every replica. It carries no data: whoever hears of a change reads it again. */
export interface ChangeFeed {
  /**
   * Tells every replica. Rejects if this one could not take the change in. Resolves when all others have too, or after a
   * second with the names of those that did not answer: they follow as soon as they can.
   */
  announce(change: Change): Promise<readonly string[]>
  /** `takeIn` reads again what has changed. Returns a function that ends the subscription. */
  subscribe(change: Change, takeIn: () => Promise<void>): () => void
}

/** Takes in what was changed outside of the service: by a command, or in a file. */
export interface Reloads {
  /** Workspaces, keys and prices. Returns the replicas that did not answer. */
  accounts(): Promise<readonly string[]>
  /**
   * Returns the number of models, the replicas that did not answer, and what the file says and only a restart takes.
   * Rejects when the file has a mistake, or would lose something and is not forced.
   */
  catalog(options: { readonly force: boolean }): Promise<{
    readonly models: number
    readonly unreached: readonly string[]
    readonly needsRestart: readonly PendingSetting[]
  }>
}
