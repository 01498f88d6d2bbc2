import type { Buyer, PriceVersion, SpendLimit, Workspace } from './accounts.ts'
import type { AuditStore } from './audit.ts'
import type { AdjustmentNoteStore, InvoiceStore, LinkSecretStore } from './invoices.ts'
import type { KeyStore } from './keys.ts'
import type { LaneSettingsStore } from './lane-settings.ts'
import type { LedgerStore } from './ledger.ts'
import type { RefusalStore } from './refusals.ts'
import type { ReportStore } from './reports.ts'
import type { SessionStore } from './sessions.ts'
import type { ArrivalStore, UsageStore } from './usage.ts'

/**
 * Everything that must outlive the process. Every promise resolves only when its effect is durable. Several
 * processes may have the same store open; each write says what it promises then.
 */
export interface Store
  extends
    AccountStore,
    KeyStore,
    LedgerStore,
    UsageStore,
    ReportStore,
    InvoiceStore,
    AdjustmentNoteStore,
    LinkSecretStore,
    ArrivalStore,
    AuditStore,
    LaneSettingsStore,
    SessionStore,
    RefusalStore {
  /** False while nothing can be read or written. */
  isUp(): boolean
  close(): Promise<void>
}

/** Workspaces and prices. Each change is atomic by itself, and the last one wins. */
export interface AccountStore {
  /** In the order they were made. */
  workspaces(): Promise<readonly Workspace[]>
  /** Every price there ever was, in the order they were made. */
  priceVersions(): Promise<readonly PriceVersion[]>
  /** Rejects when the name is taken, also when two processes try at once. */
  createWorkspace(workspace: Pick<Workspace, 'id' | 'name' | 'requestsPerMinute' | 'createdAt'>): Promise<void>
  setRequestsPerMinute(workspaceId: string, limit: number | null): Promise<void>
  setSpendLimit(workspaceId: string, limit: SpendLimit | null): Promise<void>
  setBuyer(workspaceId: string, buyer: Buyer): Promise<void>
  /**
   * Adds each version if the latest one of its model and workspace has the id `latest`; 0 stands for none. Returns the ids of
   * the new versions, which the store chooses; undefined for one that somebody else has added meanwhile.
   */
  addPriceVersions(versions: readonly NewPriceVersion[]): Promise<readonly (number | undefined)[]>
}

export type NewPriceVersion = Omit<PriceVersion, 'id'> & { readonly latest: number }
