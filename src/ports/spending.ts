import type { PicoAud } from '../core/money/money.ts'
import type { Workspace } from './accounts.ts'

/** Spend limits. The most a request can cost is held while it runs, so that concurrent requests cannot overdraw. */
export interface Spending {
  /** Rejects with `spend_limit_exceeded` if a hard limit has no room for it. */
  hold(workspace: Workspace, most: PicoAud): Promise<SpendingHold>
}

export interface SpendingHold {
  /** Replaces the hold with what the request cost. Only the first call counts. */
  settle(amount: PicoAud): void
}
