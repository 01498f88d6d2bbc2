import type { Deployment, Model } from '../../catalog/model.ts'
import type { Job, Price } from '../../engines/job.ts'
import type { RequestRow } from '../../ledger/rows.ts'
import type { PromptBlocks } from '../../engines/prefix/prompt-blocks.ts'
import type { Admission } from '../../queue/admission.ts'
import type { AlarmClock } from '../../shared/clock.ts'
import type { Engine, Placement } from '../../engines/engine.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Spending } from '../../workspaces/spend-limits/spending.ts'

/** Everything the pipeline depends on. */
export interface PipelineParts {
  readonly admission: Admission
  readonly ledger: Ledger
  readonly spending: Spending
  readonly clock: AlarmClock
  engineOf(deployment: Deployment): Engine | undefined
  /** The price in force now, for a kind of image or a tier if that has its own. */
  priceOf(deployment: Deployment, model: Model, workspaceId: string, kind: string | undefined): Price
  /** Called for every request of the default tier that was admitted to its lane. */
  admitted(lane: string, waitMs: number): void
  /** Called for every row, whatever the outcome. */
  settled(row: RequestRow): void
  /** Called with the row if its engine generated more than was allowed, or reported more than is possible. */
  pastLimit(row: RequestRow): void
  /** Called with the engine's count of the input tokens if it contradicts the estimate. */
  contradicted(job: Job, count: number): void
  /** Called for every delivered answer: how much of the prompt was cached, and how much was expected to be. */
  cacheUsed(row: RequestRow, prompt: PromptBlocks | undefined, placement: Placement | undefined): void
  /** A number in [0, 1), for jitter. */
  random(): number
}
