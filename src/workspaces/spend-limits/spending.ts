import type { PicoAud } from '../../shared/money/money.ts'
import type { Workspace } from '../workspace.ts'

/** Spend limits. The most a request can cost is held while it runs, so that concurrent requests cannot overdraw. */
export interface Spending {
  /**
   * Rejects with `spend_limit_exceeded` if a hard limit has no room for it, and with `service_unavailable` if the limit
   * cannot be checked now.
   */
  hold(workspace: Workspace, most: PicoAud, key?: SpendingKey): Promise<SpendingHold>
}

/** The key of a request, and its hard limits within those of its workspace. */
export interface SpendingKey {
  readonly id: string
  /** In a day in Sydney. */
  readonly perDay?: PicoAud | undefined
  /** In a month in Sydney. */
  readonly perMonth?: PicoAud | undefined
}

export interface SpendingHold {
  /**
   * Raises the hold to at least this amount, because the price has risen or the engine counted more than expected. Rejects
   * like `hold` if there is no room; then the hold does not change.
   */
  raise(most: PicoAud): Promise<void>
  /**
   * Replaces the hold with what the request cost, in the month and the day in which its row was settled (by default now). Call when
   * the row is durable. Only the first call counts.
   */
  settle(amount: PicoAud, settledAt?: number): void
}

/** The figures that are shown to people. */
export interface SpendView {
  /** Response headers for a workspace that has a limit. What other replicas settled may show a second later. */
  headers(workspace: Workspace): Record<string, string>
  /** What the workspace has spent in this month in Sydney. */
  spent(workspaceId: string): Promise<PicoAud>
  /** What a key has spent in this day and this month in Sydney; undefined where it has no limit. */
  spentByKey(key: SpendingKey): Promise<{ readonly day: PicoAud | undefined; readonly month: PicoAud | undefined }>
}

export interface SpendEvents {
  /** A limit was reached, soft or hard. Once for each limit and month. */
  limitReached(workspace: Workspace, spent: PicoAud): void
}
