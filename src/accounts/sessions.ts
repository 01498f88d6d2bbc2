import { hash, randomBytes } from 'node:crypto'
import type { Clock } from '../ports/clock.ts'

/**
 * Who is signed in to a console, and the one-time links that sign people in. Both are only in memory: a restart signs
 * everybody out. Secrets are kept as hashes.
 */
export interface Sessions<Subject> {
  /** Signs somebody in. `owner` has a limited number of sessions; the oldest one gives way. */
  open(subject: Subject, owner: string): OpenedSession
  /** undefined when there is no such session, or no longer. */
  find(token: string): Session<Subject> | undefined
  end(token: string): void
  /** A secret that signs in once. */
  issueLink(subject: Subject, owner: string): Link
  /** What the link was issued for; undefined when it has been used, has expired, or never existed. */
  redeem(secret: string): { readonly subject: Subject; readonly owner: string } | undefined
}

export interface OpenedSession {
  /** For the cookie. */
  readonly token: string
  readonly expiresAt: number
}

export interface Session<Subject> {
  readonly subject: Subject
  readonly expiresAt: number
}

export interface Link {
  readonly secret: string
  readonly expiresAt: number
}

interface Kept<Subject> extends Session<Subject> {
  readonly owner: string
}

export const SESSION_MS = 12 * 3_600_000
const LINK_MS = 30 * 60_000
const OWNED_MAX = 50
const KEPT_MAX = 10_000

/** What has a limited number, and gives way by the hash of its secret. */
export type KeptKind = 'session' | 'link'

/** `gaveWay` hears of whatever had to make room before its time. */
export function openSessions<Subject>(
  clock: Clock,
  gaveWay: (kind: KeptKind, hashOfSecret: string) => void = () => {},
): Sessions<Subject> {
  // The oldest come first, because a Map keeps the order of insertion.
  const sessions = new Map<string, Kept<Subject>>()
  const links = new Map<string, Kept<Subject>>()

  function add(
    kind: KeptKind,
    bytes: number,
    subject: Subject,
    owner: string,
    ms: number,
  ): [secret: string, expiresAt: number] {
    const kept = kind === 'session' ? sessions : links
    for (const key of makeRoom(kept, owner, clock.now())) gaveWay(kind, key)
    const secret = randomBytes(bytes).toString('base64url')
    const expiresAt = clock.now() + ms
    kept.set(hash('sha256', secret), { subject, owner, expiresAt })
    return [secret, expiresAt]
  }

  return {
    open(subject, owner) {
      const [token, expiresAt] = add('session', 32, subject, owner, SESSION_MS)
      return { token, expiresAt }
    },
    find(token) {
      const key = hash('sha256', token)
      const found = sessions.get(key)
      if (!found) return undefined
      if (found.expiresAt > clock.now()) return found
      sessions.delete(key)
      return undefined
    },
    end: (token) => void sessions.delete(hash('sha256', token)),
    issueLink(subject, owner) {
      // 128 bits for half an hour, so that a link fits on a line of a terminal.
      const [secret, expiresAt] = add('link', 16, subject, owner, LINK_MS)
      return { secret, expiresAt }
    },
    redeem(secret) {
      const key = hash('sha256', secret)
      const found = links.get(key)
      links.delete(key)
      return found && found.expiresAt > clock.now() ? found : undefined
    },
  }
}

/** Forgets what has expired, then the oldest of the owner, then the oldest of all. Returns what had not expired. */
function makeRoom<Subject>(kept: Map<string, Kept<Subject>>, owner: string, now: number): readonly string[] {
  const owned: string[] = []
  for (const [key, it] of kept) {
    if (it.expiresAt <= now) kept.delete(key)
    else if (it.owner === owner) owned.push(key)
  }
  const [oldestOwned] = owned
  const isFullForOwner = owned.length >= OWNED_MAX && oldestOwned !== undefined
  if (isFullForOwner) kept.delete(oldestOwned)
  const [oldest] = kept.keys()
  const isFull = kept.size >= KEPT_MAX && oldest !== undefined
  if (isFull) kept.delete(oldest)
  return [...(isFullForOwner ? [oldestOwned] : []), ...(isFull ? [oldest] : [])]
}
