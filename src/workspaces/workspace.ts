import type { PicoAud } from '../shared/money/money.ts'
import type { PriceList } from '../billing/rating/rating.ts'

export interface Workspace {
  readonly id: string
  readonly name: string
  /** null: the service's default applies. */
  readonly requestsPerMinute: number | null
  /** A soft limit. null: there is none. */
  readonly tokensPerMinute: number | null
  readonly createdAt: number
  readonly spendLimit: SpendLimit | null
  readonly buyer: Buyer
}

/** What a workspace may spend in a month in Sydney, excluding GST. */
export interface SpendLimit {
  readonly amount: PicoAud
  /** A soft limit is only reported; a hard one refuses requests. */
  readonly isSoft: boolean
}

/** The addressee of invoices. A null name means the workspace's name; other null fields are left out. */
export interface Buyer {
  readonly name: string | null
  readonly abn: string | null
  readonly address: string | null
  /** The buyer's own number for the order, printed on its invoices. */
  readonly purchaseOrder: string | null
  /** Where its invoices are sent, if the service sends e-mail. */
  readonly email: string | null
}

/** What a key may do. null: there is no such limit. */
export interface KeyLimits {
  readonly requestsPerMinute: number | null
  /** A soft limit. */
  readonly tokensPerMinute: number | null
  /** In a day in Sydney, excluding GST. */
  readonly spendPerDay: PicoAud | null
  /** In a month in Sydney, excluding GST. */
  readonly spendPerMonth: PicoAud | null
  /** Slugs or aliases. */
  readonly allowedModels: readonly string[] | null
  /** Paths of inference endpoints, below the base path. */
  readonly allowedEndpoints: readonly string[] | null
  /** IP addresses, and networks in CIDR notation. */
  readonly allowedAddresses: readonly string[] | null
}

/** The limits of a key, prepared once for all of its requests. */
export interface KeyRules {
  /** undefined: only the rate of its workspace is limited. */
  readonly rate: { readonly id: string; readonly limit: number } | undefined
  /** Of tokens per minute, within that of its workspace. */
  readonly tokenRate: { readonly id: string; readonly limit: number } | undefined
  /** Hard limits, within that of its workspace. */
  readonly spend: { readonly perDay: PicoAud | undefined; readonly perMonth: PicoAud | undefined }
  allowsModel(model: { readonly id: string; readonly aliases: readonly string[] }): boolean
  allowsEndpoint(path: string): boolean
  allowsAddress(address: string): boolean
}

export interface ApiKey extends KeyLimits {
  readonly id: string
  readonly workspaceId: string
  /** SHA-256 of the key. The key itself is shown once and never stored. */
  readonly hash: string
  /** Its last four characters, so that people can tell keys apart; null for keys of older versions. */
  readonly ending: string | null
  /** What the key is for, in its owner's words. */
  readonly name: string | null
  readonly createdAt: number
  /** The key is refused from this time on; null: never. */
  readonly expiresAt: number | null
  /** The key may create, change and revoke keys of its workspace that may do no more than itself. */
  readonly manageKeys: boolean
  readonly revokedAt: number | null
}

/** A price that applies from a point in time on, for all workspaces or for one. Never rewritten. */
export interface PriceVersion {
  readonly id: number
  readonly model: string
  readonly workspaceId: string | null
  /** null: the workspace's own price ended. */
  readonly prices: PriceList | null
  readonly effectiveFrom: number
}

/** The sender of a request. */
export interface Caller {
  readonly workspace: Workspace
  readonly keyId: string
  /** undefined: the key has no limits. */
  readonly rules?: KeyRules | undefined
}
