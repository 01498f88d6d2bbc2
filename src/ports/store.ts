import type { AccountsSnapshot, ApiKey, Buyer, PriceVersion, SpendLimit, Workspace } from './accounts.ts'
import type { AuditStore } from './audit.ts'
import type { AdjustmentNoteStore, InvoiceStore, LinkSecretStore } from './invoices.ts'
import type { LedgerStore } from './ledger.ts'
import type { ReportStore } from './reports.ts'
import type { ArrivalStore, UsageStore } from './usage.ts'

/**
 * Everything that must outlive the process. Every promise resolves only when its effect is durable. Several
 * processes may have the same store open; each write says what it promises then.
 */
export interface Store
  extends
    AccountStore,
    LedgerStore,
    UsageStore,
    ReportStore,
    InvoiceStore,
    AdjustmentNoteStore,
    LinkSecretStore,
    ArrivalStore,
    AuditStore {
  /** False while nothing can be read or written. */
  isUp(): boolean
  close(): Promise<void>
}

/** Workspaces, their keys, and prices. Each change is atomic by itself, and the last one wins. */
export interface AccountStore {
  /** Everything at one moment. */
  accounts(): Promise<AccountsSnapshot>
  /** Rejects when the name is taken, also when two processes try at once. */
  createWorkspace(workspace: Pick<Workspace, 'id' | 'name' | 'requestsPerMinute' | 'createdAt'>): Promise<void>
  setRequestsPerMinute(workspaceId: string, limit: number | null): Promise<void>
  setSpendLimit(workspaceId: string, limit: SpendLimit | null): Promise<void>
  setBuyer(workspaceId: string, buyer: Buyer): Promise<void>
  createKey(key: ApiKey): Promise<void>
  /** A key that is revoked already keeps the time of its first revocation. */
  revokeKey(id: string, at: number): Promise<void>
  /** When each key was last used for a request that reached an engine, by id. Keys that never were are not in it. */
  keysLastUsed(): Promise<ReadonlyMap<string, number>>
  /** Returns the version's id, which the store chooses: no two versions have the same one. */
  addPriceVersion(version: Omit<PriceVersion, 'id'>): Promise<number>
}
