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
  workspaces(): readonly Workspace[]
  keys(): readonly ApiKey[]
  /** Finds a workspace by name or id; throws `not_found`. */
  workspace(nameOrId: string): Workspace
  createWorkspace(name: string): Promise<Workspace>
  setRequestsPerMinute(nameOrId: string, limit: number | null): Promise<Workspace>
  setSpendLimit(nameOrId: string, limit: SpendLimit | null): Promise<Workspace>
  setBuyer(nameOrId: string, buyer: Buyer): Promise<Workspace>
  /** Returns the key itself, which cannot be retrieved again. */
  createKey(workspace: string): Promise<{ readonly id: string; readonly key: string; readonly workspace: string }>
  revokeKey(id: string): Promise<ApiKey>
}

export async function openAccounts(store: Store, clock: Clock, changes: ChangeFeed): Promise<Accounts> {
  let workspaces: readonly Workspace[] = []
  let keys: readonly ApiKey[] = []
  let callers = new Map<string, Caller>()

  async function reload(): Promise<void> {
    const snapshot = await store.accounts()
    const byId = new Map(snapshot.workspaces.map((workspace) => [workspace.id, workspace]))
    const live = new Map<string, Caller>()
    for (const key of snapshot.keys) {
      const workspace = byId.get(key.workspaceId)
      if (workspace && key.revokedAt === null) live.set(key.hash, { workspace, keyId: key.id })
    }
    ;({ workspaces, keys } = snapshot)
    callers = live
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
    authenticate: (key) => callers.get(hashKey(key)),
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
    async createKey(nameOrId) {
      const workspace = find(nameOrId)
      const key = formatKey(randomBytes(32))
      const id = newId('key')
      await store.createKey({
        id,
        workspaceId: workspace.id,
        hash: hashKey(key),
        createdAt: clock.now(),
        revokedAt: null,
      })
      await changes.announce('accounts')
      return { id, key, workspace: workspace.name }
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
