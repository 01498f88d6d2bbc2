import type { JournalPosition } from './journal/positions.ts'
import type { Intent, LedgerRow, RequestRow } from './rows.ts'

/** The ledger as a request sees it. */
export interface Ledger {
  /** Records the intent. Throws if it cannot; then nothing may be sent to an engine. */
  note(intent: Intent): void
  /**
   * Resolves when the row is durable. A rejection only means that the caller should stop waiting: the ledger keeps
   * trying, with `late` instead of the row if it is given.
   */
  settle(row: RequestRow, late?: () => RequestRow): Promise<void>
  /** Resolves when readers of the store see every row that was durable when this was called. */
  readable(): Promise<void>
  status(): LedgerStatus
  /** Resolves when everything is durable and in the store. */
  flush(): Promise<void>
}

export interface LedgerStatus {
  /** False while nothing can be recorded. */
  readonly healthy: boolean
  /** Rows that are not durable yet, and how long the oldest has waited. */
  readonly waiting: number
  readonly lagMs: number
  /** Bytes of the journal that are not in the store yet, and how long the oldest of them have waited. */
  readonly journalBytes: number
  readonly journalLagMs: number
  /** The store did not accept the last rows that it was given. */
  readonly isStoreFailing: boolean
}

/**
 * The ledger in its store. A store is opened for an owner, which is the same after a restart and has a journal of its
 * own.
 *
 * Adding rows locks the end of the ledger and the sums (`usage_sums`), so writers add their rows one batch after the
 * other.
 */
export interface LedgerStore {
  /**
   * Adds rows, once for each request id: an existing row stays as it is, so rows whose fate is unknown can be added
   * again. A row whose month has been invoiced is billed at the beginning of the next month. Rejects with a
   * `RefusedWrite` if one of them is permanently refused; then none is added. `through` is the position in the owner's
   * journal that the ledger has reached then.
   */
  addRows(rows: readonly LedgerRow[], through?: JournalPosition): Promise<void>
  /** The position in the owner's journal that the ledger has reached; undefined if none of it has been applied. */
  journalPosition(): Promise<JournalPosition | undefined>
  /** Removes that position. Call when the owner's journal is finished. */
  forgetJournal(): Promise<void>
  /** Keeps a refused row outside the ledger, so it is in no sum and no invoice. */
  setAside(row: LedgerRow, reason: string, at: number): Promise<void>
  /** The rows that are set aside, the oldest first. */
  refusedRows(limit: number): Promise<readonly RefusedRow[]>
  /** Moves rows that were set aside into the ledger. Rejects like `addRows`. */
  addRefused(rows: readonly LedgerRow[]): Promise<void>
  /** Requests that a version without a journal left open under this owner. */
  earlierIntents(): Promise<readonly Intent[]>
  /** Call when those are settled. */
  forgetEarlierIntents(): Promise<void>
  /** The time of the latest row; undefined if there is none. */
  lastSettledAt(): Promise<number | undefined>
}

/** A row that the store refuses permanently. */
export interface RefusedRow {
  readonly requestId: string
  readonly workspaceId: string
  readonly reason: string
  readonly refusedAt: number
  /** undefined if the row cannot even be read. */
  readonly row: LedgerRow | undefined
}
