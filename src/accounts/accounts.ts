import { randomBytes, randomUUID } from 'node:crypto'
import { formatKey, hashKey } from '../core/api-key.ts'
import { ApiError } from '../core/errors.ts'
import type { ApiKey, Buyer, Caller, SpendLimit, Workspace } from '../ports/accounts.ts'
import type { ChangeFeed } from '../ports/changes.ts'
import type { Clock } from '../ports/clock.ts'
import type { Store } from '../ports/store.ts'

const WORKSPACE_NAME = /^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$/

/** Workspaces and their keys, all in memory, so that requests need no database lookup. */
export interface Accounts {
  authenticate(key: string): Caller | undefined
  /** Whoever has the key with this id; undefined when it is not valid any more. */
  callerOf(keyId: string): Caller | undefined
  workspaces(): readonly Workspace[]
  keys(): readonly ApiKey[]
  /** Finds a workspace by name or id; throws `not_found`. */
  workspace(nameOrId: string): Workspace
  createWorkspace(name: string): Promise<Workspace>
  setRequestsPerMinute(nameOrId: string, limit: number | null): Promise<Workspace>
  setSpendLimit(nameOrId: string, limit: SpendLimit | null): Promise<Workspace>
  setBuyer(nameOrId: string, buyer: Buyer): Promise<Workspace>
  /** Returns the key itself, which cannot be retrieved again. */
  createKey(workspace: string, details?: KeyDetails): Promise<CreatedKey>
  revokeKey(id: string): Promise<ApiKey>
  /** A key that is only in memory, until `end` is called. It leaves nothing behind. */
  lendKey(workspace: string): LentKey
}

export interface KeyDetails {
  /** What the key is for, in its owner's words. */
  readonly name?: string | undefined
  /** Unix ms from which on the key is refused. */
  readonly expiresAt?: number | undefined
}

interface CreatedKey {
  readonly id: string
  readonly key: string
  readonly workspace: string
  readonly name?: string
  readonly expires_at?: string
}

export interface LentKey {
  readonly key: string
  end(): void
}

const KEY_NAME_CHARACTERS_MAX = 100
/** Every lent key belongs to an open `weir chat`. */
const LENT_KEYS_MAX = 1000

export async function openAccounts(store: Store, clock: Clock, changes: ChangeFeed): Promise<Accounts> {
  let workspaces: readonly Workspace[] = []
  let keys: readonly ApiKey[] = []
  let callers = new Map<string, { readonly caller: Caller; readonly expiresAt: number }>()
  let callersById: typeof callers = new Map()
  /** By hash. A lent key names its workspace by id, because the workspace may change. */
  const lent = new Map<string, { readonly workspaceId: string; readonly keyId: string }>()

  async function reload(): Promise<void> {
    const snapshot = await store.accounts()
    const byId = new Map(snapshot.workspaces.map((workspace) => [workspace.id, workspace]))
    const live: typeof callers = new Map()
    const liveById: typeof callers = new Map()
    for (const key of snapshot.keys) {
      const workspace = byId.get(key.workspaceId)
      if (!workspace || key.revokedAt !== null) continue
      const known = { caller: { workspace, keyId: key.id }, expiresAt: key.expiresAt ?? Infinity }
      live.set(key.hash, known)
      liveById.set(key.id, known)
    }
    ;({ workspaces, keys } = snapshot)
    callers = live
    callersById = liveById
  }

  function find(nameOrId: string): Workspace {
    const found = workspaces.find((workspace) => workspace.name === nameOrId || workspace.id === nameOrId)
    if (!found) throw new ApiError('not_found', `There is no workspace "${nameOrId}".`, { param: 'workspace' })
    return found
  }

  function refuseTakenName(name: string): void {
    if (!workspaces.some((workspace) => workspace.name === name)) return
    throw new ApiError('conflict', `A workspace named "${name}" already exists.`, { param: 'name' })
  }

  changes.subscribe('accounts', reload)
  await reload()
  return {
    authenticate(key) {
      const hash = hashKey(key)
      const found = callers.get(hash)
      if (found) return found.expiresAt > clock.now() ? found.caller : undefined
      const borrowed = lent.get(hash)
      const workspace = borrowed && workspaces.find(({ id }) => id === borrowed.workspaceId)
      return workspace && { workspace, keyId: borrowed.keyId }
    },
    callerOf(keyId) {
      const found = callersById.get(keyId)
      return found && found.expiresAt > clock.now() ? found.caller : undefined
    },
    workspaces: () => workspaces,
    keys: () => keys,
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
      if (limit !== null && (!Number.isInteger(limit) || limit < 1 || limit > 100_000_000)) {
        throw new ApiError('invalid_value', 'requests_per_minute must be an integer from 1 to 100000000.', {
          param: 'requests_per_minute',
        })
      }
      const { id } = find(nameOrId)
      await store.setRequestsPerMinute(id, limit)
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
    async createKey(nameOrId, { name, expiresAt } = {}) {
      const workspace = find(nameOrId)
      if (name !== undefined && (name.trim() === '' || name.length > KEY_NAME_CHARACTERS_MAX)) {
        throw new ApiError('invalid_value', `A key name must be 1 to ${KEY_NAME_CHARACTERS_MAX} characters.`, {
          param: 'name',
        })
      }
      if (expiresAt !== undefined && expiresAt <= clock.now()) {
        throw new ApiError('invalid_value', 'A key must expire in the future.', { param: 'expires_at' })
      }
      const key = formatKey(randomBytes(32))
      const id = newId('key')
      await store.createKey({
        id,
        workspaceId: workspace.id,
        hash: hashKey(key),
        name: name ?? null,
        createdAt: clock.now(),
        expiresAt: expiresAt ?? null,
        revokedAt: null,
      })
      await changes.announce('accounts')
      return {
        id,
        key,
        workspace: workspace.name,
        ...(name === undefined ? {} : { name }),
        ...(expiresAt === undefined ? {} : { expires_at: new Date(expiresAt).toISOString() }),
      }
    },
    lendKey(nameOrId) {
      const { id: workspaceId } = find(nameOrId)
      if (lent.size >= LENT_KEYS_MAX) throw new ApiError('service_unavailable', 'Too many chats are open.')
      const key = formatKey(randomBytes(32))
      const hash = hashKey(key)
      lent.set(hash, { workspaceId, keyId: newId('chat') })
      return { key, end: () => void lent.delete(hash) }
    },
    async revokeKey(id) {
      if (!keys.some((key) => key.id === id))
        throw new ApiError('not_found', `There is no key "${id}".`, { param: 'id' })
      await store.revokeKey(id, clock.now())
      await changes.announce('accounts')
      const revoked = keys.find((key) => key.id === id)
      if (!revoked) throw new ApiError('internal_error', `The key "${id}" no longer exists.`)
      return revoked
    },
  }
}

function newId(kind: string): string {
  return `${kind}_${randomUUID().replaceAll('-', '').slice(0, 24)}`
}
