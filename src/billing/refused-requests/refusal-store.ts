import type { ErrorCode } from '../../shared/errors.ts'
import type { Refusal, RefusalBatch, RefusedGroup, RefusedHour } from './refusals.ts'

/** Over [from, to). Counts are hourly, so for them both ends are on the hour. */
export interface RefusedQuery {
  /** undefined: all workspaces, and requests without a valid key. */
  readonly workspaceId?: string | undefined
  readonly keyId?: string | undefined
  readonly code?: ErrorCode | undefined
  readonly from: number
  readonly to: number
}

/** Which of the requests that are kept, over [from, to) to the millisecond. */
export interface RefusedRequestsQuery extends RefusedQuery {
  readonly model?: string | undefined
  readonly httpStatus?: number | undefined
  readonly limit: number
  /** Only what was refused before this one. */
  readonly before?: { readonly at: number; readonly requestId: string } | undefined
}

export interface RefusalReads {
  /** In chronological order. */
  refusedOverTime(query: RefusedQuery): Promise<readonly Pick<RefusedHour, 'hour' | 'code' | 'requests'>[]>
  /** The largest first. */
  refusedGroups(query: RefusedQuery & { readonly limit: number }): Promise<readonly RefusedGroup[]>
  /** The newest first, as far as they are kept. */
  refusedRequests(query: RefusedRequestsQuery): Promise<readonly Refusal[]>
  /** undefined: it was not refused, or is no longer kept. */
  refusedRequest(requestId: string): Promise<Refusal | undefined>
}

export interface RefusalStore extends RefusalReads {
  /**
   * Adds to the counts, so several processes may count the same hour, and keeps the newest requests of each workspace
   * and code: a flood displaces only requests of its own kind. Deletes what is older than `since`.
   */
  addRefusals(batch: RefusalBatch, since: number): Promise<void>
}

/** The refusals of this process and of others. Reads see everything that this process has refused. */
export interface Refusals extends RefusalReads {
  /** Counts in memory only: whatever a caller does, a refusal never writes to disk or waits. */
  add(refusal: Refusal): void
}
