import type { LedgerRow, UsageFilter } from '../../ledger/rows.ts'
import type { ServiceTier } from '../rating/rating.ts'
import type { GroupedSums, Grouping, PricedSums, UsageSums } from './usage-sums.ts'

/** Rows settled in [from, to), oldest first. */
export interface UsageQuery extends UsageFilter {
  readonly workspaceId: string
  readonly from: number
  readonly to: number
  readonly limit: number
  /** Only the rows after this one. */
  readonly after?: { readonly settledAt: number; readonly requestId: string } | undefined
  readonly tier?: ServiceTier | undefined
  readonly priceVersions?: readonly number[] | undefined
  /** Only the rows of this adjustment note; '' for the rows that are in none. */
  readonly creditNote?: string | undefined
}

/** Sums over [from, to), both on the hour. */
export interface SumsQuery {
  /** undefined: all workspaces. */
  readonly workspaceId?: string | undefined
  /** Only these keys. */
  readonly keyIds?: readonly string[] | undefined
  readonly from: number
  readonly to: number
  readonly groupBy: Grouping
  /** '' leaves out the rows of adjustment notes. */
  readonly creditNote?: '' | undefined
  /** Leaves out credits of a free amount. */
  readonly withoutCredits?: boolean | undefined
  readonly limit: number
  /** Only groups after this one. */
  readonly after?: string | number | undefined
}

/**
 * Usage, row by row or summed up. The sums change in the transaction that adds the rows, under its lock, so every read
 * finds sums and rows in agreement, however many processes write. Reads lock nothing, and never see part of an
 * adjustment note.
 */
export interface UsageStore {
  usage(query: UsageQuery): Promise<readonly LedgerRow[]>
  usageRow(requestId: string): Promise<LedgerRow | undefined>
  /** In no particular order. */
  usageRows(requestIds: readonly string[]): Promise<readonly LedgerRow[]>
  /** In the order of the groups. */
  usageSums(query: SumsQuery): Promise<readonly GroupedSums[]>
  usageTotal(query: Omit<SumsQuery, 'limit' | 'after'>): Promise<UsageSums>
  /** Over whole days in Sydney: the rows of an adjustment note, or with '' those that are in none. */
  pricedSums(workspaceId: string, from: number, to: number, creditNote: string): Promise<readonly PricedSums[]>
  /** Returns the names of the sums that differ from their rows. Empty if all agree. */
  wrongSums(workspaceId: string): Promise<readonly string[]>
}

/** Requests of one lane that arrived in [from, to), in the order of their admission. */
export interface ArrivalsQuery {
  readonly lane: string
  readonly from: number
  readonly to: number
  readonly limit: number
  readonly offset: number
}

/** What arrived, for the simulation of other limits. */
export interface ArrivalStore {
  arrivals(query: ArrivalsQuery): Promise<readonly RecordedArrival[]>
  /** The last ones that were admitted, the newest first. */
  newestArrivals(query: Omit<ArrivalsQuery, 'offset'>): Promise<readonly RecordedArrival[]>
}

export interface RecordedArrival {
  /** Unix ms: the time of admission less the wait in the queue. */
  readonly arrivedAt: number
  readonly inputTokens: number
  readonly maxTokens: number
  readonly outputTokens: number
  readonly durationMs: number
  readonly firstTokenMs: number | null
}
