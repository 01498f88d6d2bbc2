import { formatAud } from '../shared/money/money.ts'
import { redactedKey } from './keys/api-key.ts'
import type { Accounts } from './accounts.ts'
import type { ApiKey, Buyer, Workspace } from './workspace.ts'

/** Workspaces and keys as the command line and the operator's API show them. */

interface WorkspaceView {
  readonly id: string
  readonly name: string
  readonly requests_per_minute: number
  readonly tokens_per_minute: number | null
  readonly spend_limit: string | null
  readonly spend_limit_kind: 'soft' | 'hard' | null
  readonly buyer: BuyerView
  readonly created: string
}

export function workspaceView(workspace: Workspace, defaultLimit: number): WorkspaceView {
  return {
    id: workspace.id,
    name: workspace.name,
    requests_per_minute: workspace.requestsPerMinute ?? defaultLimit,
    tokens_per_minute: workspace.tokensPerMinute,
    spend_limit: workspace.spendLimit && formatAud(workspace.spendLimit.amount),
    spend_limit_kind: workspace.spendLimit && (workspace.spendLimit.isSoft ? 'soft' : 'hard'),
    buyer: buyerView(workspace.buyer),
    created: new Date(workspace.createdAt).toISOString(),
  }
}

interface BuyerView extends Omit<Buyer, 'purchaseOrder'> {
  readonly purchase_order: string | null
}

function buyerView({ purchaseOrder, ...buyer }: Buyer): BuyerView {
  return { ...buyer, purchase_order: purchaseOrder }
}

interface KeyView {
  readonly id: string
  readonly workspace: string
  /** Its prefix and its last four characters. */
  readonly redacted: string
  readonly name: string | null
  readonly created: string
  readonly expires_at: string | null
  /** When it was last used for a request that reached an engine. */
  readonly last_used_at: string | null
  readonly revoked: string | null
  readonly manage_keys: boolean
  readonly requests_per_minute: number | null
  readonly tokens_per_minute: number | null
  readonly spend_per_day: string | null
  readonly spend_per_month: string | null
  readonly allowed_models: readonly string[] | null
  readonly allowed_endpoints: readonly string[] | null
  readonly allowed_addresses: readonly string[] | null
}

export function keyView(key: ApiKey, accounts: Accounts, lastUsed: ReadonlyMap<string, number>): KeyView {
  const time = (at: number | null | undefined): string | null => (at ? new Date(at).toISOString() : null)
  return {
    id: key.id,
    workspace: accounts.workspace(key.workspaceId).name,
    redacted: redactedKey(key.ending),
    name: key.name,
    created: new Date(key.createdAt).toISOString(),
    expires_at: time(key.expiresAt),
    last_used_at: time(lastUsed.get(key.id)),
    revoked: time(key.revokedAt),
    manage_keys: key.manageKeys,
    requests_per_minute: key.requestsPerMinute,
    tokens_per_minute: key.tokensPerMinute,
    spend_per_day: key.spendPerDay === null ? null : formatAud(key.spendPerDay),
    spend_per_month: key.spendPerMonth === null ? null : formatAud(key.spendPerMonth),
    allowed_models: key.allowedModels,
    allowed_endpoints: key.allowedEndpoints,
    allowed_addresses: key.allowedAddresses,
  }
}
