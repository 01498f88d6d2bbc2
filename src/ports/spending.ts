import type { PicoAud } from '../core/money/money.ts'
import type { Workspace } from './accounts.ts'

/** Spend limits. What a request may come to is held while it runs, so that many at once cannot overdraw. */
export interface Spending {
  /** Throws `spend_limit_exceeded` where a hard limit has no room for it. */
  hold(workspace: Workspace, most: PicoAud): SpendingHold
}

export interface SpendingHold {
  /** Ends it with what the request came to. Only the first call counts. */
  settle(amount: PicoAud): void
}
