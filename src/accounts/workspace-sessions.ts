import { randomUUID } from 'node:crypto'
import { hashKey } from '../core/api-key.ts'
import type { Caller } from '../ports/accounts.ts'
import type { Clock } from '../ports/clock.ts'
import type { Accounts, Identified } from './accounts.ts'
import { openSessions, type Link, type OpenedSession, type Session } from './sessions.ts'

/** Members of workspaces who are signed in to the console. */
export interface WorkspaceSessions {
  /** undefined when the key is not valid. */
  signInWithKey(key: string): Promise<OpenedSession | undefined>
  /** undefined when the link has been used or has expired. */
  signInWithLink(secret: string): OpenedSession | undefined
  /** At once, unless the key of the session has to be looked up. */
  find(token: string): SignedIn | undefined | Promise<SignedIn | undefined>
  end(token: string): void
  /** A secret that signs in once. Throws `not_found`. */
  issueLink(workspace: string): Link
}

export interface SignedIn {
  /** Requests of the session are those of the key, or have an id of their own. */
  readonly caller: Caller
  readonly hasKey: boolean
  readonly expiresAt: number
}

type Subject = { readonly keyHash: string } | { readonly workspaceId: string; readonly sessionId: string }

export function workspaceSessions(accounts: Accounts, clock: Clock): WorkspaceSessions {
  const sessions = openSessions<Subject>(clock)

  function callerOf(subject: Subject): Identified {
    // A session ends with its key.
    if ('keyHash' in subject) return accounts.callerOf(subject.keyHash)
    const workspace = accounts.workspaceById(subject.workspaceId)
    return workspace && { workspace, keyId: subject.sessionId }
  }

  function signedIn(token: string, session: Session<Subject>, caller: Caller | undefined): SignedIn | undefined {
    if (caller) return { caller, hasKey: 'keyHash' in session.subject, expiresAt: session.expiresAt }
    sessions.end(token)
    return undefined
  }

  return {
    async signInWithKey(key) {
      const keyHash = hashKey(key)
      // A lent key ends with the program that borrowed it, so nobody may stay signed in with it.
      const caller = await accounts.callerOf(keyHash)
      return caller && sessions.open({ keyHash }, caller.workspace.id)
    },
    signInWithLink(secret) {
      const found = sessions.redeem(secret)
      return found && sessions.open(found.subject, found.owner)
    },
    find(token) {
      const session = sessions.find(token)
      if (!session) return undefined
      const caller = callerOf(session.subject)
      return caller instanceof Promise
        ? caller.then((it) => signedIn(token, session, it))
        : signedIn(token, session, caller)
    },
    end: sessions.end,
    issueLink(nameOrId) {
      const { id } = accounts.workspace(nameOrId)
      return sessions.issueLink({ workspaceId: id, sessionId: `console_${randomUUID().slice(0, 8)}` }, id)
    },
  }
}
