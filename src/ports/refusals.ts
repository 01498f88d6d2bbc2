import type { ErrorCode } from '../core/errors.ts'
import type { Refusal, RefusalBatch, RefusedGroup, RefusedHour } from '../core/refusals.ts'

/** Over [from, to). Counts have hours, so both are on the hour there. */
export interface RefusedQuery {
  /** undefined: all workspaces, and requests without a valid key. */
  readonly workspaceId?: string | undefined
  readonly keyId?: string | undefined
  readonly code?: ErrorCode | undefined
  readonly from: number
  readonly to: number
}

export interface RefusalReads {
  /** In the order of time. */
  refusedOverTime(query: RefusedQuery): Promise<readonly Pick<RefusedHour, 'hour' | 'code' | 'requests'>[]>
  /** The largest first. */
  refusedGroups(query: RefusedQuery & { readonly limit: number }): Promise<readonly RefusedGroup[]>
  /** The newest first, as far as they are kept. */
  refusedRequests(query: RefusedQuery & { readonly limit: number }): Promise<readonly Refusal[]>
  /** undefined: it was not refused, or is not kept any more. */
  refusedRequest(requestId: string): Promise<Refusal | undefined>
}

export interface RefusalStore extends RefusalReads {
  /**
   * Adds to the counts, so several processes may count the same hour, and keeps the newest requests of each workspace
   * and code: a flood pushes out nothing but its own. Forgets what is older than `since`.
   */
  addRefusals(batch: RefusalBatch, since: number): Promise<void>
}

/** The refusals of this process and of others. Reads see everything that this process has refused. */
export interface Refusals extends RefusalReads {
  /** Only counts in memory: whatever a caller does, it costs a request neither the disk nor a wait. */
  add(refusal: Refusal): void
}
