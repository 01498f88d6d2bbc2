import { hashKey } from '../keys/api-key.ts'
import type { Caller } from '../workspace.ts'
import type { Accounts } from '../accounts.ts'
import { ApiError } from '../../shared/errors.ts'
import { memberRoles, type MemberRole } from '../../shared/roles.ts'
import type { HeldRole, Person, StoredSession } from './session-store.ts'
import type { Link, OpenedSession, ConsoleSession, Sessions } from './sessions.ts'

/** Members of workspaces who are signed in to the console. */
export interface WorkspaceSessions {
  /** undefined when the key is not valid. */
  signInWithKey(key: string, address: string): Promise<OpenedSession | undefined>
  /** undefined when the link has been used or has expired. */
  signInWithLink(secret: string, address: string): Promise<OpenedSession | undefined>
  /** Opens the first workspace of their roles. */
  signInPerson(person: Person, roles: readonly HeldRole[], options: PersonSession): Promise<OpenedSession>
  find(token: string): Promise<SignedIn | undefined>
  end(token: string): Promise<void>
  /** Moves the session to another workspace of the person. */
  move(token: string, signedIn: SignedIn, workspace: string): Promise<void>
  /** The sessions of the same person or key; after a link, only the session itself. */
  own(signedIn: SignedIn): Promise<readonly StoredSession[]>
  /** Ends one of the own sessions. Throws `not_found`. */
  endOwn(signedIn: SignedIn, name: string): Promise<void>
  /** A secret that signs in once. Throws `not_found`. */
  issueLink(workspace: string): Promise<Link>
}

export interface PersonSession {
  readonly address: string
  readonly ms: number
}

export interface SignedIn {
  /** Has the id of the key that opened the session, or of the person, or the name of the session. */
  readonly caller: Caller
  readonly hasKey: boolean
  readonly role: MemberRole
  readonly session: ConsoleSession
}

const OWN_MAX = 100

export function workspaceSessions(accounts: Accounts, sessions: Sessions): WorkspaceSessions {
  async function callerOf({ owner, keyHash, name, person }: ConsoleSession): Promise<Caller | undefined> {
    // A session ends with its key.
    if (keyHash !== null) return accounts.callerOf(keyHash)
    const workspace = accounts.workspaceById(owner)
    return workspace && { workspace, keyId: person?.id ?? name }
  }

  async function own({ session: { name, person, keyHash } }: SignedIn): Promise<readonly StoredSession[]> {
    const which = person ? { personId: person.id } : keyHash === null ? { name } : { keyHash }
    return sessions.list({ ...which, limit: OWN_MAX })
  }

  return {
    async signInWithKey(key, address) {
      const keyHash = hashKey(key)
      // callerOf does not find lent keys: these end with the program that borrowed them, so a session must not outlive them.
      const caller = await accounts.callerOf(keyHash)
      return caller && sessions.open({ owner: caller.workspace.id, keyHash, address })
    },
    async signInWithLink(secret, address) {
      const owner = await sessions.redeem(secret)
      return owner === undefined ? undefined : sessions.open({ owner, keyHash: null, address })
    },
    signInPerson(person, roles, { address, ms }) {
      const owner = roles[0]?.workspaceId ?? ''
      return sessions.open({ owner, keyHash: null, address, person: { person, roles, ms } })
    },
    async find(token) {
      const session = await sessions.find(token)
      const caller = session && (await callerOf(session))
      const role = caller && roleIn(session)
      return role && { caller, hasKey: session.keyHash !== null, role, session }
    },
    end: sessions.end,
    async move(token, { session }, name) {
      const workspace = accounts.workspaces().find((it) => it.name === name)
      if (!workspace || roleIn({ ...session, owner: workspace.id }) === undefined || !session.person) {
        throw new ApiError('not_found', `You have no workspace "${name}".`, { param: 'workspace' })
      }
      await sessions.move(token, workspace.id)
    },
    own,
    async endOwn(signedIn, name) {
      if (!(await own(signedIn)).some((it) => it.name === name)) {
        throw new ApiError('not_found', `You have no session "${name}".`, { param: 'id' })
      }
      await sessions.endByName(name)
    },
    issueLink: async (nameOrId) => sessions.issueLink(accounts.workspace(nameOrId).id),
  }
}

/** The role in the workspace that the session is in; undefined if the person has none there. */
function roleIn({ owner, person, roles }: StoredSession): MemberRole | undefined {
  // A key or a link is not limited by roles.
  if (!person) return 'workspace_admin'
  return memberRoles.findLast((role) => roles.some((it) => it.role === role && it.workspaceId === owner))
}
