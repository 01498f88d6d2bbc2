/** Who is signed in to a console, and the one-time links that sign people in. Secrets are stored as hashes. */
export interface SessionStore {
  /**
   * Adds a session, and removes expired ones and the oldest of the same kind beyond the limits. Resolves with whether one
   * was removed before it expired.
   */
  addSession(session: StoredSession, limits: SessionLimits, now: number): Promise<boolean>
  /** Finds sessions, but not links. */
  sessionsByHash(hashes: readonly string[]): Promise<readonly StoredSession[]>
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
  readonly expiresAt: number
}

export interface SessionLimits {
  readonly ofOwner: number
  readonly ofAll: number
}
