import type { AnswerHead, Job, Price } from '../core/job.ts'
import type { Intent, RequestRow } from '../core/money/ledger.ts'
import type { Reply } from '../ports/reply.ts'
import type { SpendingHold } from '../ports/spending.ts'
import type { EngineCalls } from './engine-calls.ts'

/** A request that was admitted and whose intent is on record. It must end with one row. */
export interface AdmittedRequest {
  readonly job: Job
  readonly reply: Reply
  readonly calls: EngineCalls
  readonly intent: Intent
  readonly price: Price
  readonly hold: SpendingHold
  readonly waitMs: number
  /** By the monotonic clock. */
  readonly admittedAt: number
}

/** How one kind of answer gets from the engine to the caller. */
export interface AnswerPath {
  /** Calls the engine. Resolves when the engine has said everything; its call may take a moment longer to end. */
  takeFromEngine(): Promise<void>
  /** Settles the row, then sends what is left of the answer. */
  giveToCaller(): Promise<RequestRow>
}

export function headOf({ job, intent }: AdmittedRequest): AnswerHead {
  return { id: intent.requestId, created: Math.floor(intent.startedAt / 1000), model: job.model.id }
}
