import type { Buyer, PriceVersion, SpendLimit, Workspace } from './workspace.ts'

/** Workspaces and prices. Each change is atomic by itself, and the last one wins. */
export interface AccountStore {
  /** In order of creation. */
  workspaces(): Promise<readonly Workspace[]>
  /** Every price version, in order of creation. */
  priceVersions(): Promise<readonly PriceVersion[]>
  /** Rejects when the name is taken, even if two processes try at the same time. */
  createWorkspace(workspace: Pick<Workspace, 'id' | 'name' | 'requestsPerMinute' | 'createdAt'>): Promise<void>
  setRequestsPerMinute(workspaceId: string, limit: number | null): Promise<void>
  setTokensPerMinute(workspaceId: string, limit: number | null): Promise<void>
  setSpendLimit(workspaceId: string, limit: SpendLimit | null): Promise<void>
  setBuyer(workspaceId: string, buyer: Buyer): Promise<void>
  /**
   * Adds each version if the latest one of its model and workspace has the id `latest`; 0 stands for none. Returns the ids of
   * the new versions; undefined for a version that another process has added in the meantime.
   */
  addPriceVersions(versions: readonly NewPriceVersion[]): Promise<readonly (number | undefined)[]>
}

export type NewPriceVersion = Omit<PriceVersion, 'id'> & { readonly latest: number }
