import { randomUUID } from 'node:crypto'
import type { Caller } from '../ports/accounts.ts'
import type { Clock } from '../ports/clock.ts'
import type { Accounts } from './accounts.ts'
import { openSessions, type Link, type OpenedSession } from './sessions.ts'

/** Members of workspaces who are signed in to the console. */
export interface WorkspaceSessions {
  /** undefined when the key is not valid. */
  signInWithKey(key: string): OpenedSession | undefined
  /** undefined when the link has been used or has expired. */
  signInWithLink(secret: string): OpenedSession | undefined
  find(token: string): SignedIn | undefined
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

type Subject = { readonly keyId: string } | { readonly workspaceId: string; readonly sessionId: string }

export function workspaceSessions(accounts: Accounts, clock: Clock): WorkspaceSessions {
  function callerOf(subject: Subject): Caller | undefined {
    // A session ends with its key.
    if ('keyId' in subject) return accounts.callerOf(subject.keyId)
    const workspace = accounts.workspaces().find(({ id }) => id === subject.workspaceId)
    return workspace && { workspace, keyId: subject.sessionId }
  }
  const sessions = openSessions<Subject>(clock, (subject) => callerOf(subject) !== undefined)

  return {
    signInWithKey(key) {
      const caller = accounts.authenticate(key)
      // A lent key ends with the program that borrowed it, so nobody may stay signed in with it.
      if (!caller || !accounts.callerOf(caller.keyId)) return undefined
      return sessions.open({ keyId: caller.keyId }, caller.workspace.id)
    },
    signInWithLink(secret) {
      const found = sessions.redeem(secret)
      return found && sessions.open(found.subject, found.owner)
    },
    find(token) {
      const session = sessions.find(token)
      const caller = session && callerOf(session.subject)
      return caller && { caller, hasKey: 'keyId' in session.subject, expiresAt: session.expiresAt }
    },
    end: sessions.end,
    issueLink(nameOrId) {
      const { id } = accounts.workspace(nameOrId)
      return sessions.issueLink({ workspaceId: id, sessionId: `console_${randomUUID().slice(0, 8)}` }, id)
    },
  }
}
