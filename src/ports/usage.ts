import type { LedgerRow } from '../core/money/ledger.ts'
import type { GroupedSums, Grouping, PricedSums, UsageSums } from '../core/money/usage-sums.ts'

/** Settled in [from, to), oldest first. */
export interface UsageQuery {
  readonly workspaceId: string
  readonly from: number
  readonly to: number
  readonly limit: number
  /** Only what comes behind this row. */
  readonly after?: { readonly settledAt: number; readonly requestId: string } | undefined
  readonly model?: string | undefined
  readonly priceVersions?: readonly number[] | undefined
  /** Only the rows of an adjustment note, or with '' those of no such note. */
  readonly creditNote?: string | undefined
}

/** Sums over [from, to), both at a full hour. */
export interface SumsQuery {
  /** undefined: of all workspaces. */
  readonly workspaceId?: string | undefined
  readonly from: number
  readonly to: number
  readonly groupBy: Grouping
  /** Without the rows of adjustment notes, where it is ''. */
  readonly creditNote?: '' | undefined
  readonly limit: number
  /** Only groups behind this one. */
  readonly after?: string | number | undefined
}

/** What was used, row by row or summed up. */
export interface UsageStore {
  usage(query: UsageQuery): Promise<readonly LedgerRow[]>
  usageRow(requestId: string): Promise<LedgerRow | undefined>
  /** In the order of the groups. */
  usageSums(query: SumsQuery): Promise<readonly GroupedSums[]>
  usageTotal(query: Omit<SumsQuery, 'limit' | 'after'>): Promise<UsageSums>
  /** Over whole days in Sydney: of an adjustment note, or with '' of rows in none. */
  pricedSums(workspaceId: string, from: number, to: number, creditNote: string): Promise<readonly PricedSums[]>
  /** Where the sums that are kept differ from those of the rows; empty when all is well. */
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

export interface RecordedArrival {
  /** Unix ms: admission less the wait for it. */
  readonly arrivedAt: number
  readonly inputTokens: number
  readonly maxTokens: number
  readonly outputTokens: number
}
