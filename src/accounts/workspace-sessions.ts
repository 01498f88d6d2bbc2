import { hashKey } from '../core/api-key.ts'
import type { Caller } from '../ports/accounts.ts'
import type { Accounts, Identified } from './accounts.ts'
import type { Link, OpenedSession, Session, Sessions } from './sessions.ts'

/** Members of workspaces who are signed in to the console. */
export interface WorkspaceSessions {
  /** undefined when the key is not valid. */
  signInWithKey(key: string): Promise<OpenedSession | undefined>
  /** undefined when the link has been used or has expired. */
  signInWithLink(secret: string): Promise<OpenedSession | undefined>
  /** At once, unless the session or its key has to be looked up. */
  find(token: string): SignedIn | undefined | Promise<SignedIn | undefined>
  end(token: string): Promise<void>
  /** A secret that signs in once. Throws `not_found`. */
  issueLink(workspace: string): Promise<Link>
}

export interface SignedIn {
  /** Requests of the session are those of the key, or have the name of the session. */
  readonly caller: Caller
  readonly hasKey: boolean
  readonly expiresAt: number
}

export function workspaceSessions(accounts: Accounts, sessions: Sessions): WorkspaceSessions {
  function callerOf({ owner, keyHash, name }: Session): Identified {
    // A session ends with its key.
    if (keyHash !== null) return accounts.callerOf(keyHash)
    const workspace = accounts.workspaceById(owner)
    return workspace && { workspace, keyId: name }
  }

  function identified(session: Session | undefined): SignedIn | undefined | Promise<SignedIn | undefined> {
    if (!session) return undefined
    const caller = callerOf(session)
    return caller instanceof Promise ? caller.then((it) => signedIn(session, it)) : signedIn(session, caller)
  }

  function signedIn({ keyHash, expiresAt }: Session, caller: Caller | undefined): SignedIn | undefined {
    return caller && { caller, hasKey: keyHash !== null, expiresAt }
  }

  return {
    async signInWithKey(key) {
      const keyHash = hashKey(key)
      // A lent key ends with the program that borrowed it, so nobody may stay signed in with it.
      const caller = await accounts.callerOf(keyHash)
      return caller && sessions.open({ owner: caller.workspace.id, keyHash })
    },
    async signInWithLink(secret) {
      const owner = await sessions.redeem(secret)
      return owner === undefined ? undefined : sessions.open({ owner, keyHash: null })
    },
    find(token) {
      const session = sessions.find(token)
      return session instanceof Promise ? session.then(identified) : identified(session)
    },
    end: sessions.end,
    issueLink: async (nameOrId) => sessions.issueLink(accounts.workspace(nameOrId).id),
  }
}
