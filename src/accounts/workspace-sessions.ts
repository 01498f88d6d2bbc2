import { hash, randomUUID } from 'node:crypto'
import { hashKey } from '../core/api-key.ts'
import type { Caller } from '../ports/accounts.ts'
import type { Clock } from '../ports/clock.ts'
import type { SharedValues } from '../ports/shared-values.ts'
import type { Accounts, Identified } from './accounts.ts'
import { openSessions, type KeptKind, type Link, type OpenedSession } from './sessions.ts'

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
  issueLink(workspace: string): Link
}

export interface SignedIn {
  /** Requests of the session are those of the key, or have an id of their own. */
  readonly caller: Caller
  readonly hasKey: boolean
  readonly expiresAt: number
}

type Subject = { readonly keyHash: string } | { readonly workspaceId: string; readonly sessionId: string }

/** What other replicas know of a session or a link. */
interface Shared {
  readonly subject: Subject
  readonly owner: string
  readonly expiresAt: number
}

/** `shared`: where other replicas find them, since the next request may come to another one. */
export function workspaceSessions(accounts: Accounts, clock: Clock, shared?: SharedValues): WorkspaceSessions {
  const sessions = openSessions<Subject>(clock, (kind, hashOfSecret) => void unshare(kind, hashOfSecret))

  /** While Redis is away, this replica alone forgets it. */
  async function unshare(kind: KeptKind, hashOfSecret: string): Promise<void> {
    await shared?.remove(placeOf(kind, hashOfSecret)).catch(() => {})
  }

  /** Whoever cannot be told now is told by this replica alone. */
  async function share(kind: KeptKind, secret: string, it: Shared): Promise<void> {
    await shared
      ?.put(placeOf(kind, hash('sha256', secret)), JSON.stringify(it), it.expiresAt - clock.now())
      .catch(() => {})
  }

  async function open(subject: Subject, owner: string): Promise<OpenedSession> {
    const opened = sessions.open(subject, owner)
    await share('session', opened.token, { subject, owner, expiresAt: opened.expiresAt })
    return opened
  }

  function callerOf(subject: Subject): Identified {
    // A session ends with its key.
    if ('keyHash' in subject) return accounts.callerOf(subject.keyHash)
    const workspace = accounts.workspaceById(subject.workspaceId)
    return workspace && { workspace, keyId: subject.sessionId }
  }

  function identified(
    token: string,
    session: Pick<Shared, 'subject' | 'expiresAt'> | undefined,
  ): SignedIn | undefined | Promise<SignedIn | undefined> {
    if (!session) return undefined
    const caller = callerOf(session.subject)
    return caller instanceof Promise
      ? caller.then((it) => signedIn(token, session, it))
      : signedIn(token, session, caller)
  }

  function signedIn(
    token: string,
    { subject, expiresAt }: Pick<Shared, 'subject' | 'expiresAt'>,
    caller: Caller | undefined,
  ): SignedIn | undefined {
    if (caller) return { caller, hasKey: 'keyHash' in subject, expiresAt }
    void end(token)
    return undefined
  }

  async function end(token: string): Promise<void> {
    sessions.end(token)
    await unshare('session', hash('sha256', token))
  }

  return {
    async signInWithKey(key) {
      const keyHash = hashKey(key)
      // A lent key ends with the program that borrowed it, so nobody may stay signed in with it.
      const caller = await accounts.callerOf(keyHash)
      return caller && open({ keyHash }, caller.workspace.id)
    },
    async signInWithLink(secret) {
      const known = sessions.redeem(secret)
      const found = shared ? await lookUp(shared.take(placeOf('link', hash('sha256', secret))), known) : known
      return found && open(found.subject, found.owner)
    },
    find(token) {
      const known = sessions.find(token)
      if (!shared) return identified(token, known)
      return lookUp(shared.get(placeOf('session', hash('sha256', token))), known).then((it) => identified(token, it))
    },
    end,
    issueLink(nameOrId) {
      const { id } = accounts.workspace(nameOrId)
      const subject = { workspaceId: id, sessionId: `console_${randomUUID().slice(0, 8)}` }
      const link = sessions.issueLink(subject, id)
      void share('link', link.secret, { subject, owner: id, expiresAt: link.expiresAt })
      return link
    },
  }
}

/** While Redis does not answer, this replica goes by what it knows itself. */
async function lookUp<Known>(stored: Promise<string | undefined>, known: Known): Promise<Shared | Known | undefined> {
  try {
    const text = await stored
    return text === undefined ? undefined : (JSON.parse(text) as Shared)
  } catch {
    return known
  }
}

function placeOf(kind: KeptKind, hashOfSecret: string): string {
  return `${kind} ${hashOfSecret}`
}
