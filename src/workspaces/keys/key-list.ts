import type { ApiKey } from '../workspace.ts'
import type { KeyStore } from './key-store.ts'
import type { Accounts } from '../accounts.ts'
import { keyView } from '../views.ts'

/** Keys as lists show them: a page, the newest first, and when each was last used. */
export interface KeyList {
  readonly object: 'list'
  readonly data: readonly KeyView[]
  /** Sent as `before`, it asks for the next page; null at the end. */
  readonly next: string | null
}

export type KeyView = ReturnType<typeof keyView>

interface KeyListParts {
  readonly accounts: Accounts
  readonly store: Pick<KeyStore, 'keysLastUsed'>
}

export async function keyList(
  { accounts, store }: KeyListParts,
  query: Parameters<Accounts['keys']>[0],
): Promise<KeyList> {
  const { keys, next } = await accounts.keys(query)
  const lastUsed = await store.keysLastUsed(keys.map(({ id }) => id))
  return { object: 'list', data: keys.map((key) => keyView(key, accounts, lastUsed)), next: next ?? null }
}

export async function oneKey({ accounts, store }: KeyListParts, key: ApiKey): Promise<KeyView> {
  return keyView(key, accounts, await store.keysLastUsed([key.id]))
}
