import type { ApiKey, KeyLimits } from '../workspace.ts'

/** API keys. There may be a million, so they are never read all at once, but looked up or listed in pages. */
export interface KeyStore {
  createKey(key: ApiKey): Promise<void>
  /** Changes the given fields. A revoked key stays as it is. */
  changeKey(id: string, change: KeyChange): Promise<void>
  /** A key that is revoked already keeps the time of its first revocation. */
  revokeKey(id: string, at: number): Promise<void>
  key(id: string): Promise<ApiKey | undefined>
  /** The keys among these hashes, also revoked ones. */
  keysByHash(hashes: readonly string[]): Promise<readonly ApiKey[]>
  /** A page of keys, the newest first. */
  keys(query: KeyQuery): Promise<readonly ApiKey[]>
  /** When each of these keys was last used for a request that reached an engine. Keys that were never used are left out. */
  keysLastUsed(ids: readonly string[]): Promise<ReadonlyMap<string, number>>
  /** Valid keys that expire before a time, in the order of their expiry, behind this one. */
  expiringKeys(query: ExpiringKeysQuery): Promise<readonly ApiKey[]>
  /** Valid keys with a spend limit for a day or a month, in the order of their ids, behind this id. */
  keysWithSpendLimit(query: SpendLimitedKeysQuery): Promise<readonly ApiKey[]>
  /** Every creation, change and revocation has a number, and becomes visible in the order of these numbers. */
  lastKeyChange(): Promise<number>
  /** The keys that changed after the change with this number, in order. */
  keyChanges(after: number, limit: number): Promise<readonly NumberedKeyChange[]>
}

export interface KeyQuery {
  /** Of all workspaces, unless it is given. */
  readonly workspaceId?: string | undefined
  /** Only keys that are neither revoked nor expired at this time. */
  readonly validAt?: number | undefined
  /** The last key of the page before. */
  readonly before?: KeyPosition | undefined
  readonly limit: number
}

export interface ExpiringKeysQuery {
  readonly now: number
  readonly before: number
  readonly after: { readonly expiresAt: number; readonly id: string } | undefined
  readonly limit: number
}

export interface SpendLimitedKeysQuery {
  readonly now: number
  readonly after: string | undefined
  readonly limit: number
}

export type KeyPosition = Pick<ApiKey, 'createdAt' | 'id'>

/** Fields that are undefined stay as they are. */
export interface KeyChange extends GivenLimits {
  readonly name?: string | undefined
  /** null: the key does not expire. */
  readonly expiresAt?: number | null | undefined
  readonly manageKeys?: boolean | undefined
}

export type GivenLimits = { readonly [Name in keyof KeyLimits]?: KeyLimits[Name] | undefined }

export interface NumberedKeyChange {
  readonly number: number
  readonly hash: string
}
