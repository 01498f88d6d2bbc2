/** Who is signed in to a console, and the one-time links that sign people in. Secrets are stored as hashes. */
export interface SessionStore {
  /**
   * Adds it, removes what has expired, and makes room: the oldest of the same kind beyond the limits are removed. Resolves
   * with whether one had to go before its end.
   */
  addSession(session: StoredSession, limits: SessionLimits, now: number): Promise<boolean>
  /** Sessions, not links. */
  sessionsByHash(hashes: readonly string[]): Promise<readonly StoredSession[]>
  removeSession(hash: string): Promise<void>
  /** Removes it, so only one caller gets it. */
  takeLink(hash: string): Promise<StoredSession | undefined>
}

export interface StoredSession {
  readonly kind: 'session' | 'link'
  /** Of the secret. */
  readonly hash: string
  /** The id of a workspace, or "operator". */
  readonly owner: string
  /** The hash of the API key that it was begun with, and ends with; null if it was begun without one. */
  readonly keyHash: string | null
  /** A short name for the audit log and for requests that have no key. It is no secret. */
  readonly name: string
  readonly expiresAt: number
}

export interface SessionLimits {
  readonly ofOwner: number
  readonly ofAll: number
}
