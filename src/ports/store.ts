import type { AccountsSnapshot, ApiKey, Buyer, PriceVersion, SpendLimit, Workspace } from './accounts.ts'
import type { InvoiceStore } from './invoices.ts'
import type { LedgerBatch } from './ledger.ts'
import type { ArrivalsQuery, RecordedArrival, UsageStore } from './usage.ts'

/** What must outlive the process. Every promise resolves only when its effect is durable. */
export interface Store extends UsageStore, InvoiceStore {
  accounts(): Promise<AccountsSnapshot>
  createWorkspace(workspace: Pick<Workspace, 'id' | 'name' | 'requestsPerMinute' | 'createdAt'>): Promise<void>
  setRequestsPerMinute(workspaceId: string, limit: number | null): Promise<void>
  setSpendLimit(workspaceId: string, limit: SpendLimit | null): Promise<void>
  setBuyer(workspaceId: string, buyer: Buyer): Promise<void>
  createKey(key: ApiKey): Promise<void>
  revokeKey(id: string, at: number): Promise<void>
  addPriceVersion(version: Omit<PriceVersion, 'id'>): Promise<number>
  writeLedger(batch: LedgerBatch): Promise<void>
  /** Settles what an earlier process left open, at nothing. Returns how many there were. */
  recoverIntents(now: number): Promise<number>
  arrivals(query: ArrivalsQuery): Promise<readonly RecordedArrival[]>
  close(): Promise<void>
}
