import type { LedgerRow, Outcome, UsageFilter } from '../../ledger/rows.ts'
import type { UsageSums } from './usage-sums.ts'

/** Reports for people: the newest requests, and usage over time. */
export interface ReportStore {
  /** One page of requests settled in [from, to), the newest first. Reads a limited number of rows. */
  recentRequests(query: RecentQuery): Promise<RecentPage>
  /** Requests from all over a period: the newest of each of its spans. Reads a limited number of rows of each. */
  sampledRequests(query: SampleQuery): Promise<readonly SampledRequest[]>
  /** Sums by hour or day, in chronological order. */
  usageOverTime(query: TimeQuery): Promise<readonly TimeSums[]>
  /** The same for each of these groups. */
  groupsOverTime(query: TimeQuery & { readonly groups: readonly string[] }): Promise<readonly GroupTimeSums[]>
  /** The groups that cost most in a period, the most expensive first. */
  largestGroups(query: Omit<TimeQuery, 'unit'> & { readonly limit: number }): Promise<readonly string[]>
}

export interface RecentQuery extends UsageFilter {
  /** undefined: all workspaces. */
  readonly workspaceId: string | undefined
  readonly from: number
  readonly to: number
  readonly limit: number
  /** Only what was settled before this row. */
  readonly before?: RowPlace | undefined
  /** Only requests that ended like this. failed: only those that did not complete. */
  readonly outcome?: Outcome | 'failed' | undefined
  /** Only requests that ended with this status. */
  readonly httpStatus?: number | undefined
  /** Only requests that failed with this code. */
  readonly errorCode?: string | undefined
}

export interface RowPlace {
  readonly settledAt: number
  /** Empty: before every row of that moment. */
  readonly requestId: string
}

export interface RecentPage {
  readonly rows: readonly LedgerRow[]
  /** Where to continue; undefined when nothing is left. A page may be short, or empty, and still have one. */
  readonly next: RowPlace | undefined
}

/** How long a request took and what it produced, and whether it failed. */
export type SampledRequest = Pick<
  LedgerRow,
  'model' | 'keyId' | 'outcome' | 'outputTokens' | 'queueWaitMs' | 'firstTokenMs' | 'durationMs' | 'settledAt'
>

export interface SampleQuery extends UsageFilter {
  readonly workspaceId: string
  /** Each is [from, to). */
  readonly spans: readonly { readonly from: number; readonly to: number }[]
  /** How many rows of each span are read, before the filter. */
  readonly rowsOfEach: number
}

export type ReportGrouping = 'model' | 'key' | 'workspace'

/** Over [from, to), both on the hour, or at midnight in Sydney for days. */
export interface TimeQuery extends UsageFilter {
  /** undefined: all workspaces. */
  readonly workspaceId: string | undefined
  readonly from: number
  readonly to: number
  readonly unit: 'hour' | 'day'
  readonly groupBy: ReportGrouping
}

export interface TimeSums extends UsageSums {
  /** The beginning of the hour or the day. */
  readonly at: number
}

export interface GroupTimeSums extends TimeSums {
  readonly group: string
}
