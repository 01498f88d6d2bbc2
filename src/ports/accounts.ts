import type { PicoAud } from '../core/money/money.ts'
import type { PriceList } from '../core/money/rating.ts'

export interface Workspace {
  readonly id: string
  readonly name: string
  /** null: the service's default applies. */
  readonly requestsPerMinute: number | null
  readonly createdAt: number
  readonly spendLimit: SpendLimit | null
  readonly buyer: Buyer
}

/** What a workspace may spend in a month in Sydney, excluding GST. */
export interface SpendLimit {
  readonly amount: PicoAud
  /** Only told of, where a hard one refuses. */
  readonly isSoft: boolean
}

/** Who invoices are made out to; null: the workspace's name, or nothing. */
export interface Buyer {
  readonly name: string | null
  readonly abn: string | null
  readonly address: string | null
  /** The buyer's own number for the order, printed on its invoices. */
  readonly purchaseOrder: string | null
}

export interface ApiKey {
  readonly id: string
  readonly workspaceId: string
  /** SHA-256 of the key; the key itself is shown once and kept nowhere. */
  readonly hash: string
  /** What the key is for, in its owner's words. */
  readonly name: string | null
  readonly createdAt: number
  /** The key is refused from this moment on; null: never. */
  readonly expiresAt: number | null
  readonly revokedAt: number | null
}

/** A price that applied from a moment on: for everybody, or for one workspace. Never rewritten. */
export interface PriceVersion {
  readonly id: number
  readonly model: string
  readonly workspaceId: string | null
  /** null: the workspace's own price ended. */
  readonly prices: PriceList | null
  readonly effectiveFrom: number
}

/** Who a request comes from. */
export interface Caller {
  readonly workspace: Workspace
  readonly keyId: string
}
