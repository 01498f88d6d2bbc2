import type { Intent, LedgerRow } from '../core/money/ledger.ts'

export interface LedgerBatch {
  readonly intents: readonly Intent[]
  readonly rows: readonly LedgerRow[]
}

/** The ledger as a request sees it. */
export interface Ledger {
  /** Resolves when the intent is durable; rejects when it cannot be recorded now. */
  note(intent: Intent): Promise<void>
  /**
   * Resolves when the row is durable. A rejection means only that the caller should wait no longer; what is
   * written then is `late`, where it is given.
   */
  settle(row: LedgerRow, late?: LedgerRow): Promise<void>
  status(): { readonly healthy: boolean; readonly waiting: number; readonly lagMs: number }
  /** Resolves when nothing is waiting to be written. */
  flush(): Promise<void>
}
