import type { Intent, LedgerRow } from '../core/money/ledger.ts'

/** The ledger as a request sees it. */
export interface Ledger {
  /** Resolves when the intent is recorded. Rejects when it cannot be; then nothing may be sent to an engine. */
  note(intent: Intent): Promise<void>
  /**
   * Resolves when the row is durable: in the ledger, or set aside if the store refuses it for good. A rejection only
   * means that the caller should stop waiting: the ledger keeps trying, with `late` instead of the row if it is given.
   */
  settle(row: LedgerRow, late?: LedgerRow): Promise<void>
  /** Resolves when readers of the store see every row that was durable when this was called. */
  readable(): Promise<void>
  status(): { readonly healthy: boolean; readonly waiting: number; readonly lagMs: number }
  /** Resolves when nothing is waiting to become durable. */
  flush(): Promise<void>
}

/** What is written to the store in one transaction. */
export interface LedgerBatch {
  readonly intents: readonly Intent[]
  readonly rows: readonly LedgerRow[]
}

/**
 * The ledger as it is stored. A store is opened for an owner, who is the same after a restart: intents belong to
 * their owner, in batches whose names no two processes can both choose.
 *
 * Writing rows locks the end of the ledger and the sums (`usage_sums`), so writers add their rows one batch after the
 * other. Noting intents locks nothing.
 */
export interface LedgerStore {
  /**
   * Adds rows, once for each request id: a row that is there already stays as it is, so a batch of unknown fate can
   * be written again. A row whose month has been invoiced is billed at the beginning of the next month. Rejects with a
   * `RefusedWrite` when something in the batch is refused for good; then none of it is written.
   */
  writeLedger(batch: LedgerBatch): Promise<void>
  /** Keeps a refused row outside the ledger, so in no sum and no invoice. Its request is no longer open. */
  setAside(row: LedgerRow, reason: string, at: number): Promise<void>
  /** The rows that are set aside, the oldest first. */
  refusedRows(limit: number): Promise<readonly RefusedRow[]>
  /** Moves rows that were set aside into the ledger. Rejects like `writeLedger`. */
  addRefused(rows: readonly LedgerRow[]): Promise<void>
  /**
   * Settles what an earlier process of this owner left open, at nothing, and returns how many requests that were.
   * Leaves the intents of other owners alone. Nobody else may use the same owner at the time. Sets aside a row that is
   * refused.
   */
  recoverIntents(now: number): Promise<number>
  /** The time of the row that was written last; undefined when there is none. */
  lastSettledAt(): Promise<number | undefined>
}

/** A row that the store refuses for good. */
export interface RefusedRow {
  readonly requestId: string
  readonly workspaceId: string
  readonly reason: string
  readonly refusedAt: number
  /** undefined if the row cannot even be read. */
  readonly row: LedgerRow | undefined
}
