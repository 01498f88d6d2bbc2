import { hashKey } from '../keys/api-key.ts'
import type { Caller } from '../workspace.ts'
import type { Accounts } from '../accounts.ts'
import type { Link, OpenedSession, ConsoleSession, Sessions } from './sessions.ts'

/** Members of workspaces who are signed in to the console. */
export interface WorkspaceSessions {
  /** undefined when the key is not valid. */
  signInWithKey(key: string): Promise<OpenedSession | undefined>
  /** undefined when the link has been used or has expired. */
  signInWithLink(secret: string): Promise<OpenedSession | undefined>
  find(token: string): Promise<SignedIn | undefined>
  end(token: string): Promise<void>
  /** A secret that signs in once. Throws `not_found`. */
  issueLink(workspace: string): Promise<Link>
}

export interface SignedIn {
  /** Has the id of the key that opened the session, or the name of the session. */
  readonly caller: Caller
  readonly hasKey: boolean
  readonly expiresAt: number
}

export function workspaceSessions(accounts: Accounts, sessions: Sessions): WorkspaceSessions {
  async function callerOf({ owner, keyHash, name }: ConsoleSession): Promise<Caller | undefined> {
    // A session ends with its key.
    if (keyHash !== null) return accounts.callerOf(keyHash)
    const workspace = accounts.workspaceById(owner)
    return workspace && { workspace, keyId: name }
  }

  return {
    async signInWithKey(key) {
      const keyHash = hashKey(key)
      // callerOf does not find lent keys: these end with the program that borrowed them, so a session must not outlive them.
      const caller = await accounts.callerOf(keyHash)
      return caller && sessions.open({ owner: caller.workspace.id, keyHash })
    },
    async signInWithLink(secret) {
      const owner = await sessions.redeem(secret)
      return owner === undefined ? undefined : sessions.open({ owner, keyHash: null })
    },
    async find(token) {
      const session = await sessions.find(token)
      const caller = session && (await callerOf(session))
      return caller && { caller, hasKey: session.keyHash !== null, expiresAt: session.expiresAt }
    },
    end: sessions.end,
    issueLink: async (nameOrId) => sessions.issueLink(accounts.workspace(nameOrId).id),
  }
}
