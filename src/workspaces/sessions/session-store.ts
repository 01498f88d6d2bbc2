import type { Role } from '../../shared/roles.ts'

/** Who is signed in to a console, and the one-time links that sign people in. Secrets are stored as hashes. */
export interface SessionStore {
  /**
   * Adds a session with its person, and removes expired ones and the oldest of the same kind beyond the limits. Resolves
   * with whether one was removed before it expired.
   */
  addSession(session: StoredSession, limits: SessionLimits, now: number): Promise<boolean>
  /** Finds sessions, but not links. */
  sessionsByHash(hashes: readonly string[]): Promise<readonly StoredSession[]>
  /** The newest first, without links and without those that have expired. */
  sessions(query: SessionQuery): Promise<readonly StoredSession[]>
  /** Moves the session of a person to another workspace. */
  moveSession(hash: string, owner: string): Promise<void>
  sessionUsed(hash: string, at: number): Promise<void>
  removeSession(hash: string): Promise<void>
  /** Removes the link, so that it can be used only once. */
  takeLink(hash: string): Promise<StoredSession | undefined>
}

export interface StoredSession {
  readonly kind: 'session' | 'link'
  /** The hash of the secret. */
  readonly hash: string
  /** The id of a workspace, or "operator". */
  readonly owner: string
  /** The hash of the API key that opened the session; the session ends with the key. null without a key. */
  readonly keyHash: string | null
  /** A short name for the audit log and for requests without a key. It is not secret. */
  readonly name: string
  readonly startedAt: number
  /** The last use, within some minutes. */
  readonly usedAt: number
  readonly expiresAt: number
  /** Where it was opened from; null in sessions of older versions and in links. */
  readonly address: string | null
  /** Who signed in through the identity provider; null after a key, a link or the operator token. */
  readonly person: Person | null
  /** What the person may do, by the groups at sign-in. Empty without a person, who is not limited by roles. */
  readonly roles: readonly HeldRole[]
}

/** A person, as the identity provider described them when they last signed in. */
export interface Person {
  /** Stands in the ledger where a key would. */
  readonly id: string
  readonly issuer: string
  /** The id that the provider gives them. */
  readonly subject: string
  readonly name: string | null
  readonly email: string | null
}

export interface HeldRole {
  readonly role: Role
  /** The id of the workspace, for a role in one. */
  readonly workspaceId?: string
}

export interface SessionQuery {
  /** Only sessions that end later. */
  readonly now: number
  readonly limit: number
  /** Only those that were opened before the session with this name. */
  readonly before?: string | undefined
  readonly name?: string | undefined
  readonly personId?: string | undefined
  readonly keyHash?: string | undefined
}

export interface SessionLimits {
  readonly ofOwner: number
  readonly ofAll: number
}

/** A person in one line, for the audit log. */
export function personText({ subject, name, email }: Person): string {
  return [...(name === null ? [] : [name]), email ?? subject].join(', ')
}
