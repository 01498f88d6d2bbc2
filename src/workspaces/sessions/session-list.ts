import type { Accounts } from '../accounts.ts'
import type { Role } from '../../shared/roles.ts'
import { personText, type StoredSession } from './session-store.ts'
import { OPERATOR } from './sessions.ts'

/** Sessions as the operator API, the consoles and commands show them. */
export interface SessionView {
  readonly id: string
  readonly console: 'operator' | 'workspace'
  readonly workspace: string | null
  /** The person, the key, or how the session was opened. */
  readonly who: string
  readonly roles: readonly Role[]
  readonly started: string
  readonly last_used: string
  readonly expires_at: string
  readonly address: string | null
}

export interface SessionList {
  readonly object: 'list'
  readonly data: readonly SessionView[]
  readonly next: string | null
}

/** One page, of sessions that were asked for with one more than `limit`. */
export async function sessionList(
  accounts: Accounts,
  found: readonly StoredSession[],
  limit: number,
): Promise<SessionList> {
  const data = await Promise.all(found.slice(0, limit).map((session) => sessionView(accounts, session)))
  return { object: 'list', data, next: found.length > limit ? (data.at(-1)?.id ?? null) : null }
}

export async function sessionView(accounts: Accounts, session: StoredSession): Promise<SessionView> {
  const { name, owner, person, roles, startedAt, usedAt, expiresAt, address } = session
  const isOperator = owner === OPERATOR
  const held = roles.filter(({ workspaceId }) => isOperator || workspaceId === owner).map(({ role }) => role)
  return {
    id: name,
    console: isOperator ? 'operator' : 'workspace',
    workspace: isOperator ? null : (accounts.workspaceById(owner)?.name ?? null),
    who: person ? personText(person) : isOperator ? 'operator token or link' : await keyText(accounts, session),
    roles: person ? held : [isOperator ? 'operator' : 'workspace_admin'],
    started: new Date(startedAt).toISOString(),
    last_used: new Date(usedAt).toISOString(),
    expires_at: new Date(expiresAt).toISOString(),
    address,
  }
}

async function keyText(accounts: Accounts, { keyHash }: StoredSession): Promise<string> {
  if (keyHash === null) return 'one-time link'
  const caller = await accounts.callerOf(keyHash)
  const key = caller && (await accounts.key(caller.keyId))
  return key ? `key ${key.name ?? key.id}` : 'key that does not work any more'
}
