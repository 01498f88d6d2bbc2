import type { AnswerHead, Job, Price } from '../../engines/job.ts'
import type { Intent, RequestRow } from '../../ledger/rows.ts'
import type { Reply } from '../../server/reply.ts'
import type { SpendingHold } from '../../workspaces/spend-limits/spending.ts'
import type { EngineCalls } from './engine-calls.ts'

/** A request that was admitted and whose intent is recorded. It must end with exactly one row. */
export interface AdmittedRequest {
  readonly job: Job
  readonly reply: Reply
  readonly calls: EngineCalls
  readonly intent: Intent
  readonly head: AnswerHead
  readonly price: Price
  readonly hold: SpendingHold
  readonly waitMs: number
  /** By the monotonic clock. */
  readonly admittedAt: number
}

/** How one kind of answer is delivered from the engine to the caller. */
export interface AnswerPath {
  /**
   * Calls the engine. Resolves when the engine has sent its whole answer; the call itself may take a moment longer to
   * end.
   */
  takeFromEngine(): Promise<void>
  /** Settles the row, then sends the rest of the answer. */
  giveToCaller(): Promise<RequestRow>
}
