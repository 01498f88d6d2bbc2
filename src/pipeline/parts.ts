import type { Deployment } from '../core/catalog.ts'
import type { Job, Price } from '../core/job.ts'
import type { RequestRow } from '../core/money/ledger.ts'
import type { PromptBlocks } from '../core/prefix/prompt-blocks.ts'
import type { Caller } from '../ports/accounts.ts'
import type { Admission } from '../ports/admission.ts'
import type { AlarmClock } from '../ports/clock.ts'
import type { Engine, Placement } from '../ports/engine.ts'
import type { Ledger } from '../ports/ledger.ts'
import type { Spending } from '../ports/spending.ts'

/** Everything the pipeline needs from outside. */
export interface PipelineParts {
  readonly admission: Admission
  readonly ledger: Ledger
  readonly spending: Spending
  readonly clock: AlarmClock
  engineOf(deployment: Deployment): Engine | undefined
  /** The price in force now. */
  priceOf(job: Job, caller: Caller): Price
  /** Hears of every request that has got its place in the lane. */
  admitted(job: Job, waitMs: number): void
  /** Hears of every row, whatever the outcome. */
  settled(row: RequestRow): void
  /** Hears of the row if its engine generated more than was allowed, or reported more than is possible. */
  pastLimit(row: RequestRow): void
  /** Hears of the engine's count of the input if it contradicts the estimate. */
  contradicted(job: Job, count: number): void
  /** Hears how much of a prompt was cached, and how much should have been, of every answer that the caller got. */
  cacheUsed(row: RequestRow, prompt: PromptBlocks | undefined, placement: Placement | undefined): void
  /** A number in [0, 1), to spread delays that must not all be the same. */
  random(): number
}
