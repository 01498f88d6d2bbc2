import { randomBytes, randomUUID } from 'node:crypto'
import { keyEnding, formatKey, hashKey, isWellFormedKey } from './keys/api-key.ts'
import { ApiError } from '../shared/errors.ts'
import { newestRead } from '../shared/newest-read.ts'
import type { ApiKey, Buyer, Caller, SpendLimit, Workspace } from './workspace.ts'
import type { ChangeFeed } from '../cluster/changes/change-feed.ts'
import type { Clock } from '../shared/clock.ts'
import type { GivenLimits, KeyChange, KeyQuery, KeyStore } from './keys/key-store.ts'
import type { AccountStore } from './account-store.ts'
import { checkLimits, checkRate } from './keys/key-limits.ts'
import { openKnownKeys, type KnownKey } from './keys/known-keys.ts'

const WORKSPACE_NAME = /^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$/

/** Workspaces, which are all in memory, and their keys, of which there may be many more than fit (`known-keys.ts`). */
export interface Accounts {
  authenticate(key: string): Promise<Caller | undefined>
  /** The caller that has the key with this hash. Lent keys are not found. */
  callerOf(keyHash: string): Promise<Caller | undefined>
  workspaces(): readonly Workspace[]
  /** undefined if there is none. */
  workspaceById(id: string): Workspace | undefined
  /** A page of keys, the newest first. `before` is the id of the last key of the page before. */
  keys(query: Omit<KeyQuery, 'before'> & { readonly before?: string | undefined }): Promise<KeyPage>
  key(id: string): Promise<ApiKey | undefined>
  /** Finds a workspace by name or id; throws `not_found`. */
  workspace(nameOrId: string): Workspace
  createWorkspace(name: string): Promise<Workspace>
  setRequestsPerMinute(nameOrId: string, limit: number | null): Promise<Workspace>
  setTokensPerMinute(nameOrId: string, limit: number | null): Promise<Workspace>
  setSpendLimit(nameOrId: string, limit: SpendLimit | null): Promise<Workspace>
  setBuyer(nameOrId: string, buyer: Buyer): Promise<Workspace>
  /** Returns the key itself, which cannot be retrieved again. */
  createKey(workspace: string, details?: KeyDetails): Promise<CreatedKey>
  /** Changes the name, the expiry or the limits of a key. A key that has expired works again if its expiry is moved. */
  changeKey(id: string, change: KeyChange): Promise<ChangedKey>
  revokeKey(id: string): Promise<ChangedKey>
  /** Creates a key that exists only in memory, until `end` is called. `key`: reuse the key that another worker lent. */
  lendKey(workspace: string, key?: string): LentKey
}

export interface KeyPage {
  readonly keys: readonly ApiKey[]
  /** Sent as `before`, it asks for the next page; undefined at the end. */
  readonly next: string | undefined
}

export interface KeyDetails extends GivenLimits {
  /** What the key is for, in its owner's words. */
  readonly name?: string | undefined
  /** The key is refused from this time on, in Unix ms. */
  readonly expiresAt?: number | undefined
  readonly manageKeys?: boolean | undefined
}

interface CreatedKey {
  readonly id: string
  readonly key: string
  readonly workspace: string
  readonly name?: string
  readonly expires_at?: string
}

export interface ChangedKey {
  readonly key: ApiKey
  /** The replicas that may still treat the key as before, because they did not answer. */
  readonly unreached: readonly string[]
}

export interface LentKey {
  readonly key: string
  end(): void
}

const KEY_NAME_CHARACTERS_MAX = 100
/** Every lent key belongs to an open `weir chat`. */
const LENT_KEYS_MAX = 1000

export async function openAccounts(
  store: AccountStore & KeyStore,
  clock: Clock,
  changes: ChangeFeed,
): Promise<Accounts> {
  const known = await openKnownKeys(store)
  let workspaces: readonly Workspace[] = []
  let byId = new Map<string, Workspace>()
  let byName = new Map<string, Workspace>()
  /** By hash. A lent key names its workspace by id, because the workspace may change. */
  const lent = new Map<string, { readonly workspaceId: string; readonly keyId: string }>()

  const reload = newestRead(
    () => store.workspaces(),
    (read) => {
      workspaces = read
      byId = new Map(workspaces.map((workspace) => [workspace.id, workspace]))
      byName = new Map(workspaces.map((workspace) => [workspace.name, workspace]))
    },
  )

  function find(nameOrId: string): Workspace {
    const found = byName.get(nameOrId) ?? byId.get(nameOrId)
    if (!found) throw new ApiError('not_found', `There is no workspace "${nameOrId}".`, { param: 'workspace' })
    return found
  }

  async function callerWith(key: KnownKey | null): Promise<Caller | undefined> {
    if (!key || (key.expiresAt ?? Infinity) <= clock.now()) return undefined
    // Another process may have just created the workspace.
    if (!byId.has(key.workspaceId)) await reload()
    const workspace = byId.get(key.workspaceId)
    return workspace && { workspace, keyId: key.id, rules: key.rules }
  }

  function checkKey({ name, expiresAt, ...limits }: KeyChange): void {
    if (name !== undefined && (name.trim() === '' || name.length > KEY_NAME_CHARACTERS_MAX)) {
      throw new ApiError('invalid_value', `A key name must be 1 to ${KEY_NAME_CHARACTERS_MAX} characters.`, {
        param: 'name',
      })
    }
    if ((expiresAt ?? Infinity) <= clock.now()) {
      throw new ApiError('invalid_value', 'A key must expire in the future.', { param: 'expires_at' })
    }
    checkLimits(limits)
  }

  async function existingKey(id: string): Promise<ApiKey> {
    const key = await store.key(id)
    if (!key) throw new ApiError('not_found', `There is no key "${id}".`, { param: 'id' })
    return key
  }

  async function announcedKey(id: string): Promise<ChangedKey> {
    const unreached = await changes.announce('keys')
    return { key: await existingKey(id), unreached }
  }

  function refuseTakenName(name: string): void {
    if (!byName.has(name)) return
    throw new ApiError('conflict', `A workspace named "${name}" already exists.`, { param: 'name' })
  }

  changes.subscribe('accounts', reload)
  changes.subscribe('keys', known.refresh)
  await reload()
  return {
    async authenticate(key) {
      const hash = hashKey(key)
      const borrowed = lent.get(hash)
      const workspace = borrowed && byId.get(borrowed.workspaceId)
      if (workspace) return { workspace, keyId: borrowed.keyId }
      // The checksum avoids a lookup for keys that cannot exist.
      return isWellFormedKey(key) ? callerWith(await known.find(hash)) : undefined
    },
    callerOf: async (keyHash) => callerWith(await known.find(keyHash)),
    workspaces: () => workspaces,
    workspaceById: (id) => byId.get(id),
    async keys({ before: id, limit, ...query }) {
      const before = id === undefined ? undefined : await store.key(id)
      if (id !== undefined && !before) {
        throw new ApiError('invalid_value', "'before' must be the 'next' value of the previous page.", {
          param: 'before',
        })
      }
      const found = await store.keys({ ...query, before, limit: limit + 1 })
      const keys = found.slice(0, limit)
      return { keys, next: found.length > limit ? keys.at(-1)?.id : undefined }
    },
    key: store.key,
    workspace: find,
    async createWorkspace(name) {
      if (!WORKSPACE_NAME.test(name)) {
        const allowed = '1 to 64 letters, digits, spaces, ".", "_" and "-", starting with a letter or digit'
        throw new ApiError('invalid_value', `A workspace name must be ${allowed}.`, { param: 'name' })
      }
      refuseTakenName(name)
      try {
        await store.createWorkspace({ id: newId('ws'), name, requestsPerMinute: null, createdAt: clock.now() })
      } catch (cause) {
        // Another process may have taken the name just now.
        await reload()
        refuseTakenName(name)
        throw cause
      }
      await changes.announce('accounts')
      return find(name)
    },
    async setRequestsPerMinute(nameOrId, limit) {
      checkRate('requests_per_minute', limit)
      const { id } = find(nameOrId)
      await store.setRequestsPerMinute(id, limit)
      await changes.announce('accounts')
      return find(id)
    },
    async setTokensPerMinute(nameOrId, limit) {
      checkRate('tokens_per_minute', limit)
      const { id } = find(nameOrId)
      await store.setTokensPerMinute(id, limit)
      await changes.announce('accounts')
      return find(id)
    },
    async setSpendLimit(nameOrId, limit) {
      const { id } = find(nameOrId)
      await store.setSpendLimit(id, limit)
      await changes.announce('accounts')
      return find(id)
    },
    async setBuyer(nameOrId, buyer) {
      const { id } = find(nameOrId)
      await store.setBuyer(id, buyer)
      await changes.announce('accounts')
      return find(id)
    },
    async createKey(nameOrId, { name, expiresAt, manageKeys = false, ...limits } = {}) {
      const workspace = find(nameOrId)
      checkKey({ name, expiresAt, ...limits })
      const key = formatKey(randomBytes(32))
      const id = newId('key')
      await store.createKey({
        id,
        workspaceId: workspace.id,
        hash: hashKey(key),
        ending: keyEnding(key),
        name: name ?? null,
        createdAt: clock.now(),
        expiresAt: expiresAt ?? null,
        manageKeys,
        revokedAt: null,
        requestsPerMinute: limits.requestsPerMinute ?? null,
        tokensPerMinute: limits.tokensPerMinute ?? null,
        spendPerDay: limits.spendPerDay ?? null,
        spendPerMonth: limits.spendPerMonth ?? null,
        allowedModels: limits.allowedModels ?? null,
        allowedEndpoints: limits.allowedEndpoints ?? null,
        allowedAddresses: limits.allowedAddresses ?? null,
      })
      await changes.announce('keys')
      return {
        id,
        key,
        workspace: workspace.name,
        ...(name === undefined ? {} : { name }),
        ...(expiresAt === undefined ? {} : { expires_at: new Date(expiresAt).toISOString() }),
      }
    },
    lendKey(nameOrId, given) {
      const { id: workspaceId } = find(nameOrId)
      if (lent.size >= LENT_KEYS_MAX) throw new ApiError('service_unavailable', 'Too many chats are open.')
      const key = given ?? formatKey(randomBytes(32))
      if (!isWellFormedKey(key)) throw new ApiError('invalid_value', 'The key to lend is not a key.', { param: 'key' })
      const hash = hashKey(key)
      lent.set(hash, { workspaceId, keyId: newId('chat') })
      return { key, end: () => void lent.delete(hash) }
    },
    async changeKey(id, change) {
      const { revokedAt } = await existingKey(id)
      if (revokedAt !== null) throw new ApiError('conflict', 'The key is revoked. Create a new one.', { param: 'id' })
      checkKey(change)
      await store.changeKey(id, change)
      return announcedKey(id)
    },
    async revokeKey(id) {
      await existingKey(id)
      await store.revokeKey(id, clock.now())
      return announcedKey(id)
    },
  }
}

function newId(kind: string): string {
  return `${kind}_${randomUUID().replaceAll('-', '').slice(0, 24)}`
}
